"""CumSum below opset 11 and CumProd below 26."""

from __future__ import annotations

import numpy as np
import pytest

import onnxreduce_cli
from tests.support import converts, one_node, op_types, run

X = np.array([[[1, np.nan, 3], [4, 5, -0.0]], [[7, 8, np.inf], [10, 11, 12]]], np.float32)


def _named(array: np.ndarray, letter: str) -> list[str]:
    return [f"{letter}{axis}" for axis in range(array.ndim)]


@pytest.mark.parametrize(
    "options", [{}, {"reverse": 1}, {"exclusive": 1}, {"exclusive": 1, "reverse": 1}]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_cum_sum(options: dict[str, int], dtype: type) -> None:
    x = np.arange(24).reshape(2, 3, 4).astype(dtype) / 3
    x = x.astype(dtype)
    if dtype in (np.float32, np.float64):
        x[0, 1, 1], x[1, 0, 2], x[1, 1, 0] = np.nan, np.inf, -0.0
    for axis in (0, 1, -1):
        inputs = {"x": x, "a": np.array(axis)}
        for shapes in ({}, {"x": _named(x, "d")}):
            source = one_node("CumSum", 11, inputs, initializers=("a",), shapes=shapes, **options)
            for target in (10, 9):
                converts(source, target, inputs)
    line = {"x": x[0, 0], "a": np.array(0)}
    converts(one_node("CumSum", 11, line, **options), 10, line)


@pytest.mark.parametrize("options", [{}, {"reverse": 1}, {"exclusive": 1}])
@pytest.mark.newest
def test_cum_prod(options: dict[str, int]) -> None:
    inputs = {"x": X, "a": np.array(2)}
    source = one_node("CumProd", 26, inputs, initializers=("a",), **options)
    for target in (25, 17, 11):
        found = run(onnxreduce_cli.convert(source, target, emulate=True), inputs)["y0"]
        data = X[..., ::-1] if options.get("reverse") else X
        if options.get("exclusive"):
            data = np.concatenate([np.ones_like(data[..., :1]), data[..., :-1]], -1)
        expected = np.cumprod(data, -1)
        if options.get("reverse"):
            expected = expected[..., ::-1]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("hidden", [(), ("x",), ("a",)])
@pytest.mark.parametrize("options", [{}, {"exclusive": 1, "reverse": 1}])
def test_cum_sum_of_unknown_axis(options: dict[str, int], hidden: tuple[str, ...]) -> None:
    feeds = [{"x": X, "a": np.array(axis, np.int32)} for axis in (0, 1, -1, -3)]
    empty = [{"x": X[:, :0], "a": np.array(axis, np.int32)} for axis in (0, 1, 2)]
    source = one_node("CumSum", 11, feeds[0], hidden=hidden, **options)
    for target in (10, 9):
        converts(source, target, *feeds)
        if "x" in hidden:
            converts(source, target, *empty)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_cum_sum_of_unknown_rank(axis: int) -> None:
    inputs = {"x": X, "a": np.array(axis)}
    source = one_node("CumSum", 14, inputs, initializers=("a",), hidden=("x",))
    converts(source, 10, inputs)
    converts(source, 10, inputs | {"x": X[:0]}, inputs | {"x": X[..., :0]})


@pytest.mark.parametrize("options", [{}, {"exclusive": 1, "reverse": 1}])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_cum_sum_of_size_0(options: dict[str, int], dtype: type) -> None:
    """ONNX Runtime's process ends over a Scan of no slices, or of empty ones."""
    data = np.arange(12).reshape(2, 3, 2).astype(dtype)
    feeds = [{"x": x} for x in (data, data[:0], data[:, :0], data[:0, :, :0])]
    for axis in (0, 1):
        inputs = {"x": data, "a": np.array(axis)}
        shapes = {"x": _named(data, "d")}
        source = one_node("CumSum", 14, inputs, initializers=("a",), shapes=shapes, **options)
        for target in (10, 8, 7):
            converts(source, target, *feeds)
        known = one_node("CumSum", 14, inputs | {"x": data[:, :0]}, initializers=("a",), **options)
        assert op_types(converts(known, 10, feeds[2])) == ["Identity"]


@pytest.mark.parametrize("hidden", [(), ("x",)])
@pytest.mark.newest
def test_cum_prod_of_unknown_axis(hidden: tuple[str, ...]) -> None:
    source = one_node("CumProd", 26, {"x": X, "a": np.array(0)}, hidden=hidden)
    for target in (25, 13, 10):
        converts(source, target, *({"x": X, "a": np.array(axis)} for axis in (0, 1, -1)))
