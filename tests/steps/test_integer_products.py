"""Quantization and integer products below opset 10, and operators that nothing can stand for."""

from __future__ import annotations

import numpy as np
import pytest

from onnxreduce_cli.steps.newcomers import _ALONE
from onnxreduce_cli.steps.registry import STEPS
from tests.support import blockers, converts, one_node


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_quantize_linear(dtype: type) -> None:
    x = np.array([0, -0.0, 0.25, 0.75, -0.25, 3.3, 1e6, -1e6, 63.75, np.inf, -np.inf], np.float32)
    for zero in (np.array(3, dtype), None):
        if zero is None and dtype == np.int8:
            continue
        inputs = {"x": x, "s": np.array(0.5, np.float32), "z": zero}
        source = one_node("QuantizeLinear", 10, inputs)
        given = {name: array for name, array in inputs.items() if array is not None}
        for target in (9, 7):
            converts(source, target, given)
    whole = {"x": np.array([-7, 9, 100000], np.int32), "s": np.array(2.0, np.float32)}
    converts(one_node("QuantizeLinear", 10, whole), 9, whole)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32])
def test_dequantize_linear(dtype: type) -> None:
    limits = np.iinfo(dtype)
    x = np.array([limits.min, -1 % 256 if dtype == np.uint8 else -1, 0, 5, limits.max], dtype)
    for zero in (None, np.array(0 if dtype == np.int32 else 7, dtype)):
        inputs = {"x": x, "s": np.array(0.3, np.float32), "z": zero}
        source = one_node("DequantizeLinear", 10, inputs)
        given = {name: array for name, array in inputs.items() if array is not None}
        for target in (9, 7):
            converts(source, target, given, exact=True)


def test_mat_mul_integer() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 256, (3, 4)).astype(np.uint8)
    b = rng.integers(-128, 128, (4, 2)).astype(np.int8)
    scalars = {"a": a, "b": b, "az": np.array(7, np.uint8), "bz": np.array(-3, np.int8)}
    for inputs in ({"a": a, "b": b}, scalars):
        for target in (9, 8, 7):
            converts(one_node("MatMulInteger", 10, inputs), target, inputs)


@pytest.mark.newest
def test_newcomers() -> None:
    for operators in _ALONE.values():
        for op_type in operators:
            births = [key for key in STEPS if key[0] == op_type and key[2] == "down"]
            assert births, op_type
    x = np.ones((2, 2), np.int64)
    reason = blockers(one_node("BitwiseAnd", 18, {"x": x, "z": x}), 17)[0].reason
    assert reason == "nothing before opset 18 works on single bits"
    source = one_node("Bernoulli", 15, {"x": x.astype(np.float32)})
    assert "random numbers" in blockers(source, 14)[0].reason


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_nan_is_quantized_to_the_lowest_number(dtype: type) -> None:
    inputs = {
        "x": np.array([np.nan, 1, -np.inf, np.inf, 0] * 3, np.float32),
        "scale": np.array(0.5, np.float32),
        "zero": np.array(3, dtype),
    }
    source = one_node("QuantizeLinear", 13, inputs)
    for feeds in (inputs, {**inputs, "scale": np.array(np.inf, np.float32)}):
        for target in (10, 9, 8):
            converts(source, target, feeds)
            converts(source, target, feeds, in_numpy=True)
