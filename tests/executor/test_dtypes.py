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


def test_positions_of_grid_sample_in_double() -> None:
    data = np.random.default_rng(0).standard_normal((1, 1, 3, 3))
    grid = np.random.default_rng(1).uniform(-1, 1, (1, 2, 2, 2))
    found = run(
        one_node("GridSample", 22, {"x": data, "grid": grid}, align_corners=1),
        {"x": data, "grid": grid},
    )["y0"]
    for place in np.ndindex(2, 2):
        column, row = grid[0][place] + 1
        top, left = int(row), int(column)
        down, right = row - top, column - left
        block = data[0, 0, top : top + 2, left : left + 2]
        expected = np.array([1 - down, down]) @ block @ np.array([1 - right, right])
        np.testing.assert_allclose(found[0, 0][place], expected, rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
def test_grid_sample_of_16_bits_rounds_its_result_alone(dtype: type, mode: str) -> None:
    rng = np.random.default_rng(0)
    data = (3 * rng.standard_normal((1, 2, 16, 16))).astype(dtype)
    grid = rng.uniform(-1, 1, (1, 8, 8, 2)).astype(dtype)
    found, exact = (
        run(
            one_node("GridSample", 22, {"x": x, "grid": places}, mode=mode),
            {"x": x, "grid": places},
        )
        for x, places in ((data, grid), (data.astype(np.float32), grid.astype(np.float32)))
    )
    assert found["y0"].dtype == dtype
    np.testing.assert_array_equal(found["y0"], exact["y0"].astype(dtype))
