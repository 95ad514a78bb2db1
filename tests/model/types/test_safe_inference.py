"""Shape inference of models that make it take all memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import onnx
import pytest
from onnx import AttributeProto, ModelProto, TensorProto, helper, parser

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.model.file.document import load
from onnxreduce_cli.model.gate import attribute_ranges
from onnxreduce_cli.model.types import inference_bounds, safe_inference
from onnxreduce_cli.model.types.safe_inference import infer_shapes, type_error
from onnxreduce_cli.model.types.skeleton import model_skeleton
from onnxreduce_cli.worker import process
from onnxreduce_cli.worker.process import EndedError, current_worker

ROOT = Path(__file__).parents[3]

MODELS = sorted([*ROOT.glob("samples/*.onnx"), *ROOT.glob("tests/data/**/*.onnx")])


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The models that are sent to the worker, which infers nothing."""
    found: list[bytes] = []
    monkeypatch.setattr(safe_inference, "_infer_in_worker", lambda given, _: found.append(given))
    return found


def doubling(op_type: str, count: int, of: str = "a") -> ModelProto:
    """`count` nodes, each of which reads the one before twice, from the constant or an input on."""
    nodes = [helper.make_node("Identity", [of], ["v0"])]
    nodes += [
        helper.make_node(op_type, [f"v{i}", f"v{i}"], [f"v{i + 1}"], axis=0) for i in range(count)
    ]
    nodes.append(helper.make_node("ReduceSum", ["x", f"v{count}"], ["y"]))
    start = helper.make_tensor("a", TensorProto.INT64, [1, 1] if op_type == "Gather" else [1], [0])
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [start],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("op_type", ["Concat", "Gather"])
def test_lists_and_ranks_that_double(op_type: str) -> None:
    model = doubling(op_type, 41)
    start = time.perf_counter()
    assert infer_shapes(model, data_prop=True) is None
    assert time.perf_counter() - start < 20
    # The conversion goes on with what the model declares.
    Conversion(doubling(op_type, 41), 11).plan()


@pytest.mark.parametrize(
    "first",
    [
        "v0 = Constant<value = int64[1,1] {0}>()",
        "v0 = NonZero(x)",
        "v0 = RandomNormal<shape = [2,2]>()",
        'v0 = Einsum<equation = "i,j->ij">(x, x)',
    ],
)
def test_ranks_double_from_any_node_on(first: str, asked: list[bytes]) -> None:
    nodes = [f"v{i + 1} = Gather(v{i}, v{i})" for i in range(40)]
    found = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[3] x) => (float[] y) {{ {first} {" ".join(nodes)} y = Shape(v40) }}""")
    assert infer_shapes(found, data_prop=True) is None
    assert len(asked) == 1


@pytest.mark.parametrize(
    "graphs",
    [
        "If(b) <then_branch = t () => (int64[] t@) {t@ = NODE},"
        " else_branch = e () => (int64[] e@) {e@ = NODE}>",
        "Loop(, b, v@) <body = l (int64 i, bool c, int64[] u@)"
        " => (bool c, int64[] w@) {w@ = NODE}>",
        "SequenceMap(v@) <body = m (int64[] u@) => (int64[] w@) {w@ = NODE}>",
    ],
)
@pytest.mark.parametrize("node", ["Gather(v@, v@)", "Concat<axis = 0>(v@, v@)"])
def test_what_graphs_give_doubles(graphs: str, node: str, asked: list[bytes]) -> None:
    if "u@" in graphs:
        node = node.replace("v", "u")
    graphs = graphs.replace("NODE", node)
    nodes = [f"v{i + 1} = {graphs}".replace("@", str(i)) for i in range(40)]
    found = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        g (bool b) => (float[] y)
        {{ v0 = Constant<value_ints = [1]>() {" ".join(nodes)} y = Shape(v40) }}""")
    assert infer_shapes(found, data_prop=True) is None
    assert len(asked) == 1


def test_what_stays_small_is_inferred_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_inference, "_infer_in_worker", lambda *_: pytest.fail("in the worker"))
    assert infer_shapes(doubling("Concat", 12), data_prop=True) is not None
    # Features double along an axis; nobody computes their elements.
    assert infer_shapes(doubling("Concat", 41, "x"), data_prop=True) is not None


@pytest.mark.parametrize(
    "nodes",
    [
        "a = Reshape(z, all) y = Add(a, a)",
        "a = Range(zero, many, one) y = Mul(a, a)",
        "a = Pad(x, pads) y = Add(a, a)",
    ],
)
def test_a_list_that_is_computed_and_long_is_inferred(nodes: str, asked: list[bytes]) -> None:
    large = "z" if "z" in nodes else "other"
    found = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 14]>
        g (float[3] x, float[1073741824,1] {large}) => (float[] y)
        <int64[1] all = {{-1}}, int64[2] pads = {{0, 1073741824}}, int64 zero = {{0}},
        int64 one = {{1}}, int64 many = {{1073741824}}> {{ {nodes} }}""")
    if large == "other":
        del found.graph.input[1]
    assert infer_shapes(found, data_prop=True) is None
    assert asked == [found.SerializeToString()]


@pytest.mark.parametrize("node", ["Slice(x, s, s)", "Cast<to = 1>(s)"])
def test_a_list_that_is_said_to_be_long_is_inferred(node: str, asked: list[bytes]) -> None:
    found = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 14]>
        g (float[2,3] x, int64[1073741824] s) => (float[] y) {{ y = {node} }}""")
    assert infer_shapes(found, data_prop=True) is None
    assert asked == [found.SerializeToString()]


@pytest.mark.parametrize(
    ("inputs", "nodes"),
    [
        ("seq(float[LARGE]) x, int64 i", "a = SequenceAt(x, i) y = Add(a, a)"),
        ("optional(float[LARGE]) x", "a = OptionalGetElement(x) y = Add(a, a)"),
        ("float[3] x", "a = Unknown(x) y = Add(a, a)"),
        ("float[3,3] x", "y = If(b) <then_branch = t (float[LARGE] v) => (float[] w)"
         " {w = Add(v, v)}, else_branch = e () => (float[] u) {u = Identity(x)}>"),
        ("float[3] x", "a = RandomNormal<shape = [LARGE]>() y = Add(a, a)"),
        ("float[3] x", "s = Constant<value_ints = [LARGE]>() a = Tile(x, s) y = Add(a, a)"),
        ("float[3] x", "s = Constant<value = int64 {LARGE}>() a = HannWindow(s) y = Add(a, a)"),
    ],
)  # fmt: skip
def test_a_list_that_is_stated_to_be_long_anywhere(
    inputs: str, nodes: str, asked: list[bytes]
) -> None:
    stated = "float[LARGE] a" if "Unknown" in nodes else ""
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
        g ({inputs}) => (float[] y) <{stated}> {{ {nodes} }}"""
    large, small = (parser.parse_model(text.replace("LARGE", size)) for size in ("2097152", "2097"))
    infer_shapes(small, data_prop=True)
    assert not asked
    assert infer_shapes(large, data_prop=True) is None
    assert asked == [large.SerializeToString()]


def test_a_weight_that_looks_like_a_dimension_is_none() -> None:
    found = doubling("Concat", 1)
    large = onnx.TensorShapeProto.Dimension(dim_value=1 << 40).SerializeToString()
    found.graph.initializer.add(name="w", data_type=2, dims=[len(large) + 2]).raw_data = (
        b"\n" + bytes([len(large)]) + large
    )
    assert not inference_bounds.may_take_much(found)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_exported_models_are_inferred_here(path: Path) -> None:
    found = load(path).model
    assert not inference_bounds.may_take_much(found)
    assert not inference_bounds.may_take_much(model_skeleton(found))


def gather(attribute: AttributeProto) -> ModelProto:
    """A model whose function has one node, with that attribute."""
    node = helper.make_node("GatherND", ["x", "i"], ["y"])
    node.attribute.append(attribute)
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("f", 1)]
    function = helper.make_function("f", "f", ["x", "i"], ["y"], [node], imports[:1], ["n"])
    graph = parser.parse_graph("g (float[2,3] x, int64[2,1] i) => (float[2,3] y) { y = f.f(x, i) }")
    return helper.make_model(graph, functions=[function], opset_imports=imports, ir_version=8)


def test_an_attribute_that_may_end_inference() -> None:
    reference = AttributeProto(name="batch_dims", type=AttributeProto.INT, ref_attr_name="n")
    assert attribute_ranges.range_problem(gather(reference).functions[0].node[0]) is None
    assert inference_bounds.may_take_much(gather(reference))
    wrong = gather(helper.make_attribute("batch_dims", -9))
    assert inference_bounds.may_take_much(wrong)
    assert infer_shapes(wrong, data_prop=True) is None
    assert not inference_bounds.may_take_much(gather(helper.make_attribute("batch_dims", 1)))


def test_what_ended_the_worker_is_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model = doubling("Concat", 43)
    assert infer_shapes(model, data_prop=True) is None
    monkeypatch.setattr(process, "current_worker", lambda: pytest.fail("sent again"))
    assert infer_shapes(model, data_prop=True) is None


def test_a_call_that_another_one_ends_is_sent_again() -> None:
    worker = current_worker()
    # Before it is made, the call before it ends the worker.
    ended = worker.send(os._exit, 1)
    small = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[2097152] x) => (float[] y) { y = Relu(x) }""")
    inferred = infer_shapes(small, data_prop=True)
    assert inferred is not None
    assert inferred.graph.output[0].type.tensor_type.shape.dim[0].dim_value == 2097152
    with pytest.raises(EndedError):
        ended.result()


#: Nodes that make a list of 1 << 36 elements of numbers that are none of them large.
_GROWING = """
import resource, sys
from onnx import parser
from onnxreduce_cli.model.types.safe_inference import infer_shapes, type_error

def model(nodes):
    return parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (float[262144,262144] x) '
        '=> (float[] y) <int64[1] all = {-1}> { a = Reshape(x, all) ' + nodes + ' }')

for node in ("y = Add(a, a)", "y = Sub(a, a)", "y = Mul(a, a)", "y = Add(a, a)"):
    assert infer_shapes(model(node), data_prop=True) is None
inferred = infer_shapes(model("y = Relu(a)"), data_prop=True)
assert inferred.graph.value_info[0].type.tensor_type.shape.dim[0].dim_value == 1 << 36
# Not what resource tells: that is at least what the parent had.
most = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
assert int(most.split()[1]) < 600_000
assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 600_000
assert resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
def test_what_is_too_much_ends_at_the_limit() -> None:
    subprocess.run([sys.executable, "-c", _GROWING], check=True, timeout=60)


def doubling_calls(count: int, *, within: int) -> ModelProto:
    """Calls of a function that joins a list with itself, in so many functions that call it twice.

    Args:
        count: how many there are in the graph, each of what the one before gives.
        within: how many functions there are around it.
    """
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("f", 1)]
    bodies = [[helper.make_node("Concat", ["a", "a"], ["b"], axis=0)]]
    for level in range(within):
        calls = [("a", "t"), ("t", "b")]
        nodes = [helper.make_node(f"F{level}", [i], [o], domain="f") for i, o in calls]
        bodies.append(nodes)
    made = [
        helper.make_function("f", f"F{level}", ["a"], ["b"], nodes, opsets)
        for level, nodes in enumerate(bodies)
    ]
    found = doubling("Concat", count)
    for node in found.graph.node[1:-1]:
        node.domain, node.op_type = "f", f"F{within}"
        del node.attribute[:], node.input[1:]
    found.functions.extend(made)
    found.opset_import.append(opsets[1])
    return found


@pytest.mark.parametrize(("count", "within"), [(41, 0), (6, 3), (1, 25)])
def test_what_calls_give_doubles(count: int, within: int, asked: list[bytes]) -> None:
    assert infer_shapes(doubling_calls(count, within=within), data_prop=True) is None
    assert len(asked) == 1


def test_calls_that_give_little_are_inferred_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_inference, "_infer_in_worker", lambda *_: pytest.fail("in the worker"))
    assert infer_shapes(doubling_calls(3, within=2), data_prop=True) is not None


def test_inference_in_the_worker_gives_the_same() -> None:
    model = doubling("Concat", 12)
    apart = safe_inference._infer_in_worker(model.SerializeToString(), True)
    assert apart == infer_shapes(model, data_prop=True)


@pytest.mark.parametrize(
    ("domain", "opset", "op_type"),
    [
        ("", 20, "RegexFullMatch"),
        ("ai.onnx.ml", 1, "LabelEncoder"),
        ("ai.onnx.ml", 1, "DictVectorizer"),
    ],
)
def test_an_operator_of_what_has_no_type(domain: str, opset: int, op_type: str) -> None:
    nodes = [
        helper.make_node("Unknown", ["x"], ["u"], domain="other"),
        helper.make_node(op_type, ["u"], ["y"], domain=domain),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [info("x", 1, [2])], [info("y", 7, None)])
    imports = {"": 20, "other": 1, domain: opset}
    found = helper.make_model(
        graph, opset_imports=[helper.make_opsetid(*item) for item in imports.items()]
    )
    assert infer_shapes(found, data_prop=True) is None


def test_sizes_in_files_are_not_read() -> None:
    found = parser.parse_model("""<ir_version: 8, opset_import: ["" : 14]>
        g (float[2,3] x) => (float[] y) <int64[1] all = {6}> { y = Reshape(x, all) }""")
    sizes = found.graph.initializer[0]
    sizes.ClearField("raw_data")
    sizes.ClearField("int64_data")
    sizes.data_location = TensorProto.EXTERNAL
    sizes.external_data.add(key="location", value="none.bin")
    inferred = infer_shapes(found, data_prop=True)
    assert inferred is not None


def test_type_errors() -> None:
    text = """<ir_version: 8, opset_import: ["" : 13]>
        g (float[2] x, double[2] z) => (float[2] y) { y = Add(x, OTHER) }"""
    assert type_error(parser.parse_model(text.replace("OTHER", "x"))) == ""
    said = type_error(parser.parse_model(text.replace("OTHER", "z")))
    assert "(op_type:Add): B has inconsistent type tensor(double)" in said
    # Of what may take too much nothing is said.
    assert type_error(doubling("Concat", 41)) == ""
