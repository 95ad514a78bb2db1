"""Softmax, LogSoftmax and Hardmax across 11 and 13: the same numbers by other means."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import onnxreduce_cli
from onnxreduce_cli.schemas import SOFTMAX
from onnxreduce_cli.steps.reduction import softmax
from tests.support import blockers, converts, model, one_node, op_types


def data(*shape: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(7)
    return rng.normal(0, 3, shape).astype(np.float32)


def axis_of(found: ModelProto, op_type: str) -> Any:
    node = next(node for node in found.graph.node if node.op_type == op_type)
    return next((a.i for a in node.attribute if a.name == "axis"), None)


SHAPES: list[tuple[int, ...]] = [
    (3, 4),
    (2, 3, 4),
    (2, 3, 1),
    (2, 1, 1, 3),
    (1, 1),
    (2, 0, 3),
    (0, 4),
    (3, 0),
    (2, 3, 0, 2),
    (5,),
]


@pytest.mark.parametrize("op_type", SOFTMAX)
@pytest.mark.parametrize(("shape", "axis"), [((5,), None), ((5,), 1), ((2, 3), 2), ((), 0)])
def test_up_with_an_axis_that_is_the_rank(
    op_type: str, shape: tuple[int, ...], axis: int | None
) -> None:
    """Each element is normalised by itself; ONNX Runtime takes no such axis at any opset."""
    x = data(*shape)
    attributes = {} if axis is None else {"axis": axis}
    source = one_node(op_type, 9, {"x": x}, **attributes)
    for target in (10, 11, 12, 13, 18):
        converts(source, target, {"x": x}, in_numpy=True)


@pytest.mark.parametrize("op_type", SOFTMAX)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("told", ["known", "first symbolic", "all symbolic"])
def test_both_ways_for_every_axis(op_type: str, shape: tuple[int, ...], told: str) -> None:
    x = data(*shape)
    count = {"known": 0, "first symbolic": 1, "all symbolic": len(shape)}[told]
    dims = [f"d{i}" if i < count else n for i, n in enumerate(shape)]
    # ONNX Runtime runs most sizes of 0, but not all of its versions do.
    in_numpy = 0 in shape
    for axis in range(-len(shape), len(shape)):
        old = one_node(op_type, 11, {"x": x}, shapes={"x": dims}, axis=axis)
        new = one_node(op_type, 13, {"x": x}, shapes={"x": dims}, axis=axis)
        for target in (13, 14):
            converts(old, target, {"x": x}, in_numpy=in_numpy)
        for target in (12, 10, 1):
            converts(new, target, {"x": x}, in_numpy=in_numpy)


@pytest.mark.parametrize("op_type", SOFTMAX)
@pytest.mark.parametrize("source", [1, 11])
def test_where_it_is_the_same_thing_the_node_stays(op_type: str, source: int) -> None:
    for shape, axis, expected in [
        ((2, 3, 4), 2, 2),
        ((2, 3, 1), 1, 1),
        ((2, 1, 3), 1, 2),
        ((2, 1, 1), 1, 1),
        ((2, 3), None, 1),
        (("N", 3, 1, 1), None, 1),
    ]:
        given = {} if axis is None else {"axis": axis}
        x = data(*(2 if isinstance(n, str) else n for n in shape))
        old = one_node(op_type, source, {"x": x}, shapes={"x": shape}, **given)
        new = converts(old, 13, {"x": x})
        assert op_types(new) == [op_type]
        assert axis_of(new, op_type) == expected


@pytest.mark.parametrize("op_type", SOFTMAX)
@pytest.mark.parametrize(("opset", "target"), [(11, 13), (13, 12)])
def test_an_axis_that_stands_there_and_holds_is_not_a_change(
    op_type: str, opset: int, target: int
) -> None:
    for shape, axis in (((2, 3, 4), -1), ((2, 3, 4), 2), ((2, 3), 1), ((2, 3, 1), 1)):
        x = data(*shape)
        source = one_node(op_type, opset, {"x": x}, axis=axis)
        assert converts(source, target, {"x": x}).graph.node[0] == source.graph.node[0]
        assert not onnxreduce_cli.plan(source, target).changes


def test_the_plan_says_what_was_done_of_what_there_is_to_do() -> None:
    x = data(2, 3, 4)
    for axis, words in [
        ({}, "axis=2 added"),
        ({"axis": 1}, "axis 1 → 2"),
    ]:
        (change,) = onnxreduce_cli.plan(one_node("Softmax", 13, {"x": x}, **axis), 12).changes
        assert change.edits == (words,)


@pytest.mark.parametrize("op_type", SOFTMAX)
def test_over_several_dimensions_it_is_a_matrix_in_between(op_type: str) -> None:
    x = data(2, 3, 4)
    old = one_node(op_type, 11, {"x": x}, axis=1)
    assert op_types(converts(old, 13, {"x": x})) == ["Flatten", op_type, "Reshape"]
    empty = one_node(op_type, 11, {"x": data(2, 0, 4)}, axis=1)
    assert op_types(onnxreduce_cli.convert(empty, 13)) == ["Identity"]


@pytest.mark.parametrize("op_type", SOFTMAX)
def test_an_axis_that_is_not_the_last_is_transposed(op_type: str) -> None:
    x = data(2, 3, 4)
    new = one_node(op_type, 13, {"x": x}, axis=1)
    down = converts(new, 12, {"x": x})
    assert op_types(down) == ["Transpose", op_type, "Transpose"]
    assert [node.name for node in down.graph.node if node.op_type == op_type] == ["node"]
    # The shapes of a batch that is not known make no difference.
    new = one_node(op_type, 13, {"x": x}, shapes={"x": ["N", 3, "M"]}, axis=1)
    converts(new, 9, {"x": x}, {"x": data(5, 3, 2)})


@pytest.mark.parametrize("op_type", SOFTMAX)
def test_the_default_axis_is_written_out(op_type: str) -> None:
    x = data(2, 3, 4)
    assert axis_of(converts(one_node(op_type, 13, {"x": x}), 12, {"x": x}), op_type) == 2
    assert axis_of(converts(one_node(op_type, 1, {"x": x}), 11, {"x": x}), op_type) is None


def unknown_rank(op_type: str, opset: int, axis: str) -> ModelProto:
    return model(f"""<ir_version: 8, opset_import: ["" : {opset}]>
        g (float[2,3,4] x, int64[k] s) => (float[2,3,4] y) {{
            r = Reshape(x, s)
            [n] t = {op_type}{axis}(r)
            back = Shape(x)
            y = Reshape(t, back)
        }}""")


def test_branches_in_a_function_that_nothing_calls_state_no_dtype() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 12, "local" : 1]>
        g (float[2,3] x) => (float[2,3] y) { y = Neg(x) }
        <domain: "local", opset_import: ["" : 12]>
        F (a) => (b) { b = Softmax<axis = 1>(a) }""")
    (body,) = onnxreduce_cli.convert(source, 13).functions
    (last,) = (node for node in body.node if node.op_type == "If")
    assert not any(output.HasField("type") for item in last.attribute for output in item.g.output)


@pytest.mark.parametrize("op_type", SOFTMAX)
def test_a_negative_axis_is_none_that_may_be_the_rank(op_type: str) -> None:
    result = onnxreduce_cli.convert(unknown_rank(op_type, 9, "<axis = -1>"), 12, check=False)
    assert "Unsqueeze" not in op_types(result)


@pytest.mark.parametrize("op_type", SOFTMAX)
@pytest.mark.parametrize("target", [13, 14, 18])
@pytest.mark.parametrize("axis", ["", "<axis = 1>", "<axis = -1>", "<axis = -2>", "<axis = 0>"])
def test_an_unknown_rank_going_up(op_type: str, target: int, axis: str) -> None:
    x = data(2, 3, 4)
    shapes = [(2, 3, 4), (6, 4), (2, 12), (1, 2, 3, 4), (4, 1, 6)]
    feeds = [{"x": x, "s": np.array(shape, np.int64)} for shape in shapes]
    converts(unknown_rank(op_type, 12, axis), target, *feeds)


@pytest.mark.parametrize("op_type", SOFTMAX)
@pytest.mark.parametrize("target", [10, 11, 12, 13, 14])
@pytest.mark.parametrize("axis", ["", "<axis = 2>"])
def test_an_axis_that_may_be_an_unknown_rank_going_up(op_type: str, target: int, axis: str) -> None:
    shapes = [(24,), (2, 12)] if not axis else [(4, 6), (2, 3, 4)]
    feeds = [{"x": data(2, 3, 4), "s": np.array(shape, np.int64)} for shape in shapes]
    result = converts(unknown_rank(op_type, 9, axis), target, *feeds, in_numpy=True)
    assert ("Unsqueeze" in op_types(result)) == (target in (11, 12))


@pytest.mark.parametrize("op_type", SOFTMAX)
@pytest.mark.parametrize("target", [13, 14, 18])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_sizes_of_zero_in_an_unknown_rank_going_up(op_type: str, target: int, axis: int) -> None:
    source = model(
        f"""<ir_version: 8, opset_import: ["" : 12]>
        g (float[a,b,c] x, bool f) => (float[p,q,r] y) {{
            r = If (f) <
                then_branch = t () => (float u) {{ u = Identity(x) }},
                else_branch = e () => (float v) {{ v = Squeeze<axes = [0]>(x) }}
            >
            y = {op_type}<axis = {axis}>(r)
        }}""".replace("float u", "float[p1,q1,r1] u").replace("float v", "float[p2,q2] v")
    )
    for shape in [(2, 3, 4), (2, 0, 4), (0, 3, 4), (2, 3, 0), (0, 0, 0), (0, 0, 4)]:
        feeds = {"x": data(*shape), "f": np.array(True)}
        result = converts(source, target, feeds, in_numpy=True)
    assert (op_types(result) == op_types(source)) == (axis == -1)
    assert op_types(result).count("If") == (2 if target == 13 and axis != -1 else 1)
    added = [a.i for node in result.graph.node for a in node.attribute if a.name == "allowzero"]
    assert added == ([1] if target > 13 and axis != -1 else [])
    (*_, last) = [node for node in result.graph.node if node.op_type == "If"]
    branches = [item.g.output[0].type.tensor_type.elem_type for item in last.attribute]
    assert branches == [TensorProto.FLOAT] * 2


@pytest.mark.parametrize(
    ("dims", "axis", "copied"),
    [
        ((2, 3, 4), 1, True),
        (("N", 3, 4), 0, False),
        (("N", 3, 4), 1, True),
        (("N", 3, 4), 2, True),
        ((2, "N", 4), 0, True),
        ((2, "N", 4), 1, True),
        ((2, "N", 4), 2, False),
        ((2, 3, "N"), 0, False),
        ((2, 3, "N"), 1, False),
        (("N", None, 4), 1, True),
        (("N", None, 4), 0, False),
    ],
)
def test_which_sizes_of_zero_a_reshape_copies(
    dims: tuple[int | str | None, ...], axis: int, copied: bool
) -> None:
    assert softmax._zeros_are_copied(dims, axis) is copied


@pytest.mark.parametrize("op_type", SOFTMAX)
def test_an_unknown_rank_going_down(op_type: str) -> None:
    x = data(2, 3, 4)
    feeds = [{"x": x, "s": np.array(s, np.int64)} for s in ((2, 3, 4), (6, 4), (24,))]
    for axis in ("", "<axis = -1>"):
        result = converts(unknown_rank(op_type, 13, axis), 12, *feeds)
        assert axis_of(result, op_type) == -1


@pytest.mark.parametrize("op_type", SOFTMAX)
@pytest.mark.parametrize("axis", ["", "<axis = 0>", "<axis = 1>", "<axis = -1>", "<axis = -2>"])
def test_an_axis_in_an_unknown_rank_going_down(op_type: str, axis: str) -> None:
    x = data(2, 3, 4)
    feeds = [{"x": x, "s": np.array(s, np.int64)} for s in ((2, 3, 4), (6, 4), (1, 2, 2, 6))]
    none = [
        {"x": data(2, 0, 4), "s": np.array(s, np.int64)} for s in ((2, 0, 4), (3, -1), (0, 4, 5))
    ]
    for opset, target in ((13, 12), (13, 10), (13, 7), (11, 10), (12, 7)):
        source = unknown_rank(op_type, opset, axis)
        result = converts(source, target, *feeds)
        converts(source, target, *none[:1], in_numpy=True)
        if opset == 11:
            assert (op_types(result) == op_types(source)) == ("-" not in axis)


@pytest.mark.parametrize("op_type", SOFTMAX)
def test_special_numbers(op_type: str) -> None:
    inf = np.inf
    rows = [[1e4, -1e4, 0.0], [inf, 1.0, 2.0], [-inf, -inf, -inf], [-inf, 1.0, 2.0], [5, 5, 5]]
    if op_type != "Hardmax":
        rows.append([np.nan, 1.0, 2.0])
    x = np.array(rows, np.float32).reshape(1, len(rows), 3)
    for axis in (0, 1, 2):
        converts(one_node(op_type, 11, {"x": x}, axis=axis), 13, {"x": x}, in_numpy=True)
        converts(one_node(op_type, 13, {"x": x}, axis=axis), 9, {"x": x}, in_numpy=True)


@pytest.mark.parametrize("op_type", SOFTMAX)
@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_floats(op_type: str, dtype: Any) -> None:
    x = data(2, 3, 4).astype(dtype)
    converts(one_node(op_type, 11, {"x": x}, axis=0), 13, {"x": x})
    converts(one_node(op_type, 13, {"x": x}, axis=0), 8, {"x": x})


@pytest.mark.parametrize("op_type", SOFTMAX)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_bfloat16_below_13_blocks(op_type: str, axis: int) -> None:
    x = data(2, 3, 4).astype(ml_dtypes.bfloat16)
    (blocker,) = blockers(one_node(op_type, 13, {"x": x}, axis=axis), 12)
    assert "tensor(bfloat16), which came with opset 13" in blocker.reason


def test_ties_of_hardmax_go_to_the_first() -> None:
    x = np.array([[[1, 2], [2, 1], [2, 2]]], np.float32)
    for axis, source in itertools.product((0, 1, 2), (11, 13)):
        found = one_node("Hardmax", source, {"x": x}, axis=axis)
        converts(found, 24 - source, {"x": x}, exact=True)


def test_an_attribute_reference_is_resolved() -> None:
    def calling(*axes: int) -> ModelProto:
        calls = " ".join(f"y{i} = local.F<axis = {axis}>(x)" for i, axis in enumerate(axes))
        outputs = ", ".join(f"float[2,3,4] y{i}" for i, _ in enumerate(axes))
        return model(f"""<ir_version: 8, opset_import: ["" : 13, "local" : 1]>
            g (float[2,3,4] x) => ({outputs}) {{ {calls} }}
            <domain: "local", opset_import: ["" : 13]>
            F <axis> (a) => (b) {{ [inner] b = Softmax<axis : int = @axis>(a) }}""")

    x = data(2, 3, 4)
    result = converts(calling(1, 1), 12, {"x": x})
    assert result.functions[0].node[0].op_type == "Transpose"
    result = converts(calling(1, 2), 12, {"x": x})
    assert [len(function.node) > 1 for function in result.functions] == [True, False]


def test_the_attribute_axis_out_of_range_is_said_to_be() -> None:
    x = helper.make_tensor_value_info("x", 1, [2, 3])
    y = helper.make_tensor_value_info("y", 1, [2, 3])
    node = helper.make_node("Softmax", ["x"], ["y"], axis=2)
    source = helper.make_model(
        helper.make_graph([node], "g", [x], [y]), opset_imports=[helper.make_opsetid("", 13)]
    )
    with pytest.raises(onnxreduce_cli.InvalidModelError, match=r"Softmax .*'axis' must be in"):
        onnxreduce_cli.plan(source, 12)
