"""Erf below the opset it came with."""

from __future__ import annotations

import math

import numpy as np
import pytest

from onnxreduce_cli import convert, executor
from tests.support import converts, one_node

SPECIAL = (np.nan, np.inf, -np.inf, 0.0, 1.0, -1.0, 1e-30, 4.0, 6.0, 1e30)


@pytest.mark.parametrize(("dtype", "ulps"), [(np.float16, 1), (np.float32, 4), (np.float64, 8)])
@pytest.mark.parametrize("target", [8, 7])
def test_erf_to_a_few_units_in_the_last_place(dtype: type, ulps: int, target: int) -> None:
    with np.errstate(over="ignore"):
        x = np.concatenate([np.linspace(-7, 7, 20011), 0.1 ** np.arange(7), SPECIAL]).astype(dtype)
    result = executor.run(convert(one_node("Erf", 9, {"x": x}), target), {"x": x})["y0"]
    truth = np.array([math.erf(value) for value in x.tolist()])
    assert result.dtype == dtype
    np.testing.assert_array_equal(np.isnan(result), np.isnan(truth))
    number = ~np.isnan(truth)
    apart = np.abs(result.astype(np.float64) - truth)[number]
    assert np.all(apart <= ulps * np.spacing(np.abs(truth[number]).astype(dtype)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_in_onnxruntime(dtype: type) -> None:
    x = np.linspace(-5, 5, 24).reshape(2, 3, 4).astype(dtype)
    source = one_node("Erf", 9, {"x": x})
    for target in (8, 7):
        converts(source, target, {"x": x})
    empty = {"x": np.zeros((2, 0, 4), dtype)}
    converts(one_node("Erf", 9, empty), 7, empty)
    if dtype == np.float32:
        source.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "n"
        converts(source, 7, {"x": x})


def test_integers() -> None:
    x = np.arange(-3, 4, dtype=np.int32)
    converts(one_node("Erf", 9, {"x": x}), 7, {"x": x})
