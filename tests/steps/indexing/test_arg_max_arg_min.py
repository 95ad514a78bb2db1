"""ArgMax and ArgMin: 12."""

from __future__ import annotations

import numpy as np
import pytest

from onnxreduce_cli.engine.conversion import Conversion
from tests.support import converts, model, one_node

X = np.arange(12, dtype=np.float32).reshape(3, 4)


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


def test_a_rank_that_has_no_such_axis():
    source = one_node("ArgMin", 12, {"x": X[0]}, select_last_index=1)
    del source.graph.input[0].type.tensor_type.shape.dim[:]
    source.graph.output[0].type.tensor_type.ClearField("shape")
    (found,) = Conversion(source, 11).blockers
    assert "axis 0 is out of range for rank 0" in found.reason


def test_an_axis_that_calls_of_a_function_give() -> None:
    source = model(
        """<ir_version: 8, opset_import: ["": 13, "f": 1]>
        agraph (float[2, 3, 4] x) => (int64[2, 1, 4] y, int64[2, 3, 1] z) {
          y = f.last <axis: int = 1> (x)
          z = f.last <axis: int = -1> (x)
        }
        <domain: "f", opset_import: ["": 13]> last <axis> (a) => (b) {
          b = ArgMax <select_last_index: int = 1, axis: int = @axis> (a)
        }"""
    )
    x = np.random.default_rng(0).integers(0, 2, (2, 3, 4)).astype(np.float32)
    for opset in (11, 6):
        converts(source, opset, {"x": x}, exact=True)
