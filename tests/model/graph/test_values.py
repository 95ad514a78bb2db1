"""Numbers in another dtype."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

from onnxreduce_cli.model.graph.values import exactly_in


@pytest.mark.parametrize(
    ("array", "elem_type", "same"),
    [
        (np.array([1, -3, 2**24]), TensorProto.FLOAT, True),
        (np.array([2**24 + 1]), TensorProto.FLOAT, False),
        (np.array([2**63 - 1]), TensorProto.FLOAT, False),
        (np.array([2**63 - 1]), TensorProto.DOUBLE, False),
        (np.array([-(2**63)]), TensorProto.FLOAT, True),
        (np.array([2**64 - 1], np.uint64), TensorProto.DOUBLE, False),
        (np.array([70_000]), TensorProto.FLOAT16, False),
        (np.array([257]), TensorProto.BFLOAT16, False),
        (np.array([0.1, np.nan, np.inf, -0.0], np.float32), TensorProto.DOUBLE, True),
        (np.array([0.1]), TensorProto.FLOAT, False),
        (np.array([1e300]), TensorProto.FLOAT, False),
        (np.array([0.5, np.nan], ml_dtypes.bfloat16), TensorProto.FLOAT, True),
        (np.array([True, False]), TensorProto.FLOAT, True),
        (np.zeros(0, np.int64), TensorProto.FLOAT, True),
    ],
)
def test_numbers_that_another_dtype_has(array: np.ndarray, elem_type: int, same: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = exactly_in(array, elem_type)
    assert (found is not None) is same
    if found is not None:
        np.testing.assert_array_equal(found.astype(np.float64), array.astype(np.float64))
