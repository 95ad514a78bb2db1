"""The attribute axis, made non-negative at 11."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, converts_or_counts, one_node, op_types

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
        converts_or_counts(source, 10, inputs, exact=True)
