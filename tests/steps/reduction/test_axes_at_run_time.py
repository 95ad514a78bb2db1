"""Axes that are only known at run time, where the operator takes them as an attribute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from onnxreduce_cli import convert
from onnxreduce_cli.schemas import REDUCE, REDUCE_BUT_SUM
from onnxreduce_cli.steps.reduction.reduce_sum_13_others_18 import MOST_AXES
from tests.support import blockers, converts, model, op_types, run

X = np.array(
    [[[1.5, -2.0, 0.25], [3.0, -0.0, 7.0]], [[-1.0, 2.0, 5.0], [0.5, 4.0, -6.0]]], np.float32
)
FROM_SUM = ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceMean", "ReduceSumSquare")


def source_of(
    op_type: str, keepdims: int, noop: int, axes: str = "k", dtype: str = "float"
) -> ModelProto:
    rank = "a,b,c" if keepdims else "a"
    output = f"{dtype}[{rank}] y"
    return model(f"""<ir_version: 8, opset_import: ["" : 18]>
        g ({dtype}[2,N,3] x, int64[{axes}] axes) => ({output}) {{
            [n] y = {op_type}<keepdims = {keepdims}, noop_with_empty_axes = {noop}>(x, axes)
        }}""")


def feeds(op_type: str, dtype: Any, *all_axes: list[int]) -> list[dict[str, Any]]:
    x = np.abs(X) + 0.5 if op_type == "ReduceLogSum" else X
    return [{"x": x.astype(dtype), "axes": np.array(axes, np.int64)} for axes in all_axes]


@pytest.mark.parametrize("op_type", REDUCE)
@pytest.mark.parametrize("target", [17, 13, 12, 11, 10, 7])
@pytest.mark.parametrize("noop", [0, 1])
def test_every_choice_of_axes(op_type: str, target: int, noop: int) -> None:
    # That a reduced dimension is kept makes the result's rank one and the same.
    choices = [[], [0], [1], [2], [-1], [-3, 1], [2, 0], [0, 1, 2], [-1, -2, -3]]
    if op_type == "ReduceSum" and target >= 13:
        target = 12
    source = source_of(op_type, 1, noop)
    result = converts(source, target, *feeds(op_type, np.float32, *choices), in_numpy=True)
    again = converts(source, target, *feeds(op_type, np.float32, [1], [0, 2]))
    assert again == result
    if target >= 13 and op_type in FROM_SUM:
        assert "If" not in op_types(result)
        assert "ReduceSum" in op_types(result)
    else:
        used = op_types(result)
        assert used.count("If" if target >= 11 else "Loop") == 3


@pytest.mark.parametrize("op_type", REDUCE)
@pytest.mark.parametrize("target", [13, 12, 10, 7])
def test_dropped_dimensions(op_type: str, target: int) -> None:
    if op_type == "ReduceSum" and target >= 13:
        target = 12
    source = source_of(op_type, 0, 0, axes="2")
    choices = feeds(op_type, np.float32, [0, 1], [2, 0], [-1, -2], [1, -3])
    converts(source, target, *choices)


@pytest.mark.parametrize(("axes", "counted"), [("1", False), ("2", False), ("k", True)])
def test_that_there_are_axes_may_be_known(axes: str, counted: bool) -> None:
    result = convert(source_of("ReduceMax", 1, 0, axes=axes), 13, check=False)
    assert ("Size" in op_types(result)) == counted


@pytest.mark.parametrize("op_type", REDUCE)
@pytest.mark.parametrize("dtype", ["float16", "double", "int32", "int64", "uint32", "uint64"])
@pytest.mark.parametrize("target", [17, 12, 10, 7])
def test_dtypes(op_type: str, dtype: str, target: int) -> None:
    source = source_of(op_type, 1, 0, dtype=dtype)
    numpy = np.dtype({"float16": "f2", "double": "f8"}.get(dtype, dtype))
    choices = feeds(op_type, np.float32, [], [1], [-1, 0])
    for item in choices:
        item["x"] = (np.abs(item["x"]) if numpy.kind == "u" else item["x"]).astype(numpy)
        if op_type in ("ReduceLogSum", "ReduceLogSumExp") and numpy.kind in "iu":
            item["x"] = np.abs(item["x"]) + numpy.type(1)
    converts(source, target, *choices, in_numpy=True)


@pytest.mark.parametrize("op_type", REDUCE)
@pytest.mark.parametrize("shape", [(2, 0, 3), (2, 5, 3)])
def test_sizes_of_zero(op_type: str, shape: tuple[int, ...]) -> None:
    for noop in (0, 1):
        source = source_of(op_type, 1, noop)
        x = np.ones(shape, np.float32)
        choices = [{"x": x, "axes": np.array(a, np.int64)} for a in ([], [0], [1], [1, 2], [-2])]
        for target in (13 if op_type in REDUCE_BUT_SUM else 12, 10):
            converts(source, target, *choices, in_numpy=True)


@pytest.mark.parametrize("op_type", REDUCE)
def test_rank_zero(op_type: str) -> None:
    for noop in (0, 1):
        source = model(f"""<ir_version: 8, opset_import: ["" : 18]>
            g (float x, int64[k] axes) => (float y) {{
                y = {op_type}<noop_with_empty_axes = {noop}>(x, axes)
            }}""")
        given = {"x": np.array(2.5, np.float32), "axes": np.array([], np.int64)}
        for target in (12, 10):
            converts(source, target, given, in_numpy=True)


def test_integers_are_truncated_once() -> None:
    """Two reductions one after the other would truncate twice: log(4) is 1, log(2) is 0."""
    source = source_of("ReduceLogSumExp", 1, 0, dtype="int32")
    given = {"x": np.zeros((2, 2, 3), np.int32), "axes": np.array([0, 1], np.int64)}
    converts(source, 17, given, in_numpy=True)
    converts(source, 10, given, in_numpy=True)


@pytest.mark.parametrize("count", [1, 2, 100])
def test_the_mean_of_so_many_integers(count: int) -> None:
    given = {"x": np.full((2, count, 3), 1000, np.int32), "axes": np.array([1], np.int64)}
    source = source_of("ReduceMean", 1, 0, dtype="int32")
    converts(source, 13, given, {**given, "axes": np.array([1, 2], np.int64)}, in_numpy=True)


def test_the_mean_of_the_largest_integers() -> None:
    x = np.full((2, 3, 3), 2, np.uint64)
    x[:, 0] = 2**63
    source = source_of("ReduceMean", 1, 0, dtype="uint64")
    converts(source, 13, {"x": x, "axes": np.array([1], np.int64)}, exact=True, in_numpy=True)


def test_the_mean_of_no_integers_is_some() -> None:
    """Which one is not defined; dividing by zero may end the process."""
    given = {"x": np.ones((2, 0, 3), np.int32), "axes": np.array([1], np.int64)}
    result = convert(source_of("ReduceMean", 1, 0, dtype="int32"), 13, check=False)
    assert run(result, given)["y"].shape == (2, 1, 3)


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum"])
def test_large_integers_are_exact(op_type: str) -> None:
    x = np.ones((2, 2, 3), np.int64)
    x[0, 0, 0], x[0, 1, 1] = 2**60 + 1, -(2**60) - 1
    given = {"x": x, "axes": np.array([2], np.int64)}
    for target in (12, 10):
        converts(source_of(op_type, 1, 0, dtype="int64"), target, given, exact=True, in_numpy=True)


@pytest.mark.parametrize("op_type", REDUCE)
def test_nothing_stands_for_axes_at_run_time_below_7(op_type: str) -> None:
    source = source_of(op_type, 1, 0)
    for target in (6, 1):
        (blocker,) = blockers(source, target)
        assert blocker.reason == (
            "its axes 'axes' are only known at run time, and before opset "
            f"{13 if op_type == 'ReduceSum' else 18} they are an attribute"
        )
        assert blocker.advice == "make them constant, or choose opset 7 or later"


def test_halves_are_rounded_once() -> None:
    """A sum that leaves float16's range on the way comes back into it."""
    source = source_of("ReduceSum", 1, 0, dtype="float16")
    x = np.zeros((2, 2, 3), np.float16)
    x[0, :, 2], x[1, :, 2] = 40000, -40000
    given = {"x": x, "axes": np.array([0, 1], np.int64)}
    converts(source, 12, given, in_numpy=True)


@pytest.mark.parametrize("op_type", REDUCE)
def test_an_unknown_rank(op_type: str) -> None:
    source = model(f"""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,2,3] x, int64[k] s, int64[1] axes) => (float[a,b] y) {{
            r = Reshape(x, s)
            [n] y = {op_type}(r, axes)
        }}""")
    x = np.abs(X) + 1
    given = [{"x": x, "s": np.array([2, 6]), "axes": np.array([axis])} for axis in (0, 1, -1)]
    for target in (13 if op_type in FROM_SUM else 12, 9):
        converts(source, target, *given)


def test_more_dimensions_than_are_reduced_one_by_one() -> None:
    """It is written as of data whose rank is not known, not with a branch for each."""
    used = []
    for rank in (MOST_AXES, MOST_AXES + 1):
        source = model(f"""<ir_version: 8, opset_import: ["" : 18]>
            g (float[{",".join("1" * rank)}] x, int64[k] axes) => (float[a] y) {{
                r = ReduceMax(x, axes)
                s = Constant<value = int64[1] {{-1}}>()
                y = Reshape(r, s)
            }}""")
        convert(source, 13, in_place=True, emulate=True, check=False)
        used.append(op_types(source))
    assert used[0].count("If") == MOST_AXES
    assert used[1].count("If") < 5


@pytest.mark.parametrize("op_type", ["ReduceSum", "ReduceMax", "ReduceProd", "ReduceLogSumExp"])
@pytest.mark.parametrize("noop", [0, 1])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_an_unknown_rank_without_axes_or_elements(op_type: str, noop: int, keepdims: int) -> None:
    source = model(f"""<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
        g (float[n] x, int64[k] s, int64[a] axes) => (float[i] y, int64[j] shape) {{
            r = Reshape<allowzero = 1>(x, s)
            t = {op_type}<keepdims = {keepdims}, noop_with_empty_axes = {noop}>(r, axes)
            shape = Shape(t)
            flat = Constant<value_ints = [-1]>()
            y = Reshape(t, flat)
        }}""")
    given = [
        {"x": np.ones(np.prod(s, dtype=int), np.float32), "s": np.array(s), "axes": np.array(axes)}
        for s, axes in (
            ([2, 0, 3], [1]),
            ([2, 0, 3], [0, -1]),
            ([2, 2, 3], [2, 0]),
            ([2, 3], np.array([], int)),
            (np.array([], int), np.array([], int)),
        )
    ]
    for target in (12, 8):
        converts(source, target, *given, in_numpy=True)


def test_in_branches_and_functions() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
        g (float[2,2,3] x, int64[1] axes, bool c) => (float[p,q,r] y) {
            y = If (c) <
                then_branch = t () => (float[i,j,k] o) { o = ReduceMax(x, axes) },
                else_branch = e () => (float[i,j,k] o) { o = local.F(x, axes) }
            >
        }
        <domain: "local", opset_import: ["" : 18]>
        F (a, axes) => (b) { b = ReduceMin(a, axes) }""")
    given = [
        {"x": X, "axes": np.array([axis]), "c": np.array(flag)}
        for axis in (0, 2, -2)
        for flag in (True, False)
    ]
    for target in (17, 12, 10, 7):
        converts(source, target, *given, exact=True)


def test_one_site_after_another_on_the_same_axes() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,2,3] x, int64[1] axes) => (float[p,q,r] y) <float[p,q,r] a, float[p,q,r] b> {
            a = ReduceMax(x, axes)
            b = ReduceMin(a, axes)
            y = Add(a, b)
        }""")
    for target in (17, 10):
        result = converts(source, target, {"x": X, "axes": np.array([1])}, exact=True)
        names = [node.name for node in result.graph.node if node.name]
        assert len(names) == len(set(names))
