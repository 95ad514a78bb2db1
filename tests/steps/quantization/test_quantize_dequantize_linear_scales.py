"""QuantizeLinear and DequantizeLinear across their boundaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from tests.support import (
    blockers,
    converts,
    converts_or_counts,
    dims_of,
    model,
    one_node,
    op_types,
    without_ranks,
)

NASTY = np.array(
    [[0.0, -0.0, 0.5, 1.5], [2.5, -2.5, 1e9, -1e9], [np.inf, -np.inf, 0.24, 63.7]], np.float32
)


def quantize(
    opset: int,
    x: np.ndarray,
    scale: Any,
    zero: Any = None,
    op_type: str = "QuantizeLinear",
    constant: bool = True,
    **attributes: Any,
) -> ModelProto:
    inputs = {"x": x, "scale": np.asarray(scale)}
    if zero is not None:
        inputs["zero"] = np.asarray(zero)
    initializers = ("scale", "zero") if constant else ()
    return one_node(op_type, opset, inputs, initializers=initializers, **attributes)


def scales(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.newest
def test_one_scale(dtype: type, constant: bool, rank: int) -> None:
    shape = (1,) * rank
    scale, zero = np.full(shape, 0.25, np.float32), np.full(shape, 3, dtype)
    feeds = {"x": NASTY, "scale": scale, "zero": zero}
    source = quantize(21, NASTY, scale, zero, constant=constant, axis=-1)
    ten = converts(source, 10, feeds)
    assert "QuantizeLinear" in op_types(ten)
    converts(ten, 25, feeds)
    data = np.arange(12, dtype=dtype).reshape(3, 4)
    back = quantize(21, data, scale, zero, op_type="DequantizeLinear", constant=constant, axis=-1)
    ten = converts(back, 10, {**feeds, "x": data}, exact=True)
    assert "DequantizeLinear" in op_types(ten)
    converts(ten, 25, {**feeds, "x": data}, exact=True)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize(("axis", "length"), [(0, 3), (1, 4), (-1, 4)])
@pytest.mark.parametrize("with_zero", [True, False])
def test_a_scale_for_each_index(dtype: type, axis: int, length: int, with_zero: bool) -> None:
    scale = scales(*(0.3 * (index + 1) for index in range(length)))
    zero = np.arange(length).astype(dtype) if with_zero else None
    if with_zero or dtype is np.uint8:
        source = quantize(13, NASTY, scale, zero, axis=axis)
        converts(source, 12, {"x": NASTY}, exact=True)
    data = np.arange(-6, 6).astype(dtype).reshape(3, 4)
    source = quantize(13, data, scale, zero, op_type="DequantizeLinear", axis=axis)
    for opset in (12, 11, 10, 9):
        converts(source, opset, {"x": data}, exact=True)


def test_weights_of_a_convolution() -> None:
    x = np.random.default_rng(1).standard_normal((1, 2, 5, 5)).astype(np.float32)
    source = model(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[1, 2, 5, 5] x) => (float[1, 3, 3, 3] y)
        <int8[3, 2, 3, 3] w = {1,-2,3,4,5,6,7,8,9,1,-2,3,4,5,6,7,8,9,1,-2,3,4,5,6,7,8,9,
          1,-2,3,4,5,6,7,8,9,1,-2,3,4,5,6,7,8,9,1,-2,3,4,5,6,7,8,9},
         float[3] s = {0.1, 0.2, 0.3}, int8[3] z = {0, 0, 0}, float t = {0.05}, uint8 o = {128}> {
          q = QuantizeLinear(x, t, o)
          d = DequantizeLinear(q, t, o)
          v = DequantizeLinear<axis = 0>(w, s, z)
          y = Conv(d, v)
        }"""
    )
    converts(source, 11, {"x": x})
    converts(source, 10, {"x": x})
    converts(source, 21, {"x": x})


@pytest.mark.parametrize("op_type", ["QuantizeLinear", "DequantizeLinear"])
@pytest.mark.parametrize(("shape", "axis"), [((), 1), ((1,), 0), ((4,), -1), ((4,), 1), ((3,), 0)])
def test_scales_of_unknown_rank(op_type: str, shape: tuple[int, ...], axis: int) -> None:
    x = NASTY if op_type == "QuantizeLinear" else np.arange(12, dtype=np.uint8).reshape(3, 4)
    scale = np.linspace(0.5, 2, int(np.prod(shape))).reshape(shape).astype(np.float32)
    zero = np.arange(scale.size, dtype=np.uint8).reshape(shape)
    feeds = {"x": x, "scale": scale, "zero": zero}
    feeds |= dims_of(feeds)
    options = {"op_type": op_type, "constant": False, "axis": axis}
    for unknown in (["scale", "zero"], ["x"], ["x", "scale", "zero"]):
        source = without_ranks(quantize(13, x, scale, zero, **options), unknown)
        for target in (12, 9, 7):
            converts_or_counts(source, target, feeds, exact=True)
    if axis == 0 and scale.size == 1:
        source = without_ranks(quantize(13, x[0, 0], scale, zero, **options), unknown)
        alone = {**feeds, "x": x[0, 0], "x_dims": np.array([], np.int64)}
        converts_or_counts(source, 12, alone, exact=True, in_numpy=True)


def test_output_dtype_becomes_a_zero_point() -> None:
    for scale, axis in ((np.float32(0.25), 1), (scales(1, 2, 3, 4), 1)):
        for constant in (True, False):
            source = quantize(
                21, NASTY, scale, constant=constant, output_dtype=TensorProto.INT8, axis=axis
            )
            if not constant and scale.shape:
                source.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "n"
            converts(source, 20, {"x": NASTY, "scale": np.asarray(scale)}, exact=True)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16])
@pytest.mark.parametrize("number", [np.float32, np.float16])
@pytest.mark.parametrize("with_zero", [True, False])
def test_blocks(dtype: type, number: type, with_zero: bool) -> None:
    numbers = np.random.default_rng(3).uniform(0.01, 0.1, (3, 2)).astype(number)
    zero = np.arange(-3, 3).reshape(3, 2).astype(dtype) if with_zero else None
    attributes = {"axis": -1, "block_size": 2}
    if not with_zero:
        attributes["output_dtype"] = {
            np.int8: TensorProto.INT8,
            np.uint8: TensorProto.UINT8,
            np.int16: TensorProto.INT16,
            np.uint16: TensorProto.UINT16,
        }[dtype]
    x = NASTY if number is np.float32 else NASTY.clip(-1000, 1000).astype(np.float16)
    source = quantize(21, x, numbers, zero, **attributes)
    # ONNX Runtime divides float16 in float, where the scale's dtype is to be used.
    halves = number is np.float16
    for target in (20, 17, 13):
        converts(source, target, {"x": x}, in_numpy=halves, check=halves)
    attributes.pop("output_dtype", None)
    data = np.arange(-6, 6).astype(dtype).reshape(3, 4)
    source = quantize(21, data, numbers, zero, op_type="DequantizeLinear", **attributes)
    source.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "n"
    for target in (20, 17, 13):
        converts(source, target, {"x": data})


@pytest.mark.parametrize("op_type", ["QuantizeLinear", "DequantizeLinear"])
def test_no_blocks(op_type: str) -> None:
    x = NASTY if op_type == "QuantizeLinear" else np.zeros((3, 4), np.int8)
    source = quantize(21, x, np.float32(1), op_type=op_type, block_size=0)
    assert "block_size" not in str(converts(source, 20, {"x": x}))


def test_blocks_of_unknown_rank() -> None:
    scale = np.linspace(0.5, 2, 6).reshape(3, 2).astype(np.float32)
    data = np.arange(12, dtype=np.int8).reshape(3, 4)
    feeds = {"x": data, "x_dims": np.array(data.shape)}
    for axis in (1, -1):
        more = {"op_type": "DequantizeLinear", "axis": axis, "block_size": 2}
        source = without_ranks(quantize(21, data, scale, **more), ["x"])
        converts(source, 20, feeds, exact=True)


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("to", [TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2])
def test_blocks_of_float8(to: int, saturate: int) -> None:
    scale = np.linspace(0.5, 2, 6).reshape(3, 2).astype(np.float32)
    options = {"axis": 1, "block_size": 2, "output_dtype": to, "saturate": saturate}
    # NaN of these dtypes are not taken for equal.
    x = NASTY if saturate else NASTY.clip(-100, 100)
    source = quantize(21, x, scale, **options)
    result = converts(source, 20, {"x": x}, exact=True, in_numpy=True)
    assert op_types(result)[-1] == "Cast"
    (blocker,) = blockers(source, 18)
    assert "float8" in blocker.reason


@pytest.mark.parametrize("dtype", [np.int16, np.uint16])
@pytest.mark.parametrize("number", [np.float32, np.float16])
@pytest.mark.parametrize("shape", [(), (1,), (4,)])
def test_16_bits(dtype: type, number: type, shape: tuple[int, ...]) -> None:
    scale = np.linspace(0.01, 0.02, int(np.prod(shape, dtype=int))).reshape(shape).astype(number)
    zero = np.full(shape, 1000, dtype)
    x = NASTY if number is np.float32 else NASTY.clip(-1000, 1000).astype(np.float16)
    targets = (20, 13, 11, 9, 7) if number is np.float32 else (20, 13)
    for given in (zero, None):
        attributes = {} if given is not None or dtype is np.int16 else {"output_dtype": 4}
        if given is not None or attributes:
            source = quantize(21, x, scale, given, **attributes)
            for target in targets:
                # ONNX Runtime divides float16 in float, where the scale's dtype is to be used.
                halves = number is np.float16
                converts(source, target, {"x": x}, in_numpy=halves, check=halves)
        data = np.arange(-6, 6).astype(dtype).reshape(3, 4)
        source = quantize(21, data, scale, given, op_type="DequantizeLinear")
        for target in targets:
            converts(source, target, {"x": data})
