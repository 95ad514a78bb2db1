"""What is written in place of reductions for runtimes that get a form of them wrong: the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import ModelProto

import onnxreduce_cli
from onnxreduce_cli.errors import ConversionError
from onnxreduce_cli.schemas import REDUCE
from onnxreduce_cli.targets import requirement
from tests.engine.test_runtime import odd
from tests.support import assert_same, model, one_node, op_types, run

#: Converts a node for a runtime that gets a form of it wrong, runs both, compares.
Rewrite = Callable[..., ModelProto]

RNG = np.random.default_rng(11)


def data(*shape: int, dtype: Any = np.float32) -> Any:
    return RNG.integers(1, 60, shape).astype(dtype)


@pytest.fixture
def rewrite(monkeypatch: pytest.MonkeyPatch) -> Rewrite:
    def call(
        form: str,
        op_type: str,
        opset: int,
        x: Any,
        axes: Sequence[int] | None = None,
        *,
        dims: Sequence[Any] | None = None,
        **attributes: Any,
    ) -> ModelProto:
        inputs = {"x": x}
        if axes is not None and opset >= (13 if op_type == "ReduceSum" else 18):
            inputs["axes"] = np.array(axes, np.int64)
        elif axes is not None:
            attributes["axes"] = list(axes)
        attributes = {name: value for name, value in attributes.items() if value is not None}
        shapes = {} if dims is None else {"x": dims}
        source = one_node(
            op_type, opset, inputs, initializers=("axes",), shapes=shapes, **attributes
        )
        target = odd(f"{op_type}||{form.replace(' ', '_')}|wrong", newest=opset)
        monkeypatch.setattr(requirement, "find_target", lambda _: target)
        made = onnxreduce_cli.convert(source, opset, runtime="odd", check=False)
        assert made.opset_import[0].version == opset
        (change,) = onnxreduce_cli.plan(source, opset, runtime="odd").changes
        written = change.summary.rpartition("(fails): ")[2]
        assert not written.startswith(("written as at an older opset", "written in other"))
        assert made.graph.node != source.graph.node
        onnx.checker.check_model(made, full_check=True)
        # Older versions of ONNX Runtime fail where nothing is reduced.
        noop = attributes.get("noop_with_empty_axes") == 1
        before, after = (run(item, {"x": x}, in_numpy=noop) for item in (source, made))
        assert_same(before["y0"], after["y0"])
        return made

    return call


@pytest.mark.parametrize("op_type", REDUCE)
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_no_reduction(rewrite: Rewrite, op_type: str, dtype: Any) -> None:
    if op_type.startswith("ReduceLog") and dtype == np.int32:
        dtype = np.float64
    made = rewrite("noop", op_type, 18, data(2, 3, dtype=dtype), noop_with_empty_axes=1)
    assert op_type not in op_types(made)


def test_no_reduction_of_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    source = one_node(
        "ReduceL1", 18, {"x": data(2, 3, dtype=ml_dtypes.bfloat16)}, noop_with_empty_axes=1
    )
    monkeypatch.setattr(
        requirement, "find_target", lambda _: odd("ReduceL1||noop|wrong", newest=18)
    )
    assert op_types(onnxreduce_cli.convert(source, runtime="odd", check=False)) == ["Abs"]


def test_no_reduction_maybe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether there are axes is known at run time: it is written as before there was that."""
    inputs = {"x": data(2, 3), "axes": np.array([1])}
    source = one_node("ReduceMax", 18, inputs, noop_with_empty_axes=1)
    monkeypatch.setattr(
        requirement, "find_target", lambda _: odd("ReduceMax||noop|wrong", newest=18)
    )
    made = onnxreduce_cli.convert(source, runtime="odd", check=False)
    assert "If" in op_types(made)
    assert_same(run(source, inputs)["y0"], run(made, inputs)["y0"])


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize(
    ("dtype", "opset"),
    [
        (np.float32, 11),
        (np.float16, 13),
        (np.float64, 18),
        (np.int32, 11),
        (np.int64, 18),
        (np.int8, 13),
        (np.int8, 18),
        (np.uint8, 12),
        (np.uint8, 18),
        (np.uint32, 13),
    ],
)
def test_the_opposite(rewrite: Rewrite, op_type: str, dtype: Any, opset: int) -> None:
    x = data(2, 3, 4, dtype=dtype)
    if np.issubdtype(dtype, np.integer):
        x[0, 0, :2] = np.iinfo(dtype).min, np.iinfo(dtype).max
    opposite = {"ReduceMax": "ReduceMin", "ReduceMin": "ReduceMax"}[op_type]
    for axes, keepdims in ((None, 1), ([1], 0), ([0, -1], 1)):
        made = rewrite("any", op_type, opset, x, axes, keepdims=keepdims)
        assert opposite in op_types(made)
        assert op_type not in op_types(made)


@pytest.mark.newest
def test_the_opposite_of_booleans(rewrite: Rewrite) -> None:
    x = np.array([[True, False], [False, False], [True, True]])
    for op_type in ("ReduceMax", "ReduceMin"):
        found = op_types(rewrite("any", op_type, 20, x, [1], keepdims=0))
        assert found.count("Not") == 2


@pytest.mark.parametrize("op_type", ["ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceSumSquare"])
@pytest.mark.parametrize("keepdims", [0, 1, None])
@pytest.mark.parametrize("opset", [11, 18])
def test_single_elements(rewrite: Rewrite, op_type: str, keepdims: int, opset: int) -> None:
    for shape, axes in (((1, 3), [0]), ((2, 1, 1, 3), [1, -2]), ((1, 1), [0, 1])):
        made = rewrite("single elements", op_type, opset, data(*shape), axes, keepdims=keepdims)
        assert not any(name.startswith("Reduce") for name in op_types(made))


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMean", "ReduceSum"])
@pytest.mark.parametrize("keepdims", [0, 1, None])
@pytest.mark.parametrize("opset", [11, 18])
def test_one_dimension_after_the_other(
    rewrite: Rewrite, op_type: str, keepdims: int, opset: int
) -> None:
    for shape, axes in (((2, 3, 4), [0, 1]), ((2, 3, 4, 5), [0, 2]), ((2, 3, 4, 5), [1, 0, -2])):
        made = rewrite("outer axes", op_type, opset, data(*shape), axes, keepdims=keepdims)
        assert op_types(made).count(op_type) == len(axes)


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceSum", "ReduceL2"])
def test_axes_from_the_front(rewrite: Rewrite, op_type: str) -> None:
    made = rewrite("negative axes", op_type, 11, data(2, 3, 4, 5), [1, -1], keepdims=0)
    (node,) = made.graph.node
    assert node.op_type == op_type
    assert [list(item.ints) for item in node.attribute if item.name == "axes"] == [[1, 3]]


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceSum", "ReduceL2"])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("opset", [11, 18])
def test_all_axes(rewrite: Rewrite, op_type: str, keepdims: int, opset: int) -> None:
    made = rewrite("all axes", op_type, opset, data(2, 3), [0, 1], keepdims=keepdims)
    (node,) = made.graph.node
    assert (node.op_type, list(node.input)) == (op_type, ["x"])
    assert {item.name for item in node.attribute} <= {"keepdims"}


@pytest.mark.parametrize("op_type", ["ReduceMin", "ReduceSum", "ReduceLogSumExp"])
@pytest.mark.parametrize("opset", [11, 18])
def test_kept_dimensions(rewrite: Rewrite, op_type: str, opset: int) -> None:
    for axes in ([1], [0, 2], [-1], None):
        made = rewrite("kept dimensions", op_type, opset, data(2, 3, 4), axes)
        assert op_types(made)[:2] == [op_type, "Unsqueeze"]


@pytest.mark.parametrize("keepdims", [0, 1, None])
@pytest.mark.parametrize("opset", [11, 18])
@pytest.mark.parametrize(
    ("form", "axes"),
    [
        ("three kept", [0]),
        ("three kept", [1]),
        ("three kept", [-2]),
        ("last kept", [0, 1]),
        ("three reduced", [1, 2, 3]),
        ("three reduced, not last", [0, 2, 1]),
    ],
)
def test_rows(
    rewrite: Rewrite, form: str, axes: list[int], keepdims: int | None, opset: int
) -> None:
    for op_type in ("ReduceMax", "ReduceSum"):
        for dims in ([3, 4, 3, 5], [3, "N", 3, 5], [3, 4, 3, "N"]):
            x = data(3, 4, 3, 5)
            made = rewrite(form, op_type, opset, x, axes, dims=dims, keepdims=keepdims)
            found = op_types(made)
            assert found.count("Reshape") == 2
            assert op_type in found
            assert ("Transpose" in found) == (axes != [1, 2, 3])


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize(
    ("op_type", "shape", "axes", "matrices"),
    [
        ("ReduceMax", (3, 40), [0], 1),
        ("ReduceMax", (1536, 3), [1], 2),
        ("ReduceSum", (3, 40, 50), [0], 2),
        ("ReduceProd", (40, 2, 80), [1], 3),
        ("ReduceMin", (2, 40, 50), [1], 1),
    ],
)
def test_few_rows(
    rewrite: Rewrite,
    op_type: str,
    shape: tuple[int, ...],
    axes: list[int],
    matrices: int,
    keepdims: int,
) -> None:
    x = data(*shape)
    found = op_types(rewrite("in threads", op_type, 11, x, axes, keepdims=keepdims))
    assert found.count(op_type) == matrices
    assert found.count("Concat") == (matrices > 1)


def test_more_rows_than_are_written_out(rewrite: Rewrite) -> None:
    with pytest.raises(ConversionError, match="100,000 results, more than are written out"):
        rewrite("in threads", "ReduceMax", 11, data(100_000, 2), [1])


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [0, 1, -2, None])
@pytest.mark.parametrize("dims", [[2, 3, 4], ["N", 3, 4], [2, 3, "N"], ["M", 3, "N"]])
def test_a_matrix_of_rows(
    rewrite: Rewrite, op_type: str, axis: int | None, dims: list[Any]
) -> None:
    given = {} if axis is None else {"axis": axis}
    made = rewrite("flattening", op_type, 11, data(2, 3, 4) / 20, dims=dims, **given)
    node = next(node for node in made.graph.node if node.op_type == op_type)
    assert [item.i for item in node.attribute] == [1]
    assert ("Flatten" in op_types(made)) == (dims.count("M") == 1)


@pytest.mark.parametrize(("rows", "dims"), [(1, [1, 3, 4]), (0, [0, "N", 4])])
def test_a_matrix_of_one_row_or_none(rewrite: Rewrite, rows: int, dims: list[Any]) -> None:
    made = rewrite("flattening", "Softmax", 11, data(rows, 3, 4) / 20, dims=dims, axis=1)
    assert ("Flatten" in op_types(made)) == (rows == 0)


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [0, 1, -2, -3])
def test_the_last_dimension(rewrite: Rewrite, op_type: str, axis: int) -> None:
    made = rewrite("inner axis", op_type, 13, data(2, 3, 4) / 20, axis=axis)
    assert op_types(made) == ["Transpose", op_type, "Transpose"]


def test_the_last_dimension_of_an_unknown_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 13]>
        g (float[2,3,4] x, int64[k] s) => (float[a] y) <int64[1] all = {-1}> {
            r = Reshape(x, s)
            t = Softmax<axis = 1>(r)
            y = Reshape(t, all)
        }""")
    monkeypatch.setattr(
        requirement, "find_target", lambda _: odd("Softmax||inner_axis|wrong", newest=13)
    )
    (change,) = onnxreduce_cli.plan(source, 13, runtime="odd").changes
    assert "written as at an older opset" in change.summary


@pytest.mark.parametrize("opset", [9, 11, 12, 13, 18])
@pytest.mark.parametrize("axis", [0, 1, 2, None])
def test_the_first_of_the_greatest(rewrite: Rewrite, opset: int, axis: int | None) -> None:
    given = {} if axis is None else {"axis": axis}
    for x in (data(2, 3, 4), np.ones((2, 3, 4), np.float32), -data(2, 3, 4)):
        found = op_types(rewrite("any", "Hardmax", opset, x // 20, **given))
        assert "Hardmax" not in found
        assert "ReduceMax" in found
        assert ("Reshape" in found) == (opset < 13 and axis != 2)
    for shape in ((2, 1, 3), (2, 3, 1), (3, 1, 1), (2, 1, 3, 2)):
        found = op_types(rewrite("any", "Hardmax", opset, data(*shape), **given))
        after = shape[(1 if axis is None else axis) + 1 :]
        assert ("Reshape" in found) == (opset < 13 and max(after, default=1) > 1)


def test_what_is_not_known_blocks(rewrite: Rewrite) -> None:
    for form, op_type, x, dims, reason in [
        ("any", "Hardmax", data(2, 3), [2, "N"], "its shape is not known"),
        ("three kept", "ReduceMax", data(2, 3, 4, 5), ["M", "N", 4, 5], "its shape is not known"),
        ("in threads", "ReduceMax", data(2, 3, 4, 5), ["N", 3, 4, 5], "its shape is not known"),
    ]:
        axes = [0] if op_type == "ReduceMax" else None
        with pytest.raises(ConversionError, match=reason):
            rewrite(form, op_type, 13, x, axes, dims=dims)
