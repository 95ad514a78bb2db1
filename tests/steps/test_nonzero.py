"""NonZero and Compress below the opset they came with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import blockers, converts, one_node, op_types

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


def test_non_zero_of_a_scalar() -> None:
    (blocker,) = blockers(one_node("NonZero", 9, {"x": np.array(True)}), 8)
    assert "scalar" in blocker.reason


@pytest.mark.parametrize("attributes", [{}, {"axis": 0}, {"axis": 1}, {"axis": -1}])
def test_compress(attributes: dict[str, Any]) -> None:
    inputs = {
        "x": np.arange(12, dtype=np.float32).reshape(3, 4),
        "c": np.array([False, True, True]),
    }
    source = one_node("Compress", 11, inputs, **attributes)
    for target in (8, 7):
        converts(source, target, inputs, exact=True)
