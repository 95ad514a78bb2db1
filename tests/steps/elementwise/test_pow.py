"""Pow: bases and exponents of different types, and of integers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, one_node, op_types

X = np.array([[1.5, -2, 0], [np.inf, -np.inf, np.nan], [-0.0, 3, -4]], np.float32)


@pytest.mark.parametrize("exponent", [2, 3, 0, -1, 0.5])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_one_type(dtype, exponent):
    inputs = {"x": X, "e": np.array(exponent, dtype)}
    low = converts(one_node("Pow", 12, inputs, initializers=("e",)), 11, inputs)
    assert op_types(low) == ["Pow"]
    converts(one_node("Pow", 12, inputs, initializers=("e",)), 7, inputs)
    converts(one_node("Pow", 12, inputs), 11, inputs)


def test_one_type_wider():
    inputs = {"x": X, "e": np.array(1 / 3, np.float64)}
    low = converts(one_node("Pow", 12, inputs, initializers=("e",)), 11, inputs)
    assert op_types(low) == ["Cast", "Pow", "Cast"]


def test_one_type_of_integers():
    x = np.array([0, 1, -3, 7, 46340], np.int32)
    for exponent in (np.array(3, np.int32), np.array(0.5, np.float32), np.array([2], np.int32)):
        feeds = {"x": np.abs(x[:4]) if exponent.dtype == np.float32 else x[:4], "e": exponent}
        converts(one_node("Pow", 12, feeds), 11, feeds)
    square = {"x": x.astype(np.int64), "e": np.array(2, np.int64)}
    low = converts(one_node("Pow", 12, square, initializers=("e",)), 11, square)
    assert op_types(low) == ["Mul"]


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_floats_to_whole_powers_that_are_not_known(dtype):
    x = np.array([1.5, -2, 0, np.inf, np.nan, -0.0])
    for base in (x.astype(np.float32), x, np.array([3, 7, -2, 1, 0, -1], np.int32)):
        feeds = {"x": base, "e": np.array([3, 9, 1, 0, 5, 1 << 52], dtype)}
        converts(one_node("Pow", 12, feeds), 11, feeds, in_numpy=dtype == np.uint64)
