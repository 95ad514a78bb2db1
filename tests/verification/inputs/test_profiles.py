"""Value profiles: numbers next to a model's constants."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from onnxreduce_cli.model.graph.values import finfo, iinfo
from onnxreduce_cli.verification.inputs.profiles import with_constants


@pytest.mark.parametrize(
    "name", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
)
@pytest.mark.parametrize("end", ["min", "max"])
def test_neighbours_of_the_ends_of_integers(name: str, end: str) -> None:
    dtype = np.dtype(name)
    limit = int(getattr(iinfo(dtype), end))
    zeros, constant = np.zeros(500, dtype), np.array([limit], dtype)
    found = with_constants(zeros, [constant], np.random.default_rng(0))
    assert found.dtype == dtype
    inner = limit + (1 if end == "min" else -1)
    assert set(map(int, found)) == {0, limit, inner}


def test_constants_beyond_the_dtype_are_left_out() -> None:
    zeros, constant = np.zeros(500, np.int64), np.array([2**63], np.uint64)
    found = with_constants(zeros, [constant], np.random.default_rng(0))
    assert set(found.tolist()) == {0, 2**63 - 1}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_neighbours_of_the_ends_of_floats(dtype: type) -> None:
    highest = float(finfo(dtype).max)
    zeros, constant = np.zeros(500, dtype), np.array([highest], dtype)
    found = with_constants(zeros, [constant], np.random.default_rng(0))
    assert np.isfinite(found.astype(np.float64)).all()
    assert highest in found.astype(np.float64)
