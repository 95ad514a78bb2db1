"""Flatten: 9 and 11."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, model, one_node, op_types

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("axis", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("dims", [None, ("n", 3, 4, 5), (2, 3, "m", "k")])
def test_integers_to_reshape(axis, dims):
    x = np.arange(120).reshape(2, 3, 4, 5)
    source = one_node("Flatten", 9, {"x": x}, axis=axis, shapes={"x": dims} if dims else None)
    empty = [{"x": x[:0] if dims[0] == "n" else x[:, :, :0]}] if dims else []
    for target in (8, 7):
        converts(source, target, {"x": x}, *empty)


def test_integers_of_two_dimensions():
    source = one_node("Flatten", 9, {"x": X[0].astype(np.int64)}, shapes={"x": ("n", "m")})
    assert op_types(converts(source, 7, {"x": X[0].astype(np.int64)})) == ["Identity"]


def test_integers_of_unknown_rank():
    source = model(
        """<ir_version: 4, opset_import: ["" : 9]>
        g (int64[n] x, int64[k] s) => (int64[a, b] y) {
            r = Reshape (x, s)
            y = Flatten <axis=2> (r)
        }"""
    )
    x = np.arange(24)
    for shape in ([2, 3, 4], [4, 6]):
        converts(source, 7, {"x": x, "s": np.array(shape)})


@pytest.mark.parametrize("axis", [-3, -1, 0, 3])
def test_negative_axis(axis):
    result = converts(one_node("Flatten", 11, {"x": X}, axis=axis), 10, {"x": X})
    assert result.graph.node[0].attribute[0].i == (axis + 3 if axis < 0 else axis)


@pytest.mark.parametrize("axis", [-3, -2, -1])
def test_negative_axis_of_unknown_rank(axis):
    source = one_node("Flatten", 11, {"x": X}, axis=axis, hidden=("x",))
    for target in (10, 8, 7):
        result = converts(source, target, {"x": X}, {"x": X[:, :0]}, exact=True, in_numpy=True)
    assert "Flatten" not in op_types(result)


def test_negative_axis_of_nothing():
    scalar, empty = np.array(3, np.float32), X[:0]
    converts(one_node("Flatten", 11, {"x": scalar}, axis=0), 10, {"x": scalar})
    converts(one_node("Flatten", 11, {"x": empty}, axis=-1), 10, {"x": empty})
