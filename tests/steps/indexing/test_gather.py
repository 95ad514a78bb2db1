"""Gather: 11."""

from __future__ import annotations

import numpy as np
import pytest

import onnxreduce_cli
from tests.support import assert_same, converts, model, one_node, op_types, run

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


@pytest.mark.parametrize("target", [7, 10])
@pytest.mark.parametrize(("op_type", "more"), [("Gather", ""), ("ScatterElements", ", u")])
def test_axis_from_the_back_passes_checks(op_type, more, target):
    """Definitions of old take such an axis: "Negative value means counting dimensions ..."."""
    source = model(
        f"""<ir_version: 6, opset_import: ["" : 11]>
        g (float[N, 3] x, int64[N, 2] i, float[N, 2] u) => (y) {{
            y = {op_type}<axis = -1>(x, i{more})
        }}""".replace("(y)", "(float[N, 3] y)" if more else "(float[N, N, 2] y)")
    )
    target = max(target, 9) if more else target
    result = onnxreduce_cli.convert(source, target)
    i = np.array([[-1, 0], [1, -3]])
    inputs = {"x": X[:2, :3], "i": i, "u": X[1:3, :2]}
    assert_same(run(source, inputs)["y"], run(result, inputs)["y"])
