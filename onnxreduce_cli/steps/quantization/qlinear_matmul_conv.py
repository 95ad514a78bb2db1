"""Convolutions and products of quantized tensors below opset 10, summed exactly and rescaled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import HALVES, cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import along_axis, dims_of, static, unsqueezed
from onnxreduce_cli.model.values import numpy_dtype
from onnxreduce_cli.steps.quantization.matmul_conv_integer import centred, for_rows, lowest_for_nan
from onnxreduce_cli.steps.registry import down, introduced

#: Up to here a float holds every whole number, and so the sum of whole numbers in any order.
_WHOLE = 2**24
#: How far two 8-bit numbers may be apart.
_APART = 255


@introduced("ConvInteger", 10, "Conv of whole floats, below 2**24 in all")
def conv_integer(context: Context) -> None:
    """``ConvInteger(x, w, x_zero, w_zero)`` becomes
    ``Cast<int32>(Conv(Cast<float>(x - x_zero), Cast<float>(w - w_zero)))``.

    With many weights w is split in two, or x too, and so are the sums; with very many, or nobody
    knows how many, it is a Conv of doubles.
    """
    context = context.at(10)  # Slice took computed ends then.
    x, w, x_zero, w_zero = (context.input(index) for index in range(4))
    total = _convolved(context, x, x_zero, w, w_zero)
    context.replace("Identity", [total], keep=())


@introduced("QLinearConv", 10, "Conv of whole floats, rescaled and rounded")
def q_linear_conv(context: Context) -> None:
    """``QLinearConv(x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b)`` becomes
    ``Cast(Clip(Round((ConvInteger(x, w, x_zero, w_zero) + b) * s) + y_zero, 0, 255))`` with
    ``s = x_scale * w_scale / y_scale``.
    """
    context = context.at(10)  # Slice took computed ends then.
    op = context.op
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias = (
        context.input(index) for index in range(9)
    )
    total = _convolved(context, x, x_zero, w, w_zero)
    if bias:
        total = op.Add(total, _for_channels(context, bias, w, 1))
    factor: str = op.Mul(x_scale, w_scale)
    factor = op.Div(factor, y_scale)
    if context.rank(w_scale) != 0:
        factor = _for_channels(context, factor, w, 1)
    _requantize(context, total, factor, y_zero)


def _for_channels(context: Context, name: str, weights: str, axis: int) -> str:
    """A number for each channel, or one for all, such that it broadcasts along an axis.

    Args:
        context: the convolution.
        name: the numbers.
        weights: what has as many dimensions as the data.
        axis: that of the channels.
    """
    op = context.op
    rank, known = context.rank(weights), context.rank(name)
    if known == 0:
        return name
    if rank is None:
        return op.Reshape(name, along_axis(context, weights, axis))
    if known == 1:
        return unsqueezed(context, name, list(range(1, rank - axis)))
    shape = context.array([-1] + [1] * (rank - axis - 1), "shape")
    return op.Reshape(name, shape)


@introduced("QLinearMatMul", 10, "MatMulInteger, rescaled and rounded")
def q_linear_mat_mul(context: Context) -> None:
    """``QLinearMatMul(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero)`` becomes
    ``Cast(Clip(Round(MatMulInteger(a, b, a_zero, b_zero) * s) + y_zero, 0, 255))`` with
    ``s = a_scale * b_scale / y_scale``.
    """
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (
        context.input(index) for index in range(8)
    )
    context = context.at(10)  # MatMulInteger came with the same opset; its own step goes on.
    op = context.op
    total = op.MatMulInteger(a, b, a_zero, b_zero)
    factor = op.Mul(for_rows(context, a_scale, a), b_scale)
    factor = op.Div(factor, y_scale)
    _requantize(context, total, factor, y_zero, of_its_rank=context.rank(a) is None)


@down(
    "QLinearMatMul",
    21,
    "scales of halves cast to float, which the quotient is computed in",
    blocks="it multiplies float8",
)
def scales_in_float(context: Context) -> None:
    """``QLinearMatMul`` with scales of float16 gets ``Cast<float>(scale)`` in their place."""
    inputs = list(context.node.input)
    for index in (1, 4, 6):
        if context.elem_type(inputs[index]) in HALVES:
            inputs[index] = cast(context, inputs[index], TensorProto.FLOAT)
    if inputs != list(context.node.input):
        context.replace(inputs=inputs)


def _convolved(context: Context, x: str, x_zero: str, w: str, w_zero: str) -> str:
    """The sums of a convolution of quantized tensors, in int32."""
    weights = centred(context, w, w_zero and _for_channels(context, w_zero, w, 0))
    numbers = centred(context, x, x_zero)
    attributes: dict[str, Any] = {item.name: item for item in context.node.attribute}
    dims = dims_of(context, w)
    counts = None if dims is None else static(dims[1:])
    most = None if counts is None else math.prod(counts)

    def convolved(data: str, kernel: str) -> str:
        sums = context.op.Conv(data, kernel, **attributes)
        if most is None or most * 16 * 16 > _WHOLE:
            sums = cast(context, sums, TensorProto.INT64)  # From which an int32 wraps.
        return cast(context, sums, TensorProto.INT32)

    if most is None or most * 16 * 16 > _WHOLE:
        return convolved(*(cast(context, name, TensorProto.DOUBLE) for name in (numbers, weights)))
    data, kernels = (cast(context, name, TensorProto.FLOAT) for name in (numbers, weights))
    if most * _APART * _APART <= _WHOLE:
        return convolved(data, kernels)
    halves = _halves(context, kernels)
    if most * _APART * 16 <= _WHOLE:
        return _joined(context, *(convolved(data, half) for half in halves))
    return _joined(
        context,
        *(
            _joined(context, *(convolved(part, half) for part in _halves(context, data)))
            for half in halves
        ),
    )


def _halves(context: Context, name: str) -> tuple[str, str]:
    """Whole numbers as the sum of one below 16 and a multiple of 16: the former, and how many."""
    op = context.op
    sixteen = context.scalar(16.0, "sixteen")
    high = op.Floor(op.Div(name, sixteen))
    return op.Sub(name, op.Mul(high, sixteen)), high


def _joined(context: Context, low: str, high: str) -> Value:
    op = context.op
    factor = context.scalar(16, "sixteen", TensorProto.INT32)
    return op.Add(low, op.Mul(high, factor))


def _requantize(
    context: Context, total: str, factor: str, zero: str, *, of_its_rank: bool = False
) -> None:
    """``Cast(Clip(Round(Cast<float>(total) * factor) + zero))``, in the zero point's dtype.

    Args:
        context: the product.
        total: its sums.
        factor: by which they are rescaled.
        zero: the zero point.
        of_its_rank: whether the factor may have more dimensions than the sums.
    """
    context = context.at(12)  # Round came with 11, and limits of Clip that are inputs.
    op = context.op
    to = context.need_elem_type(zero, "it is the dtype of the result")
    limits = np.iinfo(numpy_dtype(to))
    scaled = op.Mul(cast(context, total, TensorProto.FLOAT), factor)
    rounded = op.Round(scaled)
    moved = op.Add(rounded, cast(context, zero, TensorProto.FLOAT))
    bounds = [context.scalar(float(limit), "limit") for limit in (limits.min, limits.max)]
    clipped = op.Clip(moved, *bounds)
    result = lowest_for_nan(context, clipped, bounds[0])
    if of_its_rank:
        result = op.Reshape(result, op.Shape(total))
    context.replace("Cast", [result], keep=(), to=to)
