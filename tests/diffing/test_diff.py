"""What differs between two models as graphs."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.external_data_helper import set_external_data

import onnxreduce_cli
from onnxreduce_cli import Diff, Plan
from onnxreduce_cli.diffing.content import ContentHashes
from onnxreduce_cli.model.file.byte_ranges import FileRange, StoredFile
from onnxreduce_cli.report.diff import diff_text
from tests.support import model

MODELS = sorted((Path(__file__).parents[1] / "data").rglob("*.onnx"))


def small() -> ModelProto:
    """A model with an initializer, a subgraph and a function."""
    return model("""<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
        g (float[N,3] x, bool c) => (float[N,3] y)
        <float[3] w = {1, 2, 3}> {
            [scale] s = Mul(x, w)
            [call] d = local.Twice(s)
            [choice] e = If (c) <
                then_branch = t () => (float[N,3] t) { [in_then] t = Neg(d) },
                else_branch = e () => (float[N,3] u) { [in_else] u = Exp(d) }
            >
            [last] y = Softmax<axis = 1>(e)
        }
        <domain: "local", opset_import: ["" : 18]>
        Twice (a) => (b) { [add] b = Add(a, a) }""")


def renamed(source: ModelProto) -> ModelProto:
    """A copy whose nodes and inner values all have other names."""
    found = copy.deepcopy(source)
    given = {item.name for item in (*found.graph.input, *found.graph.output)} | {""}

    def new(name: str) -> str:
        return name if name in given else f"other_{name}"

    waiting = [found.graph]
    while waiting:
        graph = waiting.pop()
        for item in (*graph.initializer, *graph.value_info, *graph.output):
            item.name = new(item.name)
        for node in graph.node:
            node.name = f"other_{node.name}"
            node.input[:] = [new(name) for name in node.input]
            node.output[:] = [new(name) for name in node.output]
            waiting += [item.g for item in node.attribute if item.HasField("g")]
    return found


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_nothing_differs_in_a_copy(path: Path) -> None:
    found = onnxreduce_cli.diff(path, onnx.load(path))
    assert not found.differs
    assert diff_text(found) == ""


@pytest.mark.newest
@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
@pytest.mark.parametrize(("opset", "contract"), [(11, ()), (24, ()), (24, ("all",))])
def test_what_a_conversion_changes_is_what_its_plan_says(
    path: Path, opset: int, contract: tuple[str, ...]
) -> None:
    plan = onnxreduce_cli.plan(path, opset, contract=contract)
    if plan.blockers:
        with pytest.raises(onnxreduce_cli.ConversionError):
            onnxreduce_cli.convert(path, opset, contract=contract)
        return
    after = onnxreduce_cli.convert(path, opset, contract=contract, check=False)
    found = onnxreduce_cli.diff(path, after)
    assert_planned(found, plan)
    assert all(
        set(plan.removed).intersection(node.output)
        for node in onnx.load(path).graph.node
        if node.name in {item.node for item in found.removed}
    )
    assert {item.name for item in found.imports} <= {"ai.onnx", *_domains(plan.unread)}
    assert [item.name for item in found.model] == ["IR version"] * (
        plan.ir_version != plan.target_ir_version
    )


def assert_planned(found: Diff, plan: Plan) -> None:
    """Assert that a diff has the changes of a plan, no more and no fewer."""
    planned = [change for change in plan.changes if not change.stays]
    assert [
        (item.scope, item.node, item.op_type, item.result, item.nodes, item.absorbed)
        for item in sorted(found.changes, key=lambda item: (item.scope, item.node))
    ] == [
        (item.scope, item.node, item.op_type, item.result, item.nodes, item.absorbed)
        for item in sorted(planned, key=lambda item: (item.scope, item.node))
    ]
    edits = {(item.scope, item.node): set(item.edits) for item in planned}
    # A step may say more than one sees.
    assert all(set(item.edits) <= edits[item.scope, item.node] for item in found.changes)
    assert found.added == ()


HALVES = """<ir_version: 8, opset_import: ["" : 18]>
    g (float16[N,2] x, float16[N,2] u, bool c) => (float16[N,2] y, float16[N,2] z, float[N,2] f)
    <int64[1] axes = {1}, int64 one = {1}> {
        [a] y = Relu(x)
        [b] w = ReduceMax<keepdims = 1>(y, axes)
        [c] z = If(c) <
            then_branch = t () => (float16[N,2] p) { [d] p = Add(w, u) },
            else_branch = e () => (float16[N,2] q) { [e] q = Abs(u) }
        >
        [g] f = Cast<to = 1>(x)
        [s] s = Shape(x)
        [h] n = Gather(s, one)
    }"""


@pytest.mark.parametrize(
    "options",
    [
        {"dtypes": {"float16": "float"}},
        {"dtypes": {"float16": "float"}, "keep_interface": True},
        {"dtypes": {"float16": "float"}, "keep_interface": True, "opset": 13},
        {"dtypes": {"float16": "double"}, "keep_interface": True, "runtime": "opencv==4.6"},
        {"dtypes": {"float16": "bfloat16"}, "dims": {"N": 3}, "runtime": "openvino==2026.4"},
        {"dims": {"N": 3}, "opset": 11},
        {"runtime": "onnxruntime==1.8"},
    ],
    ids=str,
)
def test_what_is_done_to_the_whole_model_is_what_its_plan_says(options: dict[str, Any]) -> None:
    source = model(HALVES)
    if options.get("runtime") == "opencv==4.6":
        del source.graph.node[2], source.graph.output[1], source.graph.input[2]
    plan = onnxreduce_cli.plan(source, **options)
    found = onnxreduce_cli.diff(source, onnxreduce_cli.convert(source, check=False, **options))
    assert_planned(found, plan)


def _domains(imports: tuple[str, ...]) -> list[str]:
    return [item.split()[0] for item in imports]


def test_each_kind_of_difference_is_told() -> None:
    a, b = small(), small()
    b.ir_version = 9
    b.producer_name = "another"
    b.opset_import.add(domain="more", version=2)
    b.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 4
    b.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.float32([1, 2, 4]), "w"))
    b.graph.node[0].doc_string = "where it was written"
    b.graph.node[2].attribute[0].g.node[0].op_type = "Abs"
    b.graph.node[3].attribute[0].i = 0
    b.graph.value_info.add(name="s").type.tensor_type.elem_type = TensorProto.FLOAT
    b.functions[0].node.add(op_type="Identity", name="copy", input=["b"], output=["b2"])
    b.graph.node.add(op_type="Neg", name="side", input=["x"], output=["side_y"])
    found = onnxreduce_cli.diff(a, b)
    assert diff_text(found).splitlines() == [
        "a model -> a model: nodes: 2 changed, 2 added",
        "  more: 2 added",
        "  IR version: 10 → 9",
        "  producer_name: '' → 'another'",
        "  input x: float[N,3] → float[4,3]",
        "  1 Softmax: axis 1 → 0: last",
        "  1 Neg → Abs: in_then in choice.then_branch",
        "  added: 1 Neg: side",
        "  added: 1 Identity: copy in function local.Twice",
        "  constant w: float[3] [1.0, 2.0, 3.0] → float[3] [1.0, 2.0, 4.0]",
        "  type of s: float added",
        "  doc_string: of 1 node",
    ]
    back = onnxreduce_cli.diff(b, a)
    assert [item.node for item in back.removed] == ["side", "copy"]
    assert back.imports[0].after == ""


def test_other_names_are_no_other_nodes() -> None:
    found = onnxreduce_cli.diff(small(), renamed(small()))
    assert (found.changes, found.added, found.removed, found.constants) == ((), (), (), ())
    assert {(item.before, item.after) for item in found.renamed} == {
        ("w", "other_w"),
        *((name, f"other_{name}") for name in ("scale", "call", "choice", "last")),
        *((name, f"other_{name}") for name in ("in_then", "in_else")),
    }


def test_names_that_moved_on_to_other_nodes_do_not_confuse_it() -> None:
    before = model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[3] x) => (float[3] y) { a = Abs(x)  b = Exp(a)  c = Sqrt(b)  y = Neg(c) }""")
    after = model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[3] x) => (float[3] y) { a = Sin(x)  b = Abs(x)  c = Exp(b)  d = Sqrt(c)
                                         e = Neg(d)  y = Add(e, a) }""")
    found = onnxreduce_cli.diff(before, after)
    assert [(item.op_type, item.result) for item in found.changes] == [
        ("Neg", ("Sin", "Neg", "Add"))
    ]
    assert (found.added, found.removed) == ((), ())


def test_outputs_that_change_places_differ() -> None:
    a = model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[3] x) => (float[3] y, float[3] z) { y = Abs(x)  z = Neg(x) }""")
    b = model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[3] x) => (float[3] y, float[3] z) { z = Abs(x)  y = Neg(x) }""")
    found = onnxreduce_cli.diff(a, b)
    assert [item.summary for item in found.changes] == ["Abs → Neg", "Neg → Abs"]
    a, b = small(), small()
    branch = b.graph.node[2].attribute[0].g
    branch.node.add(op_type="Neg", name="more", input=["t"], output=["more"])
    branch.output[0].name = "more"
    found = onnxreduce_cli.diff(a, b)
    assert [item.node for item in found.added] == ["more"]
    assert [(item.name, item.before, item.after) for item in found.values] == [
        ("output 0", "t", "more")
    ]


def test_functions() -> None:
    a, b = small(), small()
    b.functions[0].name = b.graph.node[1].op_type = "Double"
    found = onnxreduce_cli.diff(a, b)
    assert [(item.name, item.before, item.after) for item in found.functions] == [
        ("local.Twice", "1 node, 1 in, 1 out", ""),
        ("local.Double", "", "1 node, 1 in, 1 out"),
    ]
    assert [item.result for item in found.changes] == [("Double",)]


def test_weights_are_compared_by_their_content_wherever_it_is(tmp_path: Path) -> None:
    source = small()
    weights = np.arange(3000, dtype=np.float32)
    source.graph.initializer.append(numpy_helper.from_array(weights, "large"))
    source.graph.initializer.add(
        name="listed", data_type=TensorProto.FLOAT, dims=[3000], float_data=weights.tolist()
    )
    onnx.save(source, tmp_path / "a.onnx")
    for tensor in source.graph.initializer[1:]:
        tensor.raw_data = weights.tobytes()
        tensor.ClearField("float_data")
        set_external_data(tensor, "b.data", offset=0, length=len(tensor.raw_data))
        tensor.ClearField("raw_data")
    (tmp_path / "b.data").write_bytes(weights.tobytes())
    onnx.save(source, tmp_path / "b.onnx")
    assert not onnxreduce_cli.diff(tmp_path / "a.onnx", tmp_path / "b.onnx").differs
    weights[2999] += 1
    (tmp_path / "b.data").write_bytes(weights.tobytes())
    found = onnxreduce_cli.diff(tmp_path / "a.onnx", tmp_path / "b.onnx")
    assert [item.name for item in found.constants] == ["large", "listed"]
    assert found.constants[0].before.startswith("float[3000] sha256:")


def test_large_data_is_read_part_by_part(tmp_path: Path) -> None:
    path = tmp_path / "data"
    with path.open("wb") as file:
        file.truncate(5_000_001)
    stored = StoredFile.at(str(path))
    whole = FileRange(stored, 0, stored.size)
    assert max(map(len, whole.chunks())) <= 1 << 20
    assert b"".join(whole.chunks()) == path.read_bytes()
    hashes = ContentHashes()
    assert hashes.of([whole]) == hashes.of([bytes(5_000_001)]) != hashes.of([bytes(5_000_000)])


def test_a_dtype_that_onnx_does_not_know_yet() -> None:
    a, b = small(), small()
    b.graph.input[0].type.tensor_type.elem_type = 99
    (found,) = onnxreduce_cli.diff(a, b).inputs
    assert (found.before, found.after) == ("float[N,3]", "dtype 99[N,3]")


def test_neither_model_is_touched() -> None:
    a, b = small(), renamed(small())
    before = a.SerializeToString(), b.SerializeToString()
    onnxreduce_cli.diff(a, b)
    assert (a.SerializeToString(), b.SerializeToString()) == before


def changed(edit: Any) -> tuple[ModelProto, ModelProto]:
    """A model and a copy that was edited."""
    a, b = small(), small()
    edit(b)
    return a, b


def told(a: ModelProto, b: ModelProto) -> list[str]:
    """What is said of two models, but for the headline."""
    return diff_text(onnxreduce_cli.diff(a, b)).splitlines()[1:]


def newer_function(found: ModelProto) -> None:
    found.functions[0].opset_import[0].version = 17


def another_domain(found: ModelProto) -> None:
    found.functions[0].opset_import.add(domain="more", version=1)


def another_graph_name(found: ModelProto) -> None:
    found.graph.name = "other"
    found.graph.node[2].attribute[0].g.name = "inner"


def sparse(found: ModelProto) -> None:
    values = numpy_helper.from_array(np.float32([5]), "p")
    indices = numpy_helper.from_array(np.int64([1]))
    found.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, indices, [3]))


def optional_input(found: ModelProto) -> None:
    tensor = onnx.helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    found.graph.input.append(
        onnx.helper.make_value_info("o", onnx.helper.make_optional_type_proto(tensor))
    )


def without_a_type(found: ModelProto) -> None:
    found.graph.value_info.add(name="s").type.tensor_type.elem_type = TensorProto.FLOAT
    found.graph.value_info.add(name="d")


@pytest.mark.parametrize(
    ("edit", "lines"),
    [
        (newer_function, ["  ai.onnx in function local.Twice: 18 → 17"]),
        (another_domain, ["  more in function local.Twice: 1 added"]),
        (
            another_graph_name,
            [
                "  name of the graph: g → other",
                "  name of the graph in choice.then_branch: t → inner",
            ],
        ),
        (sparse, ["  p: sparse added"]),
        (lambda found: found.training_info.add(), ["  training_info: 0 → 1"]),
        (
            lambda found: found.metadata_props.add(key="author", value="a"),
            ["  metadata_props: 0 → 1 (author)"],
        ),
        (
            optional_input,
            ["  input o: optional(float) added"],
        ),
        (without_a_type, ["  type of s: float added", "  type of d: no type added"]),
    ],
    ids=[
        "import",
        "domain",
        "name",
        "sparse initializer",
        "training",
        "metadata",
        "optional input",
        "no type",
    ],
)
def test_what_is_no_node(edit: Any, lines: list[str]) -> None:
    a, b = changed(edit)
    assert told(a, b) == lines
    assert not onnxreduce_cli.diff(b, copy.deepcopy(b)).differs


def test_a_sparse_initializer_of_another_content() -> None:
    a, b = changed(sparse)
    sparse(a)
    b.graph.sparse_initializer[0].indices.raw_data = np.int64([2]).tobytes()
    assert told(a, b) == ["  p: sparse → sparse"]


def test_a_function_of_an_import_that_changed_everywhere_is_told_once() -> None:
    a, b = small(), small()
    b.opset_import[0].version = b.functions[0].opset_import[0].version = 17
    assert told(a, b) == ["  ai.onnx: 18 → 17"]


def test_what_no_definition_knows_of() -> None:
    """Overloads, and what functions read and give."""
    a, b = small(), small()
    b.graph.node[1].input[0] = "x"
    assert told(a, b) == ["  1 Twice: inputs s → x: call"]
    b.graph.node[1].overload = b.functions[0].overload = "second"
    assert told(a, b) == [
        "  function local.Twice: 1 node, 1 in, 1 out removed",
        "  function local.Twice:second: 1 node, 1 in, 1 out added",
        "  1 Twice: overload '' → 'second'; inputs s → x: call",
    ]


def test_a_node_of_another_name_that_changed() -> None:
    a, b = small(), small()
    b.graph.node[3].name = "first"
    b.graph.node[3].attribute[0].i = 0
    assert told(a, b) == ["  1 Softmax: axis 1 → 0: last", "  1 node renamed: last → first"]


def test_constant_nodes_of_any_kind() -> None:
    """Those of tensors by their content, as initializers are."""
    values: dict[str, Any] = {
        "t": {"value": numpy_helper.from_array(np.int64([1]))}, "i": {"value_int": 1}
    }  # fmt: skip
    for name, value in values.items():
        a, b = small(), small()
        b.graph.node.append(onnx.helper.make_node("Constant", [], [name], name=name, **value))
        what = "Constant int64[1] [1]" if name == "t" else "Constant"
        assert told(a, b) == [f"  constant {name}: {what} added"]
        assert told(b, a) == [f"  constant {name}: {what} removed"]


def test_differences_as_a_table() -> None:
    a, b = small(), small()
    b.graph.node[3].attribute[0].i = 0
    b.ir_version = 9
    b.graph.node[0].doc_string = "<b>"
    b.graph.node.add(op_type="Neg", name="side<", input=["x"], output=["side_y"])
    found = onnxreduce_cli.diff(a, b)
    html = found._repr_html_()
    for cells in (
        ("model", "IR version", "10", "9"),
        ("changes", "last", "Softmax", "Softmax: axis 1 → 0"),
        ("added", "side&lt;", "Neg", ""),
        ("metadata", "doc_string", "1 node", ""),
    ):
        assert "".join(f'<td style="text-align: left">{cell}</td>' for cell in cells) in html
    assert repr(found) == "<Diff a model and a model: 4 differences>"


def test_many_differences_of_a_kind_are_told_together() -> None:
    a, b = small(), small()
    for index in range(12):
        for found, value in ((a, 0), (b, index + 1)):
            found.graph.initializer.append(
                numpy_helper.from_array(np.float32([value, index]), f"k{index}")
            )
    lines = told(a, b)
    assert lines == ["  12 constants changed: k0, k1, k2 and 9 more"]
    text = diff_text(onnxreduce_cli.diff(a, b), verbose=True)
    assert text.count("constant k") == 12
    (line,) = told(small(), renamed(small()))[:1]
    assert line == "  1 initializer renamed: w → other_w"
