"""Rounding to the narrow types."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from onnxreduce_cli.executor import run
from onnxreduce_cli.executor.dtypes import BFLOAT16, to_dtype
from tests.executor.models import one_node

BESIDE = 2.0**-40


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (1 + 2.0**-8 + BESIDE, 1 + 2.0**-7),
        (1 + 2.0**-8 - BESIDE, 1.0),
        (1 + 2.0**-8, 1.0),
        (-(1 + 3 * 2.0**-8 - BESIDE), -(1 + 2.0**-7)),
        (3.4e38, np.inf),
        (1e300, np.inf),
        (1e-300, 0.0),
        (2.0**-134 * (1 + BESIDE), 2.0**-133),
        (np.inf, np.inf),
        (np.nan, np.nan),
        (-0.0, -0.0),
    ],
)
def test_double_to_bfloat16_rounds_once(value: float, wanted: float) -> None:
    with np.errstate(over="ignore"):
        got = to_dtype(np.array([[value]]), BFLOAT16)
    assert got.dtype == ml_dtypes.bfloat16
    assert got.shape == (1, 1)
    np.testing.assert_array_equal(got.astype(np.float64), [[wanted]])
    assert np.signbit(got.astype(np.float64)) == np.signbit(wanted)


def test_a_reduction_of_bfloat16_rounds_once() -> None:
    terms = np.array([1, 2.0**-8, BESIDE], ml_dtypes.bfloat16)
    built = one_node("ReduceSum", 13, {"x": terms}, keepdims=0)
    assert float(run(built, {"x": terms})["y0"]) == 1 + 2.0**-7
