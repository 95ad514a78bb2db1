"""OneHot: 11."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, one_node, op_types

VALUES = np.array([-1, 5], np.float32)


@pytest.mark.parametrize("depth", [np.array(3), np.array([3]), np.array(3.0, np.float32)])
@pytest.mark.parametrize("axis", [-1, -2, 0, 1])
def test_hot_from_front(axis, depth):
    inputs = {"i": np.array([-1, 0, 2, -3]), "d": depth, "v": VALUES}
    source = one_node("OneHot", 11, inputs, output_shapes=[[None, None]], axis=axis)
    converts(source, 9, inputs, exact=True)
    # ONNX Runtime counts from the back at any opset, so that -4 must not become -1.
    out_of_range = inputs | {"i": np.array([-4, -6, 3, 99])}
    converts(source, 10, out_of_range, exact=True)
    converts(source, 10, out_of_range, exact=True, in_numpy=True)


@pytest.mark.parametrize("axis", [-1, -2, -3])
def test_hot_from_front_of_unknown_rank(axis):
    inputs = {"i": np.array([[-1, 0], [2, -3], [1, 1]]), "d": np.array(3), "v": VALUES}
    source = one_node("OneHot", 11, inputs, axis=axis, hidden=("i",), output_shapes=[[None] * 3])
    converts(source, 9, inputs, exact=True)
    # ONNX Runtime 1.23 ends the process on no indices.
    converts(source, 9, inputs | {"i": inputs["i"][:0]}, exact=True, in_numpy=True)


def test_hot_from_front_leaves_unsigned():
    inputs = {"i": np.array([1, 0, 3], np.uint8), "d": np.array(3), "v": VALUES}
    source = one_node("OneHot", 11, inputs, output_shapes=[[None, None]])
    assert op_types(converts(source, 10, inputs)) == ["OneHot"]


def test_none_from_back():
    inputs = {"i": np.array([-1, 0, 2, -9]), "d": np.array([3]), "v": VALUES}
    source = one_node("OneHot", 10, inputs, output_shapes=[[None, None]])
    from onnxreduce_cli import convert, executor
    from tests.support import assert_same, run_ort

    result = convert(source, 11)
    # ONNX Runtime lets the older version count from the back, where the specification does not.
    (actual,) = run_ort(result, inputs)
    assert_same(executor.run(source, inputs)["y0"], actual)
    assert (actual[[0, 3]] == -1).all()
    constant = one_node(
        "OneHot", 10, inputs | {"i": np.array([1])}, initializers=("i",), output_shapes=[[None] * 2]
    )
    assert op_types(converts(constant, 11, inputs)) == ["OneHot"]
