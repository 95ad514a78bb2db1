"""ConstantOfShape below 9, Expand below 8."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import parser

from onnxreduce_cli import plan
from tests.support import converts, one_node, op_types


@pytest.mark.newest
def test_constant_of_shape() -> None:
    for value in (None, np.array([-0.0]), np.array([7], np.int64), np.array([True])):
        options = {} if value is None else {"value": numpy_tensor(value)}
        for shape in ([2, 3], [0, 2], [], [1]):
            inputs = {"shape": np.array(shape, np.int64)}
            known = one_node("ConstantOfShape", 9, inputs, initializers=("shape",), **options)
            named = one_node(
                "ConstantOfShape", 9, inputs, output_shapes=[[None] * len(shape)], **options
            )
            for target in (8, 7):
                assert "ConstantOfShape" not in op_types(converts(known, target, {}))
                if 0 not in shape:
                    converts(named, target, inputs, exact=True)


def numpy_tensor(value: np.ndarray) -> Any:
    from onnx import numpy_helper

    return numpy_helper.from_array(value)


@pytest.mark.parametrize("shape", [[2, 3], [4, 1, 3], [3], [1], [2, 1]])
def test_expand(shape: list[int]) -> None:
    for dims in ((2, 3), (3,), (1, 3), (2, 1), ()):
        try:
            np.broadcast_shapes(dims, tuple(shape))
        except ValueError:
            continue
        x = np.full(dims, np.nan, np.float32)
        inputs = {"x": x, "shape": np.array(shape, np.int64)}
        rank = max(len(dims), len(shape))
        names = [f"d{axis}" for axis in range(len(dims))]
        for initializers, shapes in ((("shape",), {}), ((), {}), (("shape",), {"x": names})):
            source = one_node(
                "Expand",
                8,
                inputs,
                initializers=initializers,
                shapes=shapes,
                output_shapes=[[None] * rank],
            )
            converts(source, 7, inputs, exact=True)


def test_a_shape_that_is_said_to_be_long_is_not_written_out() -> None:
    source = parser.parse_model("""<ir_version: 8, opset_import: ["" : 8]>
        g (float[2,3] x, int64[1073741824] shape) => (float[] y) { y = Expand(x, shape) }""")
    (blocker,) = plan(source, 7).blockers
    assert "1,073,741,824 elements" in blocker.reason
