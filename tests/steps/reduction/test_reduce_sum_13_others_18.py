"""The Reduce family across the boundaries of its axes, and what holds at all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, helper

import onnxreduce_cli
from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.schemas import REDUCE, REDUCE_BUT_SUM
from tests.steps.checklist import newest_declared
from tests.support import blockers, converts, model, one_node, op_types

DATA = np.array(
    [[[1.5, -2.0, 0.25], [3.0, -0.0, 7.0]], [[-1.0, 2.0, 5.0], [0.5, 4.0, -6.0]]], np.float32
)
POSITIVE = np.abs(DATA) + 0.5
NASTY = np.array([[np.nan, 1.0, 2.0], [np.inf, -0.0, 3.0], [-np.inf, 4.0, -5.0]], np.float32)
AXES = np.array([1], np.int64)


def attributes(node: NodeProto) -> dict[str, Any]:
    return {item.name: helper.get_attribute_value(item) for item in node.attribute}


def data_for(op_type: str) -> np.ndarray[Any, Any]:
    return POSITIVE if op_type == "ReduceLogSum" else DATA


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


# Axes: attribute to input, and back


@pytest.mark.parametrize(
    ("op_type", "boundary"), [("ReduceSum", 13), *((op, 18) for op in REDUCE_BUT_SUM)]
)
@pytest.mark.parametrize("keepdims", [0, 1, None])
@pytest.mark.parametrize("axes", [[1], [0, 2], [-1], [2, 0], None])
def test_axes_become_an_input_and_an_attribute_again(
    op_type: str, boundary: int, keepdims: int | None, axes: list[int] | None
) -> None:
    given = {
        key: value for key, value in (("keepdims", keepdims), ("axes", axes)) if value is not None
    }
    x = data_for(op_type)
    source = one_node(op_type, boundary - 1, {"x": x}, **given)
    up = converts(source, boundary, {"x": x})
    node = up.graph.node[0]
    expected = {} if keepdims is None else {"keepdims": keepdims}
    assert attributes(node) == expected
    if axes is None:
        assert list(node.input) == ["x"]
        assert not up.graph.initializer
    else:
        assert list(node.input) == ["x", "node_axes"]
        assert [tensor.name for tensor in up.graph.initializer] == ["node_axes"]
    down = converts(up, boundary - 1, {"x": x})
    assert attributes(down.graph.node[0]) == given
    assert down.graph == source.graph


def test_equal_axes_are_one_initializer() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[2,3,4] x) => (float[2,1,4] a, float[2,1,4] b, float[1,1,4] c, float[2,1,4] d) {
            [first] a = ReduceMax<axes = [1]>(x)
            [second] b = ReduceMin<axes = [1]>(x)
            [third] c = ReduceMax<axes = [0, 1]>(x)
            [fourth] d = ReduceMean<axes = [1]>(x)
        }""")
    result = converts(source, 18, {"x": np.ones((2, 3, 4), np.float32)}, exact=True)
    assert [tensor.name for tensor in result.graph.initializer] == ["first_axes", "third_axes"]
    assert [node.input[1] for node in result.graph.node] == [
        "first_axes",
        "first_axes",
        "third_axes",
        "first_axes",
    ]


@pytest.mark.parametrize(
    ("op_type", "boundary"), [("ReduceSum", 13), *((op, 18) for op in REDUCE_BUT_SUM)]
)
def test_an_empty_list_of_axes_means_all(op_type: str, boundary: int) -> None:
    x = data_for(op_type)
    source = one_node(op_type, boundary - 1, {"x": x}, axes=[])
    result = converts(source, boundary, {"x": x})
    assert list(result.graph.node[0].input) == ["x"]
    source = one_node(op_type, boundary, {"x": x, "axes": ints()}, initializers=("axes",))
    result = converts(source, boundary - 1, {"x": x})
    assert attributes(result.graph.node[0]) == {}


# noop_with_empty_axes


@pytest.mark.parametrize("op_type", REDUCE)
@pytest.mark.parametrize("noop", [0, 1])
def test_noop_with_axes_says_nothing(op_type: str, noop: int) -> None:
    x = data_for(op_type)
    source = one_node(
        op_type,
        18,
        {"x": x, "axes": ints(-1)},
        initializers=("axes",),
        noop_with_empty_axes=noop,
        keepdims=0,
    )
    result = converts(source, 12, {"x": x})
    assert attributes(result.graph.node[0]) == {"axes": [-1], "keepdims": 0}


@pytest.mark.parametrize(("axes", "left"), [([0, 1], "ReduceMax"), ([], "Identity")])
def test_noop_with_axes_of_a_function(axes: list[int], left: str) -> None:
    source = model(f"""<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
        g (float[2,3] x) => (float[k,l] y) {{ y = local.F<axes : ints = {axes}>(x) }}
        <domain: "local", opset_import: ["" : 18]>
        F <axes> (a) => (b) {{
            list = Constant<value_ints : ints = @axes>()
            b = ReduceMax<noop_with_empty_axes = 1>(a, list)
        }}""")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    result = converts(source, 13, {"x": x})
    assert [node.op_type for node in result.functions[0].node] == [left]


@pytest.mark.parametrize("op_type", REDUCE)
def test_noop_of_zero_reduces_all(op_type: str) -> None:
    x = data_for(op_type)
    source = one_node(op_type, 18, {"x": x}, noop_with_empty_axes=0)
    result = converts(source, 12, {"x": x})
    assert attributes(result.graph.node[0]) == {}
    assert op_types(result) == [op_type]


@pytest.mark.parametrize("op_type", REDUCE)
def test_over_all_dimensions_nothing_changes(op_type: str) -> None:
    source = one_node(op_type, 18, {"x": data_for(op_type)})
    assert not onnxreduce_cli.plan(source, 12).changes


ELEMENTWISE = {
    "ReduceL1": "Abs",
    "ReduceL2": "Abs",
    "ReduceLogSum": "Log",
    "ReduceSumSquare": "Mul",
}


@pytest.mark.parametrize("op_type", REDUCE)
@pytest.mark.parametrize("empty", ["absent", "an empty initializer"])
@pytest.mark.parametrize("target", [17, 12, 7, 5])
def test_noop_leaves_the_elementwise_part(op_type: str, empty: str, target: int) -> None:
    inputs: dict[str, Any] = {"x": data_for(op_type)}
    if empty != "absent":
        inputs["axes"] = ints()
    source = one_node(op_type, 18, inputs, initializers=("axes",), noop_with_empty_axes=1)
    if op_type == "ReduceSum" and target == 17:
        target = 12
    result = converts(source, target, inputs, in_numpy=True)
    assert op_types(result) == [ELEMENTWISE.get(op_type, "Identity")]
    assert not result.graph.initializer


@pytest.mark.parametrize("op_type", ["ReduceL1", "ReduceL2", "ReduceSumSquare"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
@pytest.mark.parametrize("target", [17, 6, 5, 1])
def test_noop_of_integers(op_type: str, dtype: Any, target: int) -> None:
    x = np.array([[0, 1, 2], [3, 4, 5]], dtype)
    if np.dtype(dtype).kind == "i":
        x = x - 3
    source = one_node(op_type, 18, {"x": x}, noop_with_empty_axes=1)
    result = converts(source, target, {"x": x}, exact=True, in_numpy=True)
    assert (op_type in op_types(result)) == (target < 6)


def test_the_elementwise_part_of_large_numbers_does_not_overflow() -> None:
    x = np.array([1e30, -3e38, 0.0, -0.0, np.inf, np.nan], np.float32)
    source = one_node("ReduceL2", 18, {"x": x}, noop_with_empty_axes=1)
    result = onnxreduce_cli.convert(source, 13)
    assert op_types(result) == ["Abs"]


# Negative axes


@pytest.mark.parametrize("op_type", REDUCE)
@pytest.mark.parametrize(
    ("axes", "positive"), [([-1], [2]), ([-3, 1], [0, 1]), ([0, -2], [0, 1]), ([1, 2], [1, 2])]
)
def test_negative_axes_are_counted_from_the_front(
    op_type: str, axes: list[int], positive: list[int]
) -> None:
    x = data_for(op_type)
    source = one_node(op_type, 11, {"x": x}, axes=axes, shapes={"x": ["N", 2, 3]})
    assert attributes(converts(source, 10, {"x": x}).graph.node[0]) == {"axes": positive}
    assert attributes(converts(source, 12, {"x": x}).graph.node[0]) == {"axes": axes}


def unknown_rank(opset: int, text: str, shape: str = "n") -> ModelProto:
    return model(f"""<ir_version: 8, opset_import: ["" : {opset}]>
        g (float[2,2,3] x, int64[k] s, int64[a] axes) => (float[{shape}] y) {{
            r = Reshape(x, s)
            {text}
        }}""")


@pytest.mark.parametrize("op_type", REDUCE)
def test_negative_axes_of_an_unknown_rank(op_type: str) -> None:
    x = np.abs(DATA) + 0.5
    for axes, keep, shapes in (
        ("[-1]", 0, [(2, 6), (12, 1)]),
        ("[-1, -2]", 0, [(2, 2, 3), (3, 1, 4)]),
        ("[-2]", 1, [(12, 1)]),
    ):
        rank = "a, b" if keep else "a"
        source = unknown_rank(11, f"[n] y = {op_type}<axes = {axes}, keepdims = {keep}>(r)", rank)
        feeds = [{"x": x, "s": ints(*shape), "axes": ints()} for shape in shapes]
        for target in (10, 7, 5):
            assert op_types(converts(source, target, *feeds))[1:] == [
                "Transpose",
                op_type,
                "Transpose",
            ]


@pytest.mark.parametrize("op_type", REDUCE)
def test_axes_from_both_ends_of_an_unknown_rank(op_type: str) -> None:
    x = np.abs(DATA) + 0.5
    for axes, keep, shape in (
        ("[0, -1]", 0, (2, 2, 3)),
        ("[2, -3]", 0, (2, 2, 3)),
        ("[-1, 1]", 1, (2, 2, 3)),
    ):
        rank = "a, b, c" if keep else "a"
        source = unknown_rank(11, f"[n] y = {op_type}<axes = {axes}, keepdims = {keep}>(r)", rank)
        for target in (8, 7):
            result = converts(source, target, {"x": x, "s": ints(*shape), "axes": ints()})
            assert "Transpose" not in op_types(result)
        (blocker,) = blockers(source, 6)
        assert blocker.reason == (
            "the rank of 'r' is not known, and before opset 11 axes are not counted from the back"
        )


def test_positive_axes_of_an_unknown_rank_stay() -> None:
    feeds = {"x": DATA, "s": ints(2, 6), "axes": ints()}
    for axis in (0, 1):
        source = unknown_rank(11, f"[n] y = ReduceMax<axes = [{axis}], keepdims = 0>(r)")
        result = converts(source, 10, feeds, exact=True)
        assert op_types(result) == op_types(source)


def test_an_axis_out_of_range_is_said_to_be() -> None:
    # Shape inference refuses to look, so the checker does too.
    x = helper.make_tensor_value_info("x", 1, [2, 3])
    y = helper.make_tensor_value_info("y", 1, None)
    node = helper.make_node("ReduceMax", ["x"], ["y"], axes=[-3])
    source = helper.make_model(
        helper.make_graph([node], "g", [x], [y]), opset_imports=[helper.make_opsetid("", 11)]
    )
    (blocker,) = blockers(source, 10)
    assert blocker.reason == "its axis -3 is out of range for rank 2"


# The ends of the scale


@pytest.mark.parametrize("op_type", REDUCE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(2, 0, 3), (0,), (0, 0), ()])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_nothing_and_rank_zero(
    op_type: str, dtype: Any, shape: tuple[int, ...], keepdims: int
) -> None:
    x = np.ones(shape, dtype)
    given = {"keepdims": keepdims} | ({"axes": [len(shape) - 1]} if shape else {})
    source = one_node(op_type, 1, {"x": x}, **given)
    for target in (11, 13, 18):
        converts(source, target, {"x": x}, in_numpy=True)
    there = onnxreduce_cli.convert(source, 18)
    assert converts(there, 1, {"x": x}, in_numpy=True).graph.node == source.graph.node


@pytest.mark.parametrize("op_type", REDUCE)
@pytest.mark.parametrize("axes", [[0], [1], [0, 1]])
def test_special_numbers(op_type: str, axes: list[int]) -> None:
    source = one_node(op_type, 11, {"x": NASTY}, axes=axes)
    there = converts(source, 18, {"x": NASTY})
    converts(there, 7, {"x": NASTY})


@pytest.mark.parametrize("op_type", REDUCE)
def test_every_opset_and_back_gives_the_same_node(op_type: str) -> None:
    x = data_for(op_type)
    source = one_node(op_type, 1, {"x": x}, keepdims=0, axes=[0, 2])
    for target in range(2, newest_declared() + 1):
        back = onnxreduce_cli.convert(onnxreduce_cli.convert(source, target), 1)
        assert back.graph == source.graph


# The node's own things


def test_name_documentation_and_metadata_stay_with_the_node() -> None:
    source = one_node("ReduceMax", 17, {"x": DATA}, axes=[1])
    node = source.graph.node[0]
    node.doc_string = "the largest"
    node.metadata_props.add(key="layer", value="7")
    source.ir_version = 10
    for target in (18, 20, 10):
        found = onnxreduce_cli.convert(source, target).graph.node[0]
        assert (found.name, found.doc_string) == ("node", "the largest")
        assert found.metadata_props == node.metadata_props


def test_an_attribute_of_no_definition_is_named() -> None:
    source = one_node("ReduceMax", 17, {"x": DATA})
    source.graph.node[0].attribute.append(helper.make_attribute("noop_with_empty_axes", 0))
    message = "it has an attribute 'noop_with_empty_axes', which ReduceMax-13 does not define"
    with pytest.raises(InvalidModelError, match=message):
        blockers(source, 18)


def test_an_input_of_no_definition_is_named() -> None:
    source = one_node("ReduceMax", 17, {"x": DATA})
    source.graph.node[0].input.append("x")
    with pytest.raises(InvalidModelError, match="2 inputs, which ReduceMax-13 does not allow"):
        blockers(source, 18)


# Where the axes come from

CHAINS = {
    "an initializer": "<int64[1] axes = {1}>|",
    "Constant value": "|axes = Constant<value = int64[1] {1}>()",
    "Constant value_ints": "|axes = Constant<value_ints = [1]>()",
    "Identity twice": "<int64[1] a = {1}>|b = Identity(a) axes = Identity(b)",
    "Sub": "<int64[1] a = {3}, int64[1] b = {2}>|axes = Sub(a, b)",
    "Range": "<int64 a = {1}, int64 b = {2}>|axes = Range(a, b, a)",
    "Concat": "<int64[0] a = {}, int64[1] b = {1}>|axes = Concat<axis = 0>(a, b)",
    "Cast": "<int32[1] a = {1}>|axes = Cast<to = 7>(a)",
    "Unsqueeze of Constant value_int": (
        "<int64[1] zero = {0}>|a = Constant<value_int = 1>() axes = Unsqueeze(a, zero)"
    ),
    "Gather of Shape": (
        "<int64[1] zero = {0}>|s = Shape(x) a = Gather(s, zero) b = Shape(a) axes = Identity(b)"
    ),
    "the rank less two": "<int64[1] two = {2}>|s = Shape(x) r = Shape(s) axes = Sub(r, two)",
    "Reshape": "<int64[1,1] a = {1}, int64[1] s = {-1}>|axes = Reshape(a, s)",
    "Slice": ("<int64[3] a = {0, 1, 2}, int64[1] s = {1}, int64[1] e = {2}>|axes = Slice(a, s, e)"),
    "Squeeze and Size": (
        "<int64[1,1] a = {0}, int64[1] m = {-1}>|q = Size(a) r = Reshape(q, m) axes = Identity(r)"
    ),
}


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("target", [17, 11, 9])
def test_axes_are_folded(chain: str, target: int) -> None:
    head, body = CHAINS[chain].split("|")
    source = model(f"""<ir_version: 8, opset_import: ["" : 18]>
        g (float[N,2,3] x) => (float[N,3] y) {head} {{
            {body}
            [n] y = ReduceMax<keepdims = 0>(x, axes)
        }}""")
    result = converts(source, target, {"x": DATA}, exact=True)
    assert op_types(result) == ["ReduceMax"]
    assert attributes(result.graph.node[0]) == {"keepdims": 0, "axes": [1]}


def test_sparse_constants_are_folded() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,2,3] x) => (float[2,3] y) {
            axes = Constant<value = int64[1] {0}>()
            y = ReduceMax<keepdims = 0>(x, axes)
        }""")
    values = helper.make_tensor("", 7, [1], [1])
    indices = helper.make_tensor("", 7, [1], [0])
    sparse = helper.make_sparse_tensor(values, indices, [1])
    constant = helper.make_node("Constant", [], ["axes"], sparse_value=sparse)
    source.graph.node[0].CopyFrom(constant)
    result = onnxreduce_cli.convert(source, 17)
    assert attributes(result.graph.node[0]) == {"keepdims": 0, "axes": [1]}


def test_an_initializer_that_is_an_input_is_no_constant() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,2,3] x, int64[1] axes) => (float[n,m,k] y) <int64[1] axes = {1}> {
            [n] y = ReduceMax(x, axes)
        }""")
    result = converts(
        source, 13, {"x": DATA}, {"x": DATA, "axes": ints(0)}, {"x": DATA, "axes": ints(-1)}
    )
    assert "If" in op_types(result)
    assert [tensor.name for tensor in result.graph.initializer][:1] == ["axes"]
