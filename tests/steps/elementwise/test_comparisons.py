"""Max, Min, Relu and Equal."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import blockers, converts, one_node, op_types

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


TEXTS = np.array([["a", "", "Ab"], ["ab", "a b", "ä"]], object)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (TEXTS, TEXTS[:, ::-1].copy()),
        (TEXTS, np.array("a", object)),
        (TEXTS, np.array([["a"], [""]], object)),
        (np.array("", object), np.array("", object)),
        (TEXTS[:0], TEXTS[:1]),
        (TEXTS[:, :0], np.array("a", object)),
        (TEXTS[:0], TEXTS[:0]),
    ],
)
@pytest.mark.parametrize("shapes", [False, True])
def test_places_of_strings(x, y, shapes):
    named = {"x": [f"x{i}" for i in range(x.ndim)], "y": [f"y{i}" for i in range(y.ndim)]}
    inputs = {"x": x, "y": y}
    source = one_node("Equal", 19, inputs, shapes=named if shapes else {})
    for target in (18, 13, 11):
        converts(source, target, inputs, exact=True)
    (blocker,) = blockers(source, 10)
    assert "nothing before opset 11 tells whether two strings are equal" in blocker.reason


def test_strings_that_are_constants():
    inputs = {"x": TEXTS, "y": np.array(["a", "b", "Ab"], object)}
    source = one_node("Equal", 19, inputs, initializers=("y",))
    converts(source, 11, inputs, exact=True)
    converts(one_node("Equal", 19, inputs, initializers=("x", "y")), 11, {}, exact=True)


def test_equal_of_uint64():
    values = np.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 2], np.uint64)
    inputs = {"x": values[:, None], "y": values}
    for target in (10, 7, 6, 5):
        converts(one_node("Equal", 11, inputs), target, inputs, exact=True)
