"""Gather, Scatter, ScatterElements, OneHot and ArgMax."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, model, one_node, op_types

X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("target", [7, 9, 10])
def test_gather_from_front(axis, dtype, target):
    inputs = {"x": X, "i": np.array([[-1, 0], [2, -3]], dtype)}
    constant = one_node("Gather", 11, inputs, initializers=("i",), axis=axis)
    result = converts(constant, target, inputs, exact=True)
    assert op_types(result) == ["Gather"]
    source = one_node("Gather", 11, inputs, axis=axis)
    result = converts(source, target, inputs, exact=True, ir_version=4)
    assert op_types(result) == ["Cast", "Less", "Cast", "Mul", "Add", "Gather"]


@pytest.mark.parametrize("axis", [0, -1])
def test_gather_from_front_of_unknown_size(axis):
    inputs = {"x": X, "i": np.array(-2, np.int64)}
    source = one_node("Gather", 11, inputs, axis=axis, shapes={"x": ["a", "b"]})
    result = converts(source, 10, inputs, {"x": X[:2, :3], "i": np.array(1)}, exact=True)
    assert op_types(result)[:2] == ["Shape", "Gather"]


def test_gather_from_front_leaves_what_counts():
    source = model(
        """<ir_version: 6, opset_import: ["" : 11]> g (float[a, b] x) => (int64[1] y, float[c, b] z)
        {
            s = Shape (x)
            one = Constant <value = int64[1] {1}> ()
            y = Gather (s, one)
            n = ArgMax <axis = 1, keepdims = 0> (x)
            n1 = Unsqueeze <axes = [1]> (n)
            m = Squeeze <axes = [1]> (n1)
            t = Transpose (x)
            z = Gather (t, m)
        }"""
    )
    result = converts(source, 10, {"x": X})
    assert op_types(result) == op_types(source)


def test_scatter_elements_and_scatter():
    inputs = {
        "x": X,
        "i": np.array([[0, 1, 2, 0], [2, 0, 1, 1]], np.int64),
        "u": -np.ones((2, 4), np.float32),
    }
    source = one_node("ScatterElements", 11, inputs)
    low = converts(source, 10, inputs, inputs | {"i": inputs["i"] - 3}, exact=True)
    assert op_types(low)[-1] == "Scatter"
    constant = one_node("ScatterElements", 11, inputs, initializers=("i",), axis=0)
    low = converts(constant, 9, inputs, exact=True)
    assert op_types(low) == ["Scatter"]
    high = converts(low, 18, inputs, exact=True)
    assert op_types(high) == ["ScatterElements"]


def test_scatter():
    """The way down is above, and here with an axis from the back."""
    inputs = {"x": X, "i": np.array([[-1], [0], [1]]), "u": np.zeros((3, 1), np.float32)}
    for initializers in ((), ("i",)):
        source = one_node("ScatterElements", 11, inputs, initializers=initializers, axis=-1)
        converts(source, 10, inputs, exact=True)


VALUES = np.array([-1, 5], np.float32)


@pytest.mark.parametrize("depth", [np.array(3), np.array([3]), np.array(3.0, np.float32)])
@pytest.mark.parametrize("axis", [-1, -2, 0, 1])
def test_hot_from_front(axis, depth):
    inputs = {"i": np.array([-1, 0, 2, -3]), "d": depth, "v": VALUES}
    source = one_node("OneHot", 11, inputs, output_shapes=[[None, None]], axis=axis)
    converts(source, 9, inputs, exact=True)
    far = inputs | {"i": np.array([-4, 3, 99, 1])}
    converts(source, 11, far, exact=True)


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


@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("shape", [[3, 4], ["a", "b"]])
def test_last_index(op_type, axis, keepdims, shape):
    x = np.array([[1, 3, 3, 1], [0, 0, 0, 0], [1, -2, 3, -2]], np.float32)
    source = one_node(
        op_type,
        12,
        {"x": x},
        shapes={"x": shape},
        axis=axis,
        keepdims=keepdims,
        select_last_index=1,
    )
    others = [] if shape == [3, 4] else [{"x": x[:2, :1]}]
    converts(source, 11, {"x": x}, *others)
    converts(source, 10, {"x": x}, *others)
    if shape == [3, 4]:
        converts(source, 9, {"x": x})


def test_last_index_off():
    source = one_node("ArgMax", 12, {"x": X}, select_last_index=0)
    assert not any(
        a.name == "select_last_index"
        for a in converts(source, 11, {"x": X}).graph.node[0].attribute
    )
