"""What a model may not be, is said where it is; the engine never meets it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

import onnxreduce_cli
from onnxreduce_cli import schemas
from onnxreduce_cli.errors import ConversionError, InvalidModelError
from onnxreduce_cli.model.types.facts import admit
from tests.support import model

TEXT = """<ir_version: 10, opset_import: ["" : 18, "local" : 1, "ai.onnx.ml" : 3]>
g (float[2,3] x, bool c, int64 n) => (float[2,3] y) <int64[1] axes = {1}> {
    [mean] m = ReduceMean <keepdims = 1> (x, axes)
    [branch] b = If (c) <
        then_branch = t () => (float[2,1] p) { p = Abs (m) },
        else_branch = e () => (float[2,1] q) { q = Neg (m) }
    >
    [loop] l = Loop (n, c, b) <
        body = u (int64 i, bool k, float[2,1] v) => (bool o, float[2,1] w) {
            o = Identity (k)
            w = Exp (v)
        }
    >
    start = Constant <value = float[3] {1, 2, 3}> ()
    [scan] s, z = Scan <num_scan_inputs = 1, body = r (float[3] a, float[3] d) => (float[3] f,
        float[3] g) {
        f = Add (a, d)
        g = Sub (a, d)
    }> (start, x)
    [norm] h = ai.onnx.ml.Normalizer <norm = "L1"> (x)
    [call] j = local.F <alpha: float = 2.0> (l)
    [split] p1, p2 = Split <axis = 1, num_outputs = 2> (x)
    y = Add (j, h)
}
<domain: "local", opset_import: ["" : 18, "local" : 1]>
F <alpha> (a) => (b) { e = Elu <alpha: float = @alpha> (a) b = local.G (e) }
<domain: "local", opset_import: ["" : 18]>
G (a) => (b) { b = Neg (a) }
"""

#: Where a name stands that is not UTF-8: the text above it is written with this in its place.
NAME = "~~~~"


def node(found: ModelProto, name: str) -> NodeProto:
    return next(item for item in found.graph.node if item.name == name)


def attribute(found: ModelProto, name: str, index: int = 0) -> AttributeProto:
    return node(found, name).attribute[index]


def without_type(found):
    attribute(found, "norm").ClearField("type")


def of_another_field(found):
    attribute(found, "norm").i = 3


def of_another_type(found):
    attribute(found, "norm").CopyFrom(helper.make_attribute("norm", 3))


def without_graph(found):
    attribute(found, "branch").ClearField("g")


def given_twice(found):
    node(found, "norm").attribute.add().CopyFrom(attribute(found, "norm"))


def unknown(found):
    node(found, "mean").attribute.add().CopyFrom(helper.make_attribute("axis", 1))


def missing(found):
    node(found, "scan").ClearField("attribute")


def value_and_reference(found):
    found.functions[0].node[0].attribute[0].f = 1.0


def no_text(found):
    attribute(found, "mean").CopyFrom(helper.make_attribute("keepdims", b"\xff"))


def two_values(found):
    start = next(item for item in found.graph.node if item.op_type == "Constant")
    start.attribute.add().CopyFrom(helper.make_attribute("value_int", 1))


def without_input(found):
    node(found, "mean").ClearField("input")


def empty_input(found):
    node(found, "mean").input[0] = ""


def more_outputs(found):
    node(found, "mean").output.append("more")


def of_another_domain(found):
    node(found, "norm").ClearField("output")


def branch_gives_more(found):
    attribute(found, "branch").g.output.add(name="x")


def branch_takes(found):
    attribute(found, "branch").g.input.add(name="new")


def loop_takes_less(found):
    del attribute(found, "loop").g.input[2]


def loop_gives_less(found):
    del attribute(found, "loop").g.output[1]


def scan_gives_more(found):
    attribute(found, "scan", 1).g.output.add(name="a")


def scan_of_too_much(found):
    attribute(found, "scan").i = 9


def parts_for_more(found):
    attribute(found, "split", 1).i = 1


def calls_itself(found):
    found.functions[1].node.add(op_type="F", domain="local", input=["a"], output=["unread"])


def defined_twice(found):
    found.functions.add().CopyFrom(found.functions[0])


def call_of_more(found):
    node(found, "call").input.append("x")


def call_of_less(found):
    del node(found, "call").input[:]


def data_cut_short(found):
    found.graph.initializer[0].dims[0] = 2


def negative_dims(found):
    found.graph.initializer[0].dims[:] = [-1, -1]


def no_dtype(found):
    found.graph.initializer[0].data_type = 0


def of_data_elsewhere(found):
    tensor = found.graph.initializer[0]
    tensor.ClearField("int64_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="a\0b")


def more_than_there_is(found):
    found.graph.initializer[0].dims[0] = 1 << 40


def sparse_out_of_range(found):
    sparse = found.graph.sparse_initializer.add(dims=[3])
    sparse.values.CopyFrom(numpy_helper.from_array(np.ones(1, np.float32), "far"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.array([3]), "far_indices"))


def in_a_subgraph(found):
    attribute(found, "branch").g.node[0].input.append("x")


def of_no_ir_version(found):
    found.ir_version = -(2**63)


#: An edit, and what is said of it.
WRONG = {
    of_no_ir_version: r"its IR version is -\d+; mend the model",
    without_type: r"ml\.Normalizer node norm \(opset 3\): its attribute 'norm' has no type",
    of_another_field: "its attribute 'norm' is of type STRING and has a value in its field 'i'",
    of_another_type: "its attribute 'norm' has a type that Normalizer-1 does not allow",
    without_graph: "If node branch .opset 18.: its attribute 'then_branch' has no value",
    given_twice: "it has several attributes 'norm'",
    unknown: "it has an attribute 'axis', which ReduceMean-18 does not define",
    missing: "its attribute '(body|num_scan_inputs)' is missing, which Scan-16 requires",
    value_and_reference: "in function local.F: .*has a value and refers to another attribute",
    no_text: r"its attribute 'keepdims' is b'\\xff', which is not UTF-8",
    two_values: "it has 2 attributes, and Constant-13 has its value in one",
    without_input: "it has 0 inputs, which ReduceMean-18 does not allow",
    empty_input: "its input 'data' is missing, which ReduceMean-18 requires",
    more_outputs: "it has 2 outputs, which ReduceMean-18 does not allow",
    of_another_domain: "it has 0 outputs, which Normalizer-1 does not allow",
    branch_gives_more: "its graph 'then_branch' has 2 outputs, and the node gives it 1",
    branch_takes: "its graph 'then_branch' has 1 inputs, and the node gives it 0",
    loop_takes_less: "its graph 'body' has 2 inputs, and the node gives it 3",
    loop_gives_less: "its graph 'body' has 1 outputs, and the node gives it 2",
    scan_gives_more: "its graph 'body' has 3 outputs, and the node gives it 2",
    scan_of_too_much: "its attribute 'num_scan_inputs' is 9, and it has 2 inputs",
    parts_for_more: "Split node split .*'num_outputs' is 1, and it has 2 outputs",
    calls_itself: r"function local\.[FG] calls itself",
    defined_twice: r"there are several functions local\.F",
    call_of_more: r"it has 2 inputs, and the function local\.F has 1",
    call_of_less: r"it leaves out 'a' of the function local\.F, whose .*it has 0 inputs",
    data_cut_short: r"initializer 'axes' has data that does not fit its dimensions \[2\] of int64",
    negative_dims: r"initializer 'axes' has dimensions below 0: \[-1, -1\]",
    no_dtype: "initializer 'axes' has no element type",
    of_data_elsewhere: r"initializer 'axes' names external data 'a\\x00b', and no file",
    more_than_there_is: r"does not fit its dimensions \[1099511627776\]",
    sparse_out_of_range: r"sparse initializer 'far' has indices beyond its dimensions \[3\]",
    in_a_subgraph: r"Abs node making 'p' \(opset 18\) in branch.then_branch: it has 2 inputs",
}


@pytest.mark.parametrize("edit", WRONG, ids=lambda edit: edit.__name__)
def test_what_a_model_may_not_be(edit):
    found = model(TEXT)
    admit(found)
    edit(found)
    before = found.SerializeToString()
    for refusing in (admit, onnxreduce_cli.verify, lambda given: onnxreduce_cli.plan(given, 13)):
        with pytest.raises(InvalidModelError, match=WRONG[edit]):
            refusing(found)
    assert found.SerializeToString() == before


#: What can be called by a name that is not UTF-8.
NAMED = {
    "the graph": lambda found: setattr(found.graph, "name", NAME),
    "an input": lambda found: setattr(found.graph.input[0], "name", NAME),
    "an output": lambda found: setattr(found.graph.output[0], "name", NAME),
    "an initializer": lambda found: setattr(found.graph.initializer[0], "name", NAME),
    "a node": lambda found: setattr(node(found, "mean"), "name", NAME),
    "an operator": lambda found: setattr(node(found, "mean"), "op_type", NAME),
    "a domain": lambda found: setattr(node(found, "mean"), "domain", NAME),
    "a value that is read": lambda found: node(found, "mean").input.append(NAME),
    "a value that is made": lambda found: node(found, "mean").output.append(NAME),
    "an attribute": lambda found: setattr(attribute(found, "norm"), "name", NAME),
    "an imported domain": lambda found: found.opset_import.add(domain=NAME, version=1),
    "a function": lambda found: setattr(found.functions[0], "name", NAME),
    "a function's input": lambda found: found.functions[0].input.append(NAME),
    "a value of a subgraph": lambda found: attribute(found, "branch").g.node[0].input.append(NAME),
}


@pytest.mark.parametrize("what", NAMED)
def test_names_are_text(what):
    found = model(TEXT)
    NAMED[what](found)
    content = found.SerializeToString()
    assert content.count(NAME.encode()) == 1
    found = ModelProto.FromString(content.replace(NAME.encode(), b"a\xc0\xffb"))
    for refusing in (admit, onnxreduce_cli.verify):
        with pytest.raises(InvalidModelError, match=r"a\\xc0\\xffb'.* not UTF-8"):
            refusing(found)


def test_texts_that_nothing_reads_may_be_anything():
    found = model(TEXT)
    found.doc_string = node(found, "mean").doc_string = NAME
    content = found.SerializeToString().replace(NAME.encode(), b"a\xc0\xffb")
    admit(ModelProto.FromString(content))


#: Unusual, but taken by those who run models.
ODD = {
    "an attribute that any node may have": lambda found: (
        node(found, "mean").attribute.add().CopyFrom(helper.make_attribute("__origin", "x"))
    ),
    "an operator of a domain without definitions": lambda found: found.graph.node.add(
        op_type="Any", domain="my", input=["", "x", "x"], attribute=[helper.make_attribute("a", 1)]
    ),
    "bytes for an operator of another domain": lambda found: found.graph.node.add(
        op_type="EPContext",
        domain="com.microsoft",
        attribute=[helper.make_attribute("ep_cache_context", b"\xff\x00")],
    ),
    "an operator of ONNX that is not known": lambda found: found.graph.node.add(
        op_type="Crop", input=["x"], output=["cropped"]
    ),
    "zero, which is not written": lambda found: node(found, "mean").attribute.add(
        name="noop_with_empty_axes", type=AttributeProto.INT
    ),
    "more dimensions than NumPy has": lambda found: found.graph.initializer.add(
        name="deep", dims=[1] * 70, data_type=TensorProto.FLOAT, float_data=[1.0]
    ),
    "data of no elements": lambda found: found.graph.initializer.add(
        name="none", dims=[0, 3], data_type=TensorProto.FLOAT
    ),
    "an initializer of a graph within among its inputs, as before IR version 4": lambda found: (
        attribute(found, "loop").g.input.add(name="one"),
        attribute(found, "loop").g.initializer.add(name="one", data_type=1, float_data=[1.0]),
    ),
    "names of other scripts": lambda found: setattr(node(found, "mean"), "name", "平均"),
    "no names": lambda found: (
        found.graph.ClearField("name"),
        node(found, "mean").ClearField("name"),
    ),
}


@pytest.mark.parametrize("what", ODD)
def test_what_runtimes_take_is_taken(what):
    found = model(TEXT)
    ODD[what](found)
    admit(found)


def test_one_of_many_equal_nodes_is_wrong():
    names = [f"y{index}" for index in range(50)]
    nodes = [helper.make_node("Abs", ["x"], [name], name=name) for name in names]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])], []
    )
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    admit(found)
    found.graph.node[30].input.append("x")
    with pytest.raises(InvalidModelError, match="Abs node y30"):
        admit(found)


@pytest.mark.parametrize(
    ("given", "default", "said"),
    [
        (
            '<v = "text">',
            "v",
            "G node making 'y' .*'v' is of type STRING, .*'Constant' as INTS",
        ),
        ("<v = 2>", "v", "making 'y' .*'v' is of type INT, .*'Constant' as INTS"),
        ("", "v: float = 2.0", "making 'y' .*'v' is of type FLOAT, .*'Constant' as INTS"),
        ("<v = [2]>", "v: float = 2.0", ""),
        ("", "v: ints = [2]", ""),
        ("", "v", ""),
    ],
)
def test_what_a_call_hands_on_has_the_type_that_is_referred_to(given, default, said):
    """Through another function, too."""
    for call, outer in ((f"local.G {given} (x)", ""), ("local.F (x)", f"local.G {given} (a)")):
        found = onnx.parser.parse_model(f"""<ir_version: 9, opset_import: ["" : 18, "local" : 1]>
            g (float[2,3] x) => (float[A,B] y) {{ y = {call} }}
            <domain: "local", opset_import: ["" : 18]>
            G <{default}> (a) => (b) {{ k = Constant<value_ints: ints = @v>() b = ReduceMax(a, k) }}
            <domain: "local", opset_import: ["" : 18, "local" : 1]>
            F (a) => (y) {{ y = {outer or "Abs (a)"} }}""")
        if said:
            with pytest.raises(InvalidModelError, match=f"{said}; mend the model"):
                admit(found)
        else:
            admit(found)


@pytest.mark.parametrize(
    ("text", "opset", "message"),
    [
        ("MaxPool <kernel_shape = [2], strides = [1, 1, 1]> (x)", 7, "strides has incorrect size"),
        ("ArgMax <axis = 4, select_last_index = 1> (flat)", 11, "'axis' must be in"),
        ("Resize (x, , , sizes)", 10, "Number of elements of input 'sizes'"),
        ("ReduceMean (x, half)", 13, r"its input 'half' is tensor.float., which ReduceMean does"),
    ],
)
def test_a_node_contradicts_its_inputs(text, opset, message):
    found = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 18]>
        g (float[1,2,4] x, float[2,3] flat) => (y) <int64[2] sizes = {{2, 2}},
            float[1] half = {{0.5}}> {{ y = {text} }}""")
    with pytest.raises(InvalidModelError, match=f"node making 'y' .*({message}).*; mend the model"):
        onnxreduce_cli.plan(found, opset)


@pytest.mark.parametrize(
    ("text", "opset", "stated", "made"),
    [
        ("y = ReverseSequence (x, lengths)", 9, "bfloat16", "int64"),
        ("y = Cast <to = 20> (x)", 7, "float", "float8e5m2fnuz"),
        ("y = Shape <start = 0> (x)", 14, "float", "int64"),
    ],
)
def test_a_node_contradicts_what_is_stated_of_its_output(text, opset, stated, made):
    found = onnx.parser.parse_model(f"""<ir_version: 11, opset_import: ["" : 24]>
        g (int64[2,4] x, int64[4] lengths) => ({stated}[A,B] y) {{ {text} }}""")
    message = rf"its output 'y' is stated to be tensor\({stated}\), and it makes tensor\({made}\)"
    with pytest.raises(InvalidModelError, match=f"{message}; mend the model"):
        onnxreduce_cli.plan(found, opset)


@pytest.mark.parametrize(
    ("text", "stated", "message"),
    [
        ("z = Softmax (x)", "z", "have rank 3, and it makes one of rank 2"),
        ("z = ReduceMax <keepdims = 0> (w, axes) w = Abs (x)", "z", "rank 3, .* of rank 1"),
        ("z = ReduceMax (w, axes) w = Softmax (x)", "w", "have rank 3, and .* of rank 2"),
        ("z = Softmax (x)", "y", ""),  # What a graph gives is often stated wrong.
    ],
)
def test_a_node_contradicts_the_rank_that_is_stated_of_its_output(text, stated, message):
    found = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,3] x) => (y) <int64[1] axes = {{1}}, float[2,3,4] {stated}> {{
            {text} y = Exp (z) }}""")
    if not message:
        assert not onnxreduce_cli.plan(found, 12).blockers
        return
    with pytest.raises(InvalidModelError, match=f"its output '{stated}' is .* {message}; mend"):
        onnxreduce_cli.plan(found, 12)


@pytest.mark.parametrize("version", [1 << 31, -(1 << 63)])
@pytest.mark.parametrize("domain", ["ai.onnx.ml", "local"])
def test_a_version_beyond_32_bits(domain, version):
    for place in ("model", "function"):
        found = model(TEXT)
        owner = found if place == "model" else found.functions[0]
        owner.opset_import.add(domain=domain, version=version)
        with pytest.raises(
            InvalidModelError, match=f"opset {version} of domain .{domain or 'ai.onnx'}. is no"
        ):
            admit(found)


def test_what_is_of_a_later_onnx():
    later = onnx.defs.onnx_opset_version() + 1
    found = model(TEXT)
    node(found, "mean").op_type = "Later"
    with pytest.raises(ConversionError, match=r"Later node mean .*pip install -U onnx"):
        onnxreduce_cli.convert(found, 13)
    found.opset_import[0].version = later
    message = rf"of opset {later} \(it has Later\), and onnx [\d.]+, .* pip install -U onnx"
    with pytest.raises(ConversionError, match=message):
        onnxreduce_cli.convert(found, 13)


def test_what_onnx_runtime_has_optimised():
    found = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18, "com.ms.internal.nhwc" : 18]>
        g (float[1,2,4] x) => (y) { z = com.ms.internal.nhwc.Conv (x, x) y = Abs (z) }""")
    with pytest.raises(ConversionError, match=r"ONNX Runtime's own.*convert the model that it was"):
        onnxreduce_cli.convert(found, 13)


def test_a_false_rank_of_what_no_step_looks_at() -> None:
    text = """<ir_version: 8, opset_import: ["" : 13]>
        g (float[2,3,4] x) => (float[2,3,4] y) <float[A,B] r> {
            r = Selu (x)
            y = Softmax <axis = 1> (r)
        }"""
    message = "Selu node making 'r' .* its output 'r' is stated to have rank 2, and it makes one of"
    with pytest.raises(InvalidModelError, match=message):
        onnxreduce_cli.convert(onnx.parser.parse_model(text), 11)
    # Neither what does not change nor a size that is false is anybody's concern.
    onnxreduce_cli.convert(onnx.parser.parse_model(text), 14)
    with_size = text.replace("float[A,B] r", "float[2,3,5] r")
    onnxreduce_cli.convert(onnx.parser.parse_model(with_size), 11)


def _beside_another(*nodes: NodeProto, opset: int = 13) -> ModelProto:
    """A model of an Identity, and of nodes of any inputs, outputs and domains."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xwy"]
    every = [*nodes, helper.make_node("Identity", ["x"], ["w"])]
    domains = {node.domain for node in nodes} - {""}
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    graph = helper.make_graph(every, "g", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


#: Without what ONNX Runtime has below its opset too.
LACKED = sorted(
    {item.name for item in onnx.defs.get_all_schemas() if not item.domain}
    - {"LayerNormalization", "ThresholdedRelu"}
)


@pytest.mark.parametrize("op_type", LACKED)
def test_an_operator_that_the_opset_lacks(op_type: str) -> None:
    """The gate does not know what it must have, and nothing behind it relies on that."""
    for opset in {6, 13} & set(range(1, schemas.versions(op_type)[0])):
        for inputs in ([], ["x"], ["x", "x"]):
            for outputs in ([], ["y"]):
                node = helper.make_node(op_type, inputs, outputs)
                for target in (5, 18):
                    plan = onnxreduce_cli.plan(_beside_another(node, opset=opset), target)
                    (blocker,) = plan.blockers
                    assert blocker.reason.startswith(f"{op_type} was introduced with opset ")
                    assert blocker.advice == "raise the model's opset"


def test_a_scan_or_a_sequence_map_that_the_opset_lacks() -> None:
    body = helper.make_graph(
        [helper.make_node("Identity", ["a"], ["b"])],
        "body",
        [helper.make_tensor_value_info("a", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("b", TensorProto.FLOAT, [2])],
    )
    for op_type, opset, first in (("Scan", 6, 8), ("SequenceMap", 13, 17)):
        for inputs in ([], ["x"], ["x", "x"]):
            node = helper.make_node(op_type, inputs, ["y"], body=body)
            (blocker,) = onnxreduce_cli.plan(_beside_another(node, opset=opset), 18).blockers
            assert blocker.reason == f"{op_type} was introduced with opset {first}"


def test_sequences_and_optional_values_that_the_opset_lacks_are_not_written_out() -> None:
    for maker, taker, first in (
        ("SequenceConstruct", "SequenceAt", 11),
        ("Optional", "OptionalGetElement", 15),
    ):
        nodes = [
            helper.make_node(maker, ["x"], ["s"]),
            helper.make_node("Constant", [], ["i"], value=numpy_helper.from_array(np.array(0))),
            helper.make_node(taker, ["s", "i"][: 2 if taker == "SequenceAt" else 1], ["y"]),
        ]
        blockers = onnxreduce_cli.plan(_beside_another(*nodes, opset=6), 18).blockers
        assert [item.reason for item in blockers] == [
            f"{op_type} was introduced with opset {first}" for op_type in (maker, taker)
        ]


@pytest.mark.parametrize("domain", ["com.microsoft", "ai.onnx.ml", "of.another"])
@pytest.mark.parametrize("op_type", ["QLinearAdd", "FusedMatMul", "Constant", "ConstantOfShape"])
def test_a_node_of_another_domain_without_inputs_or_outputs(domain: str, op_type: str) -> None:
    for inputs in ([], ["x"] * 8):
        for outputs in ([], ["y"]):
            node = helper.make_node(op_type, inputs, outputs, domain=domain, value=1)
            onnxreduce_cli.plan(_beside_another(node), 11)
