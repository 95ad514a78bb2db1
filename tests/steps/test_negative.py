"""The attribute axis, made non-negative at 11."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import blockers, converts, model, one_node

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)[::-1].copy()


def axis_of(found):
    return next(a.i for a in found.graph.node[0].attribute if a.name == "axis")


@pytest.mark.parametrize("axis", [-1, -2, -3, 0, 2])
@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin", "Concat", "Split"])
def test_axis_of_a_dimension(op_type, axis):
    inputs = {"x": X, "z": X + 1} if op_type == "Concat" else {"x": X}
    source = one_node(op_type, 11, inputs, axis=axis)
    result = converts(source, 10, inputs, {name: inputs[name][:, :, ::-1] for name in inputs})
    assert axis_of(result) == axis % 3


def test_axis_of_compress():
    inputs = {"x": X, "c": np.array([True, False, True])}
    result = converts(one_node("Compress", 11, inputs, axis=-2), 10, inputs)
    assert axis_of(result) == 1
    converts(one_node("Compress", 11, inputs), 10, inputs)


def test_axis_of_a_dimension_of_unknown_rank():
    source = one_node(
        "Concat", 11, {"x": X}, axis=-1, shapes={"x": None}, output_shapes=[[None] * 3]
    )
    source.graph.output[0].type.tensor_type.ClearField("shape")
    (blocker,) = blockers(source, 10)
    assert "the rank of 'x' is not known" in str(blocker)


@pytest.mark.parametrize("axis", [-3, -1, 0, 3])
def test_axis_between_dimensions(axis):
    result = converts(one_node("Flatten", 11, {"x": X}, axis=axis), 10, {"x": X})
    assert axis_of(result) == (axis + 3 if axis < 0 else axis)


def test_axis_between_dimensions_of_nothing():
    scalar, empty = np.array(3, np.float32), X[:0]
    converts(one_node("Flatten", 11, {"x": scalar}, axis=0), 10, {"x": scalar})
    converts(one_node("Flatten", 11, {"x": empty}, axis=-1), 10, {"x": empty})


def test_axis_written_out():
    source = model(
        '<ir_version: 4, opset_import: ["" : 3]> g (float[2, 3] x) => (float[2, 6] y) '
        "{ y = Concat (x, x) }"
    )
    assert axis_of(converts(source, 4, {"x": X[0, :2, :3]})) == 1
