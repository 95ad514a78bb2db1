"""Max, Min, Relu and Equal."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, one_node, op_types

NASTY = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("op_type", ["Max", "Min"])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int32, np.uint32])
def test_chosen(op_type, dtype):
    info = np.iinfo(dtype)
    x = np.array([[info.min, info.max, 5]], dtype)
    inputs = {"x": x, "y": x[:, ::-1].reshape(3, 1).copy(), "z": np.array(7, dtype)}
    result = converts(one_node(op_type, 12, inputs), 11, inputs, exact=True)
    assert ("Where" in op_types(result)) == (np.dtype(dtype).itemsize == 8)
    converts(one_node(op_type, 12, inputs), 9, inputs, exact=True)
    converts(one_node(op_type, 12, {"x": x}), 11, {"x": x}, exact=True)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("target", [13, 11, 9])
def test_max_with_zero(dtype, target):
    info = np.iinfo(dtype)
    inputs = {"x": np.array([info.min, -1, 0, 1, info.max], dtype)}
    converts(one_node("Relu", 14, inputs), target, inputs, exact=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("target", [10, 9])
def test_neither_less_nor_greater(dtype, target):
    x, y = np.meshgrid(NASTY.astype(dtype), NASTY.astype(dtype))
    inputs = {"x": x, "y": y}
    converts(one_node("Equal", 11, inputs), target, inputs, exact=True)


@pytest.mark.parametrize("op_type", ["Less", "Greater"])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_in_two_parts(op_type, dtype):
    info = np.iinfo(dtype)
    near = [0, 1, 2**31 - 1, 2**31, 2**31 + 1, 2**53, 2**53 + 1, info.max, info.max - 1, info.min]
    near += [] if info.min == 0 else [-1, -(2**31), -(2**31) - 1, -(2**53) - 1, info.min + 1]
    x, y = np.meshgrid(np.array(near, dtype), np.array(near, dtype))
    inputs = {"x": x, "y": y}
    converts(one_node(op_type, 9, inputs), 8, inputs, exact=True)
    inputs = {"x": x, "y": y[:, :1] * 0 + dtype(2**31)}
    converts(one_node(op_type, 9, inputs), 7, inputs, exact=True)
