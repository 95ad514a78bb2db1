"""The attribute axis, made non-negative at 11."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, model, one_node, op_types

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


@pytest.mark.parametrize("axis", [-1, -2, -3])
@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin", "Concat", "Split"])
def test_axis_of_a_dimension_of_unknown_rank(op_type, axis):
    inputs = {"x": X, "z": X + 1} if op_type == "Concat" else {"x": X}
    sizes = [1, X.shape[axis] - 1] if op_type == "Split" else []
    source = one_node(
        op_type,
        11,
        inputs,
        outputs=len(sizes) or 1,
        axis=axis,
        split=sizes or None,
        hidden=tuple(inputs),
    )
    empty = {name: value[:, :0] if axis != -2 else value[:0] for name, value in inputs.items()}
    for target in (10, 7, 4, 2):
        result = converts(source, target, inputs, exact=True)
        assert "Transpose" in op_types(result)
        if not op_type.startswith("Arg"):
            converts(source, target, empty, exact=True, in_numpy=True)


def test_concat_of_one_known_rank():
    inputs = {"x": X, "z": X + 1}
    source = one_node("Concat", 11, inputs, axis=-1, hidden=("x",))
    assert op_types(converts(source, 10, inputs))[-1] == "Concat"


def test_compress_of_unknown_rank():
    inputs = {"x": X, "c": np.array([True, False, True])}
    for axis in (-1, -2):
        source = one_node("Compress", 11, inputs, axis=axis, hidden=("x",))
        for target in (10, 8):
            converts(source, target, inputs, exact=True)


@pytest.mark.parametrize("axis", [-3, -1, 0, 3])
def test_axis_between_dimensions(axis):
    result = converts(one_node("Flatten", 11, {"x": X}, axis=axis), 10, {"x": X})
    assert axis_of(result) == (axis + 3 if axis < 0 else axis)


@pytest.mark.parametrize("axis", [-3, -2, -1])
def test_axis_between_dimensions_of_unknown_rank(axis):
    source = one_node("Flatten", 11, {"x": X}, axis=axis, hidden=("x",))
    for target in (10, 8, 7):
        result = converts(source, target, {"x": X}, {"x": X[:, :0]}, exact=True, in_numpy=True)
    assert "Flatten" not in op_types(result)


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
