"""NonZero below opset 9."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, model, one_node, op_types

DATA = {
    "bool": np.array([[True, False, True], [False, False, True]]),
    "float": np.array([[[0, -0.0], [1e-30, np.nan]], [[np.inf, 0], [0, -2]]], np.float32),
    "int64": np.array([0, 3, -1, 0, 2**40]),
    "none": np.zeros((2, 3), np.float32),
}


@pytest.mark.parametrize("case", DATA)
def test_non_zero(case: str) -> None:
    inputs = {"x": DATA[case]}
    source = one_node("NonZero", 9, inputs)
    for target in (8, 7):
        converts(source, target, inputs, exact=True)
    shapes = {"x": [f"n{axis}" for axis in range(DATA[case].ndim)]}
    source = one_node("NonZero", 9, inputs, shapes=shapes)
    converts(source, 7, inputs, {"x": DATA[case][:0]}, exact=True)


def test_non_zero_of_a_constant() -> None:
    source = one_node("NonZero", 9, {"x": DATA["float"]}, initializers=("x",))
    assert "Loop" not in op_types(converts(source, 8, {}))


@pytest.mark.parametrize("value", [0.0, 2.0])
def test_non_zero_of_a_scalar(value: float) -> None:
    """It has no coordinates; ONNX Runtime gives it one all the same."""
    inputs = {"x": np.array(value, np.float32)}
    source = one_node("NonZero", 9, inputs)
    for target in (8, 7):
        converts(source, target, inputs, exact=True, in_numpy=True)


def test_non_zero_of_unknown_rank() -> None:
    source = model(
        '<ir_version: 4, opset_import: ["" : 9]> g (float[n] flat, int64[r] shape)'
        " => (int64[a, b] y) { x = Reshape (flat, shape) y = NonZero (x) }"
    )
    flat = np.array([0, 2, 0, 0, np.nan, -1, 0, 3, 0, 0, 0, 9], np.float32)
    for shape in ([12], [2, 6], [3, 1, 4], [2, 2, 3, 1]):
        for target in (8, 7):
            converts(source, target, {"flat": flat, "shape": np.array(shape)}, exact=True)
