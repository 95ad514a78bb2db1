"""Quantised operators.

Source: QuantizeLinear and DequantizeLinear 10 (one scale), 13 (an axis), 19 (float 8), 21
(blocks, 4 bits), 23 (`output_dtype` and `precision`) to 28; QLinearMatMul 10 and 21,
QLinearConv 10, MatMulInteger and ConvInteger 10. Values are rounded to the nearest, half to
even, before the zero point is added, then cut off at the type's ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxreduce_cli.executor.axes import one_axis
from onnxreduce_cli.executor.convert_dtype import to_float8
from onnxreduce_cli.executor.dtypes import FLOAT8, FLOAT64, Array, dtype_of_number, iinfo, to_dtype
from onnxreduce_cli.executor.errors import Invalid, NotSupported
from onnxreduce_cli.executor.linear import convolved, need_one_each
from onnxreduce_cli.executor.registry import Call, kernel

_UINT8 = np.dtype(np.uint8)
_INTEGERS = {"int2", "uint2", "int4", "uint4", "int8", "uint8", "int16", "uint16", "int32"}


def _spread(call: Call, parameter: Array, shape: tuple[int, ...]) -> Array:
    """Return a scale or zero point, one for all, for an index of an axis or for a block, in the
    shape of the data.
    """
    block = int(call.attrs.get("block_size", 0))
    if parameter.size == 1 and parameter.ndim < 2 and not block:
        return parameter.reshape(())
    if call.since == 10:
        raise Invalid(f"a parameter has shape {parameter.shape}, one value is needed")
    axis = one_axis(call.attrs.get("axis", 1), len(shape))
    if block:
        if parameter.ndim != len(shape):
            raise Invalid(f"a blocked parameter has rank {parameter.ndim}, not {len(shape)}")
        if parameter.shape != (*shape[:axis], -(-shape[axis] // block), *shape[axis + 1 :]):
            raise Invalid(f"a parameter of shape {parameter.shape} does not fit {shape} in blocks")
        return np.take(np.repeat(parameter, block, axis=axis), range(shape[axis]), axis=axis)
    if parameter.shape != (shape[axis],):
        raise Invalid(f"a parameter has shape {parameter.shape}, not ({shape[axis]},)")
    return parameter.reshape((-1,) + (1,) * (len(shape) - axis - 1))


def _ends(dtype: np.dtype[Any]) -> tuple[int, int]:
    info = iinfo(dtype)
    return int(info.min), int(info.max)


def _saturated(scaled: Array, zero: Array | None, dtype: np.dtype[Any]) -> Array:
    """Round half to even, add the zero point and clip to the range of an integer type.

    The specification does not say what NaN becomes; here, as in ONNX Runtime, the lowest number.
    """
    whole = np.rint(scaled.astype(FLOAT64))
    whole = np.where(np.isnan(whole), -np.inf, whole)
    if zero is not None:
        whole = whole + zero.astype(FLOAT64)
    return np.clip(whole, *_ends(dtype)).astype(np.int32).astype(dtype)


@kernel("QuantizeLinear", 10, 13, 19, 21, 23, 24, 25, 28)
def quantize_linear(call: Call, x: Array, scale: Array, zero: Array | None = None) -> Array:
    """Divide by the scale, in its type or in `precision`, and convert to the zero point's type.

    Without a zero point the type is `output_dtype`, or uint8.
    """
    named = call.attrs.get("output_dtype", 0)
    dtype = zero.dtype if zero is not None else (dtype_of_number(named) if named else _UINT8)
    if named and dtype_of_number(named) != dtype:
        raise Invalid("output_dtype is not the zero point's type")
    number = call.attrs.get("precision", 0)
    precision = dtype_of_number(number) if number else scale.dtype
    if precision.name.startswith("float8_e8m0"):
        raise NotSupported("dividing in float8e8m0 is not implemented")
    divisor = _spread(call, scale, x.shape).astype(precision)
    scaled = np.asarray(x.astype(precision) / divisor)
    shift = None if zero is None else _spread(call, zero, x.shape)
    if dtype.name in _INTEGERS:
        return _saturated(scaled, shift, dtype)
    if shift is not None and np.any(shift.astype(np.float32) != 0):
        raise Invalid(f"the zero point of type {dtype.name} must be 0")
    if dtype in FLOAT8:
        return to_float8(scaled, dtype, bool(call.attrs.get("saturate", 1)))
    return to_dtype(scaled, dtype)


@kernel("DequantizeLinear", 10, 13, 19, 21, 23, 24, 25, 28)
def dequantize_linear(call: Call, x: Array, scale: Array, zero: Array | None = None) -> Array:
    """Subtract the zero point and multiply by the scale, in its type or `output_dtype`."""
    named = call.attrs.get("output_dtype", 0)
    dtype = dtype_of_number(named) if named else scale.dtype
    wide = x.astype(FLOAT64)
    if zero is not None:
        wide = wide - _spread(call, zero, x.shape).astype(FLOAT64)
    return to_dtype(wide * _spread(call, scale, x.shape).astype(FLOAT64), dtype)


def _minus_zero_point(data: Array, zero: Array | None, axis: int) -> Array:
    """Return data - zero as int32; a 1-D zero point is along `axis`."""
    wide = data.astype(np.int32)
    if zero is None:
        return wide
    return wide - _along(zero, data.ndim, axis).astype(np.int32)


def _along(parameter: Array, rank: int, axis: int) -> Array:
    if parameter.size == 1:
        return parameter.reshape(())
    if parameter.ndim != 1:
        return parameter
    return parameter.reshape((-1,) + (1,) * (rank - one_axis(axis, rank) - 1))


def _need_one(**parameters: Array | None) -> None:
    for name, parameter in parameters.items():
        if parameter is not None and parameter.size != 1:
            raise Invalid(f"{name} has shape {parameter.shape}, it must hold one value")


def _need_one_or_each(channels: int, **parameters: Array | None) -> None:
    for name, parameter in parameters.items():
        if parameter is not None and parameter.size != 1 and parameter.shape != (channels,):
            raise Invalid(f"{name} has shape {parameter.shape} for {channels} channels")


@kernel("MatMulInteger", 10)
def mat_mul_integer(
    call: Call, a: Array, b: Array, a_zero: Array | None = None, b_zero: Array | None = None
) -> Array:
    """Multiply integer matrices into int32; zero points for rows of A, columns of B."""
    return np.matmul(_minus_zero_point(a, a_zero, -2), _minus_zero_point(b, b_zero, -1))


@kernel("QLinearMatMul", 10, 21)
def q_linear_mat_mul(
    call: Call,
    a: Array,
    a_scale: Array,
    a_zero: Array,
    b: Array,
    b_scale: Array,
    b_zero: Array,
    y_scale: Array,
    y_zero: Array,
) -> Array:
    """Multiply quantised matrices; parameters are for all, for rows of A or columns of B."""
    if y_zero.dtype.name not in _INTEGERS:
        raise NotSupported("float 8 is not implemented")
    _need_one(y_scale=y_scale, y_zero_point=y_zero)
    product = np.matmul(_minus_zero_point(a, a_zero, -2), _minus_zero_point(b, b_zero, -1)).astype(
        FLOAT64
    )
    rank = product.ndim
    factor = _along(a_scale.astype(FLOAT64), rank, -2) * _along(b_scale.astype(FLOAT64), rank, -1)
    scaled = product * factor / y_scale.astype(FLOAT64).reshape(())
    return _saturated(scaled, y_zero.reshape(()), y_zero.dtype)


@kernel("ConvInteger", 10)
def conv_integer(
    call: Call, x: Array, w: Array, x_zero: Array | None = None, w_zero: Array | None = None
) -> Array:
    """Convolve integers into int32; pads stand for the zero point."""
    _need_one(x_zero_point=x_zero)
    _need_one_or_each(w.shape[0], w_zero_point=w_zero)
    return convolved(call, _minus_zero_point(x, x_zero, 0), _minus_zero_point(w, w_zero, 0))


@kernel("QLinearConv", 10)
def q_linear_conv(
    call: Call,
    x: Array,
    x_scale: Array,
    x_zero: Array,
    w: Array,
    w_scale: Array,
    w_zero: Array,
    y_scale: Array,
    y_zero: Array,
    bias: Array | None = None,
) -> Array:
    """Convolve quantised data; W's parameters are for all or for each output channel."""
    _need_one(x_scale=x_scale, x_zero_point=x_zero, y_scale=y_scale, y_zero_point=y_zero)
    _need_one_or_each(w.shape[0], w_scale=w_scale, w_zero_point=w_zero)
    total = convolved(call, _minus_zero_point(x, x_zero, 0), _minus_zero_point(w, w_zero, 0))
    if bias is not None:
        need_one_each(bias, w.shape[0])
        total = total + _along(bias, total.ndim, 1)
    factor = _along(w_scale.astype(FLOAT64), total.ndim, 1) * float(x_scale.reshape(()))
    scaled = total.astype(FLOAT64) * factor / float(y_scale.reshape(()))
    return _saturated(scaled, y_zero.reshape(()), y_zero.dtype)
