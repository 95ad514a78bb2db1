"""Convolutions and products of quantized tensors below the opset they came with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import blockers, converts, one_node

RNG = np.random.default_rng(2)


def integers(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("channels", [3, 40])
@pytest.mark.parametrize("per_channel", [False, True])
def test_conv_integer(channels: int, per_channel: bool) -> None:
    inputs: dict[str, Any] = {
        "x": integers((1, channels, 6, 6), np.uint8),
        "w": integers((4, channels, 3, 3), np.uint8),
        "xz": np.array(100, np.uint8),
        "wz": np.array([1, 2, 3, 200] if per_channel else 128, np.uint8),
    }
    names = ("w", "wz")
    source = one_node("ConvInteger", 10, inputs, initializers=names, pads=[1, 1, 1, 1])
    for target in (9, 7):
        # ONNX Runtime takes one zero point for all channels only.
        converts(source, target, inputs, exact=True, in_numpy=per_channel)


def test_conv_integer_of_many_weights() -> None:
    inputs = {"x": integers((1, 500, 3, 3), np.uint8), "w": integers((1, 500, 3, 3), np.uint8)}
    (blocker,) = blockers(one_node("ConvInteger", 10, inputs), 9)
    assert "more than a float holds" in blocker.reason


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_q_linear_conv(bias: bool, per_channel: bool, dtype: type) -> None:
    inputs: dict[str, Any] = {
        "x": integers((2, 4, 6, 6), dtype),
        "xs": np.array(0.02, np.float32),
        "xz": np.array(3, dtype),
        "w": integers((4, 2, 3, 3), np.int8),
        "ws": np.array([0.01, 0.02, 0.03, 0.05] if per_channel else 0.03, np.float32),
        "wz": np.zeros(4 if per_channel else (), np.int8),
        "ys": np.array(0.2, np.float32),
        "yz": np.array(7, dtype),
    }
    if bias:
        inputs["b"] = RNG.integers(-3000, 3000, 4).astype(np.int32)
    names = tuple(inputs)[1:]
    source = one_node("QLinearConv", 10, inputs, initializers=names, group=2, strides=[2, 2])
    for target in (9, 7):
        converts(source, target, inputs, exact=True)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_q_linear_mat_mul(shape: tuple[int, ...], dtype: type) -> None:
    inputs: dict[str, Any] = {
        "a": integers((2, 3, 5), dtype),
        "as": np.full(shape, 0.02, np.float32),
        "az": np.full(shape, 3, dtype),
        "b": integers((5, 4), dtype),
        "bs": np.full(shape, 0.03, np.float32),
        "bz": np.full(shape, -3 if dtype is np.int8 else 120, dtype),
        "ys": np.full(shape, 0.11, np.float32),
        "yz": np.full(shape, 5, dtype),
    }
    source = one_node("QLinearMatMul", 10, inputs)
    for target in (9, 7):
        converts(source, target, inputs, exact=True)


def test_q_linear_mat_mul_by_row_and_column() -> None:
    inputs: dict[str, Any] = {
        "a": integers((3, 5), np.uint8),
        "as": np.array([0.02, 0.01, 0.03], np.float32),
        "az": np.array([1, 2, 3], np.uint8),
        "b": integers((5, 4), np.uint8),
        "bs": np.array([0.02, 0.01, 0.03, 0.04], np.float32),
        "bz": np.array([10, 20, 30, 40], np.uint8),
        "ys": np.array(0.3, np.float32),
        "yz": np.array(5, np.uint8),
    }
    converts(one_node("QLinearMatMul", 10, inputs), 9, inputs, in_numpy=True)
