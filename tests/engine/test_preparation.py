"""What is done to a whole model before its nodes are planned."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import onnxreduce_cli
from onnxreduce_cli.errors import ConversionError, UsageError
from tests.support import assert_same, model, op_types, run


def documented() -> ModelProto:
    """A model with metadata and doc strings wherever there can be some."""
    found = model("""<ir_version: 10, opset_import: ["" : 18, "local" : 1],
            doc_string: "a model", metadata_props: ["who": "me"]>
        g (float[2,3] x, bool c) => (float[2,3] y) <float[3] w = {1, 2, 3}, float[2,3] s> {
            [scale] s = Mul(x, w)
            [call] d = local.Twice(s)
            [choice] y = If (c) <
                then_branch = t () => (float[2,3] t) { [in_then] t = Neg(d) },
                else_branch = e () => (float[2,3] u) { [in_else] u = Exp(d) }
            >
        }
        <domain: "local", opset_import: ["" : 18], doc_string: "twice">
        Twice (a) => (b) { [add] b = Add(a, a) }""")
    graph, function = found.graph, found.functions[0]
    branch = graph.node[2].attribute[0].g
    for item in (
        *(graph, graph.input[0], graph.output[0], graph.value_info[0], graph.initializer[0]),
        *(branch, branch.node[0], function, function.node[0], *graph.node),
    ):
        item.doc_string = "/home/me/model.py"
        item.metadata_props.add(key="where", value="/home/me/model.py")
    graph.node[2].attribute[0].doc_string = "/home/me/model.py"
    return found


def told(found: ModelProto) -> int:
    """How often a path of the exporting machine stands in a model."""
    return found.SerializeToString().count(b"/home/me")


@pytest.mark.parametrize(("of", "left"), [("nodes", 14), ("functions", 21), ("all", 0)])
def test_metadata_is_stripped_of_what_is_named(of: str, left: int) -> None:
    source = documented()
    result = onnxreduce_cli.convert(source, strip_metadata=of)
    assert told(source) == 25
    assert told(result) == left
    assert bool(result.metadata_props) == bool(result.doc_string) == (of != "all")
    found = onnxreduce_cli.diff(source, result)
    assert (found.changes, found.added, found.removed, found.values) == ((), (), (), ())
    (line,) = onnxreduce_cli.plan(source, strip_metadata=of).prepared
    size = len(source.SerializeToString()) - len(result.SerializeToString())
    assert f"{size:,} bytes less" in line


def test_functions_are_inlined_wherever_they_are_called() -> None:
    source = documented()
    plan = onnxreduce_cli.plan(source, inline_functions=True)
    assert [str(item) for item in plan.inlined] == ["function local.Twice: inlined for call"]
    assert (plan.nodes, plan.target_nodes) == (6, 5)
    result = onnxreduce_cli.convert(source, inline_functions=True)
    assert not result.functions
    assert op_types(result)[:2] == ["Mul", "Add"]
    feeds = {"x": np.float32([[1, 2, 3], [4, 5, 6]]), "c": np.array(True)}
    assert_same(run(source, feeds)["y"], run(result, feeds)["y"])
    assert [item.result for item in onnxreduce_cli.diff(source, result).changes] == [("Add",)]


def test_functions_that_cannot_be_inlined_are_refused() -> None:
    source = documented()
    source.functions[0].opset_import[0].version = 17
    with pytest.raises(ConversionError, match=r"local.Twice is of opset 17, the model of 18"):
        onnxreduce_cli.convert(source, inline_functions=True)
    doubling = model("""<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
        g (float[2] x) => (float[2] y) { y = local.F0(x) }""")
    for number in range(30):
        body = onnx.parser.parse_function(
            f"""<domain: "local", opset_import: ["" : 18, "local" : 1]>
            F{number} (a) => (b) {{ c = local.F{number + 1}(a) b = local.F{number + 1}(c) }}"""
        )
        doubling.functions.append(body)
    doubling.functions.append(
        onnx.parser.parse_function(
            """<domain: "local", opset_import: ["" : 18]> F30 (a) => (b) { b = Neg(a) }"""
        )
    )
    with pytest.raises(ConversionError, match="more than 50,000 nodes"):
        onnxreduce_cli.plan(doubling, inline_functions=True)


#: A reshape that exporters write: all but the last dimension, computed at run time.
FLATTEN = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[batch,seq,4] x) => (float[rows,4] y)
    <int64[1] zero = {0}, int64[1] one = {1}, int64[1] four = {4}, float[batch,seq,4] r> {
        [relu] r = Relu(x)
        [shape] s = Shape(r)
        [first] b = Gather<axis = 0>(s, zero)
        [second] q = Gather<axis = 0>(s, one)
        [times] n = Mul(b, q)
        [join] to = Concat<axis = 0>(n, four)
        [view] y = Reshape(r, to)
    }"""


def test_dimensions_are_fixed_and_shapes_folded() -> None:
    source = model(FLATTEN)
    wanted = {"batch": 2, "seq": 3}
    result = onnxreduce_cli.convert(source, dims=wanted)
    onnx.checker.check_model(result, full_check=True)
    assert op_types(result) == ["Relu", "Reshape"]
    infos = (*result.graph.input, *result.graph.output, *result.graph.value_info)
    stated = {
        info.name: [dim.dim_value for dim in info.type.tensor_type.shape.dim] for info in infos
    }
    assert stated == {"x": [2, 3, 4], "y": [6, 4], "r": [2, 3, 4]}
    assert [tensor.name for tensor in result.graph.initializer] == ["to"]
    feeds = {"x": np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 11}
    assert_same(run(source, feeds)["y"], run(result, feeds)["y"])
    plan = onnxreduce_cli.plan(source, dims=wanted)
    assert plan.prepared == ("dimensions fixed: batch = 2, seq = 3, in the shapes of 2 values",)
    folded = onnxreduce_cli.plan(source, dims=wanted, fold=True).prepared
    assert folded == (*plan.prepared, "folded: nothing more")
    assert [item.summary for item in plan.changes] == [
        "Concat → an initializer (-1 node); always [6, 4]"
    ]
    found = onnxreduce_cli.diff(source, result)
    assert [(item.node, item.result) for item in found.changes] == [("join", ())]
    assert {item.node for item in found.removed} == {"shape", "first", "second", "times"}
    assert {"s", "b", "q", "n", "zero", "one", "four"} == set(plan.removed)


def test_one_dimension_alone_leaves_what_the_others_decide() -> None:
    result = onnxreduce_cli.convert(model(FLATTEN), dims={"seq": 3})
    assert op_types(result) == ["Relu", "Shape", "Gather", "Mul", "Concat", "Reshape"]
    assert result.graph.initializer[-1].name == "q"
    for batch in (1, 5):
        feeds = {"x": np.ones((batch, 3, 4), np.float32)}
        assert run(result, feeds)["y"].shape == (3 * batch, 4)


def test_constants_that_a_graph_gives_or_a_function_makes_are_nodes() -> None:
    source = model("""<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
        g (float[N,3] x, bool c) => (int64[2] y, int64[2] z) {
            y = local.Sizes(x)
            z = If (c) <
                then_branch = t () => (int64[2] t) { t = Shape(x) },
                else_branch = e () => (int64[2] u) { s = Shape(x)  u = Neg(s) }
            >
        }
        <domain: "local", opset_import: ["" : 18]>
        Sizes (a) => (b) { s = Shape(a)  b = Add(s, s) }""")
    result = onnxreduce_cli.convert(source, dims={"N": 4})
    onnx.checker.check_model(result, full_check=True)
    assert "Shape" not in op_types(result)
    for given in (True, False):
        feeds = {"x": np.ones((4, 3), np.float32), "c": np.array(given)}
        before, after = run(source, feeds), run(result, feeds)
        assert_same(before["y"], after["y"])
        assert_same(before["z"], after["z"])


def test_dimensions_without_a_name() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[?,3] x) => (float[?,3] y) { y = Relu(x) }""")
    result = onnxreduce_cli.convert(source, dims={"x[0]": 5})
    sizes = [item.type.tensor_type.shape.dim[0].dim_value for item in result.graph.output]
    assert sizes == [5]


@pytest.mark.parametrize(
    ("dims", "said"),
    [
        ({"batsh": 2}, r"dims batsh: .* did you mean 'batch'\? it has 'batch', 'seq', 'rows'"),
        ({"batch": 0}, r"dims=\{'batch': 0\}: a size is 1 or more"),
        ({"batch": 2**63}, r"dims=\{'batch': 9223372036854775808\}: a size is 1 or more, and"),
    ],
)
def test_what_makes_no_sense_is_refused(dims: dict[str, int], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        onnxreduce_cli.convert(model(FLATTEN), dims=dims)


def test_sizes_that_the_model_contradicts_are_refused() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[N,K] x) => (float[M,2] y) <float[3,2] w = {1, 2, 3, 4, 5, 6}> {
            [product] y = MatMul(x, w)
        }""")
    with pytest.raises(ConversionError, match="with K = 4 MatMul node product cannot run: "):
        onnxreduce_cli.convert(source, dims={"K": 4})
    with pytest.raises(ConversionError, match="with N = 2, M = 5 the model states 'y'"):
        onnxreduce_cli.convert(source, dims={"N": 2, "M": 5})
    assert onnxreduce_cli.convert(source, dims={"N": 2, "M": 2, "K": 3})


def test_a_model_given_is_edited_only_where_all_goes_well() -> None:
    source = model(FLATTEN.replace("Relu", "Sin"))
    before = source.SerializeToString()
    with pytest.raises(ConversionError):
        onnxreduce_cli.convert(source, 6, dims={"batch": 1}, in_place=True)
    assert source.SerializeToString() == before
    onnxreduce_cli.plan(source, dims={"batch": 1})
    assert source.SerializeToString() == before
    assert onnxreduce_cli.convert(source, dims={"batch": 1}, in_place=True) is source
    assert source.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 1


@pytest.mark.parametrize("opset", [7, 8, 9])
def test_sizes_become_no_constants_that_the_opset_does_not_allow(opset: int) -> None:
    """Before opset 9 a Constant is of floats, and so neither an output nor in a function."""
    source = model(f"""<ir_version: 8, opset_import: ["" : {opset}, "local" : 1]>
        g (float[N,3] x, bool c) => (int64[2] y, int64[2] z, float[2] f, int64[2] w) {{
            y = Shape(x)
            s = Shape(x)
            f = Cast<to = 1>(s)
            z = If (c) <
                then_branch = t () => (int64[2] t) {{ t = Shape(x) }},
                else_branch = e () => (int64[2] u) {{ u = Shape(x) }}
            >
            w = local.Sizes(x)
        }}
        <domain: "local", opset_import: ["" : {opset}]>
        Sizes (a) => (b) {{ s = Shape(a)  b = Identity(s) }}""")
    result = onnxreduce_cli.convert(source, dims={"N": 4})
    onnx.checker.check_model(result, full_check=True)
    kept = ["Shape", "Constant", "If", "Sizes"] if opset < 9 else ["Constant"] * 2 + ["If", "Sizes"]
    assert [node.op_type for node in result.graph.node] == kept
    for given in (True, False):
        feeds = {"x": np.ones((4, 3), np.float32), "c": np.array(given)}
        before, after = run(source, feeds), run(result, feeds)
        for name in "yzfw":
            assert_same(before[name], after[name])


def with_function(nodes: str, stated: str) -> ModelProto:
    """A model that calls a function of data of [N, 4], which states shapes."""
    return onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
        g (float[N,4] x) => (float[?,?] y) {{ y = local.F(x) }}
        <domain: "local", opset_import: ["" : 18]> F (a) => (b) <{stated}> {{ {nodes} }}""")


OF_SHAPE = "t = Neg(a) s = Shape(t) b = Reshape(t, s)"


@pytest.mark.parametrize(
    ("nodes", "stated", "said"),
    [
        (OF_SHAPE, "float[3,4] t", r"Neg node making 't' in function local.F .* it makes \[2, 4\]"),
        (OF_SHAPE, "float[N,5] t", r"Neg node making 't' in function local.F .* it makes \[2, 4\]"),
        ("s = Shape(a) b = Reshape(a, s)", "float[3,4] a", "states its input 'a' to have shape"),
        (
            "c = Constant<value = bool {1}>() b = If (c) <then_branch = p () => (float[3,4] t) "
            "{ t = Neg(a) }, else_branch = q () => (e) { e = Abs(a) }>",
            "int64[2] unused",
            r"Neg node making 't' in function local.F > If.then_branch .* it makes \[2, 4\]",
        ),
        ("k = Shape(a) b = MatMul(a, a)", "int64[2] k", "MatMul node making 'b' in function"),
    ],
)
def test_fixed_dimensions_that_a_function_contradicts(nodes: str, stated: str, said: str) -> None:
    with pytest.raises(ConversionError, match=f"with N = 2 .*{said}"):
        onnxreduce_cli.convert(with_function(nodes, stated), dims={"N": 2})


def test_fixed_dimensions_that_a_function_states_rightly() -> None:
    feeds = {"x": np.arange(8, dtype=np.float32).reshape(2, 4)}
    for stated in ("float[2,4] t", "float[N,4] t", "float[M,4] t, int64[2] s", "float[N,4] a"):
        source = with_function(OF_SHAPE, stated)
        result = onnxreduce_cli.convert(source, dims={"N": 2})
        assert_same(run(source, feeds)["y"], run(result, feeds)["y"])
    # Called with two sizes it has neither.
    twice = with_function(OF_SHAPE, "float[N,4] t")
    twice.graph.node.insert(0, onnx.helper.make_node("Transpose", ["x"], ["u"], perm=[1, 0]))
    twice.graph.node.insert(1, onnx.helper.make_node("F", ["u"], ["v"], domain="local"))
    twice.graph.node[2].output[0] = "w"
    twice.graph.node.append(onnx.helper.make_node("MatMul", ["w", "v"], ["y"]))
    result = onnxreduce_cli.convert(twice, dims={"N": 2})
    assert_same(run(twice, feeds)["y"], run(result, feeds)["y"])
