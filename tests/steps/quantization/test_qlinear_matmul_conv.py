"""Convolutions and products of quantized tensors below the opset they came with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import converts, converts_or_counts, dims_of, one_node, op_types, without_ranks

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


@pytest.mark.parametrize(("channels", "convolutions"), [(3, 1), (100, 2), (500, 4), (8000, 1)])
def test_conv_integer_of_many_weights(channels: int, convolutions: int) -> None:
    x, w = np.full((1, channels, 3, 4), 255, np.uint8), np.full((2, channels, 3, 3), 255, np.uint8)
    inputs = {"x": x, "w": w, "xz": np.array(0, np.uint8), "wz": np.array(0, np.uint8)}
    x[:, ::2], w[:, 1::3] = 254, 7
    # ONNX Runtime does not convolve doubles.
    in_numpy = channels == 8000
    low = converts(one_node("ConvInteger", 10, inputs), 9, inputs, exact=True, in_numpy=in_numpy)
    assert op_types(low).count("Conv") == convolutions


@pytest.mark.parametrize("unknown", [["w"], ["wz"], ["w", "wz"]])
@pytest.mark.parametrize("per_channel", [False, True])
def test_conv_integer_of_unknown_ranks(per_channel: bool, unknown: list[str]) -> None:
    inputs: dict[str, Any] = {
        "x": integers((1, 4, 6, 6), np.uint8),
        "w": integers((3, 4, 3, 3), np.uint8),
        "xz": np.array(100, np.uint8),
        "wz": np.array([1, 2, 200] if per_channel else 128, np.uint8),
    }
    feeds = {**inputs, **dims_of(inputs)}
    source = without_ranks(one_node("ConvInteger", 10, inputs), unknown)
    for target in (9, 7):
        converts_or_counts(source, target, feeds, exact=True, in_numpy=True)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_q_linear_conv(bias: bool, per_channel: bool, dtype: type) -> None:
    inputs: dict[str, Any] = {
        "x": integers((2, 4, 6, 6), dtype),
        "xs": np.array(0.02, np.float32),
        "xz": np.array(3, dtype),
        # Without VNNI instructions, kernels add pairs of products of uint8 and int8 in 16 bits.
        "w": integers((4, 2, 3, 3), np.int8) // 2,
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


@pytest.mark.parametrize("unknown", [["w"], ["ws", "wz"], ["w", "ws", "wz", "b"]])
@pytest.mark.parametrize("per_channel", [False, True])
def test_q_linear_conv_of_unknown_ranks(per_channel: bool, unknown: list[str]) -> None:
    count = (3,) if per_channel else ()
    inputs: dict[str, Any] = {
        "x": integers((1, 4, 6, 6), np.uint8),
        "xs": np.array(0.02, np.float32),
        "xz": np.array(3, np.uint8),
        "w": integers((3, 4, 3, 3), np.int8),
        "ws": RNG.uniform(0.01, 0.05, count).astype(np.float32),
        "wz": np.zeros(count, np.int8),
        "ys": np.array(0.2, np.float32),
        "yz": np.array(7, np.uint8),
        "b": RNG.integers(-3000, 3000, 3).astype(np.int32),
    }
    source = without_ranks(one_node("QLinearConv", 10, inputs), unknown)
    converts(source, 9, {**inputs, **dims_of(inputs)}, exact=True, in_numpy=True)


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


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("per_row", [False, True])
def test_products_of_unknown_ranks(per_row: bool, rank: int) -> None:
    rows = (3,) if per_row and rank > 1 else ()
    a = integers({1: (5,), 2: (3, 5), 3: (2, 3, 5)}[rank], np.uint8)
    inputs: dict[str, Any] = {
        "a": a,
        "as": RNG.uniform(0.01, 0.05, rows).astype(np.float32),
        "az": integers(rows, np.uint8),
        "b": integers((5, 4), np.uint8),
        "bs": np.array(0.02, np.float32),
        "bz": np.array(10, np.uint8),
        "ys": np.array(0.3, np.float32),
        "yz": np.array(5, np.uint8),
    }
    feeds = {**inputs, **dims_of(inputs)}
    whole = {name: inputs[name] for name in ("a", "b", "az", "bz")}
    for unknown in (["az"], ["a", "az"]):
        source = without_ranks(one_node("MatMulInteger", 10, whole), unknown)
        for target in (9, 7):
            converts(source, target, feeds, exact=True, in_numpy=True)
    for unknown in (["as", "az"], ["a", "as", "az"]):
        source = without_ranks(one_node("QLinearMatMul", 10, inputs), unknown)
        converts(source, 9, feeds, exact=True, in_numpy=True)


def test_scales_in_float() -> None:
    inputs: dict[str, Any] = {
        "a": integers((2, 3, 5), np.int8),
        "as": np.array(0.02, np.float16),
        "az": np.array(3, np.int8),
        "b": integers((5, 4), np.int8),
        "bs": np.array(0.03, np.float16),
        "bz": np.array(-3, np.int8),
        "ys": np.array(0.11, np.float16),
        "yz": np.array(5, np.int8),
    }
    source = one_node("QLinearMatMul", 21, inputs)
    for target in (20, 9, 7):
        converts(source, target, inputs, exact=True, in_numpy=True)
