"""CumSum in older operators, and in those that a runtime takes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto

import onnxreduce_cli
from onnxreduce_cli.errors import CheckError
from onnxreduce_cli.steps.reduction import cum_sum
from tests.support import blockers, converts, one_node, op_types

IN_SLICES = ("Add", "Concat", "Slice")
SHIFTED = (*IN_SLICES, "Identity", "Pad")
PRODUCT = ("MatMul", "Transpose")
INF, NAN = math.inf, math.nan


def summed(x: Any, axis: Any, opset: int = 14, **attributes: Any) -> ModelProto:
    inputs = {"x": x, "axis": np.array(axis)}
    return one_node("CumSum", opset, inputs, initializers=("axis",), **attributes)


@st.composite
def cases(draw: st.DrawFn, most: int) -> tuple[Any, int, dict[str, int]]:
    """Data, an axis and attributes: floats with NaN and infinities, or integers that overflow."""
    shape = draw(st.lists(st.sampled_from((0, 1, 2, 3)), min_size=1, max_size=3))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    shape[axis] = draw(st.integers(0, most))
    dtype = np.dtype(draw(st.sampled_from(("float32", "float64", "int32", "int64"))))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    if dtype.kind == "i":
        x = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype)
    else:
        # Whole numbers, so that the order of additions rounds nothing.
        pool = [0, 1, -2, 5, 1024] * 4 + [INF, -INF, NAN]
        x = rng.choice(np.array(pool, dtype), shape)
    flags = {name: draw(st.integers(0, 1)) for name in ("exclusive", "reverse")}
    return x, axis, flags


@settings(max_examples=40, deadline=None)
@given(cases(12))
def test_slices_added_in_order(case: tuple[Any, int, dict[str, int]]) -> None:
    x, axis, flags = case
    converts(summed(x, axis, **flags), 10, {"x": x}, exact=True)
    converts(summed(x, axis, **flags), 14, {"x": x}, exact=True, allow_ops=SHIFTED)


@settings(max_examples=25, deadline=None)
@given(cases(100))
def test_many_slices(case: tuple[Any, int, dict[str, int]]) -> None:
    x, axis, flags = case
    result = converts(summed(x, axis, **flags), 14, {"x": x}, exact=True, allow_ops=SHIFTED)
    assert len(result.graph.node) <= 68


@settings(max_examples=25, deadline=None)
@given(cases(50))
def test_a_product_of_what_is_finite(case: tuple[Any, int, dict[str, int]]) -> None:
    x, axis, flags = case
    x = np.where(np.isfinite(x), x, 0) if x.dtype.kind == "f" else x
    # ONNX Runtime 1.23 refuses to multiply nothing by a matrix.
    options = {"exact": True, "in_numpy": not x.size, "allow_ops": PRODUCT}
    result = converts(summed(x, axis, **flags), 14, {"x": x}, **options)
    assert {*op_types(result)} <= {*PRODUCT}


@pytest.mark.parametrize("reverse", [0, 1])
def test_a_sum_that_overflows_is_added_in_order(reverse: int) -> None:
    top = np.finfo(np.float32).max
    x = np.array([top, -top, -top, top, top, top, -top], np.float32)
    converts(summed(x, 0, reverse=reverse), 14, {"x": x}, exact=True, allow_ops=IN_SLICES)


@pytest.mark.parametrize(
    ("size", "dtype", "allowed", "words"),
    [
        (32, np.float32, IN_SLICES, ""),
        (33, np.float32, IN_SLICES, "its sums are added in another order"),
        (33, np.int64, IN_SLICES, ""),
        (33, np.float32, PRODUCT, "MatMul is not exact where an infinity or NaN is summed"),
        (33, np.int64, PRODUCT, ""),
        # What is exact comes first.
        (32, np.float32, (*IN_SLICES, *PRODUCT), ""),
    ],
)
def test_what_differs_is_said(size: int, dtype: Any, allowed: tuple[str, ...], words: str) -> None:
    source = summed(np.ones((2, size), dtype), 1)
    (change,) = onnxreduce_cli.plan(source, 14, allow_ops=allowed).changes
    assert len(change.warnings) == bool(words)
    assert all(text.startswith(words) for text in change.warnings)
    # Its check draws no infinity then, and fails for nothing else.
    onnxreduce_cli.convert(source, 14, allow_ops=allowed)


def test_a_wrong_product_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cum_sum.np, "triu", lambda ones, _: np.tril(ones))
    with pytest.raises(CheckError):
        onnxreduce_cli.convert(summed(np.ones(5, np.float32), 0), 14, allow_ops=PRODUCT)


def test_halves() -> None:
    x = np.random.default_rng(3).standard_normal((2, 60)).astype(np.float16)
    for allowed in (IN_SLICES, PRODUCT):
        onnxreduce_cli.convert(summed(x, 1), 14, allow_ops=allowed)


def test_what_is_not_known_is_named() -> None:
    x, axis = np.ones((2, 3), np.float32), np.array(1)
    found = blockers(one_node("CumSum", 14, {"x": x, "axis": axis}), 10)
    assert found[0].reason == "its axis is only known at run time"
    sized = one_node(
        "CumSum", 14, {"x": x, "axis": axis}, initializers=("axis",), shapes={"x": ["a", "b"]}
    )
    for options in ({}, {"allow_ops": IN_SLICES}):
        (found,) = blockers(sized, 14 if options else 10, **options)
        assert "the size that it sums over is not known" in found.reason
        assert "--dim NAME=SIZE" in found.advice
    converts(sized, 10, {"x": x}, dims={"b": 3})
    long = one_node(
        "CumSum", 14, {"x": x, "axis": axis}, initializers=("axis",), shapes={"x": [2, 1 << 21]}
    )
    (found,) = blockers(long, 10)
    assert "it sums over 2,097,152 elements" in found.reason
    (found,) = blockers(long, 14, allow_ops=PRODUCT)
    assert "2,097,152" in found.reason
