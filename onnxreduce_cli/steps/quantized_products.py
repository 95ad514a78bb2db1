"""Convolutions and products of quantized tensors below opset 10, summed exactly and rescaled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.model.values import numpy_dtype
from onnxreduce_cli.steps.births import born, dims_of, static, unsqueezed
from onnxreduce_cli.steps.casts import cast
from onnxreduce_cli.steps.context import Blocked, Context
from onnxreduce_cli.steps.integer_products import centred, lowest_for_nan

#: Up to here a float holds every whole number, and so the sum of whole numbers in any order.
_WHOLE = 2**24
#: How far two 8-bit numbers may be apart.
_APART = 255


@born("ConvInteger", 10, "Conv of whole floats", blocks="a sum may be more than float holds")
def conv_integer(context: Context) -> None:
    """``ConvInteger(x, w, x_zero, w_zero)`` becomes
    ``Cast<int32>(Conv(Cast<float>(x - x_zero), Cast<float>(w - w_zero)))``; with many weights w is
    split in two, and so are the sums.
    """
    x, w, x_zero, w_zero = (context.input(index) for index in range(4))
    total = _convolved(context, x, x_zero, w, w_zero)
    context.replace("Identity", [total], keep=())


@born(
    "QLinearConv",
    10,
    "Conv of whole floats, rescaled and rounded",
    blocks="a sum may be more than float holds, or a rank is not known",
)
def q_linear_conv(context: Context) -> None:
    """``QLinearConv(x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b)`` becomes
    ``Cast(Clip(Round((ConvInteger(x, w, x_zero, w_zero) + b) * s) + y_zero, 0, 255))`` with
    ``s = x_scale * w_scale / y_scale``.
    """
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias = (
        context.input(index) for index in range(9)
    )
    rank = context.need_rank(w, "one number for each channel is spread along an axis")
    spatial = list(range(1, rank - 1))
    total = _convolved(context, x, x_zero, w, w_zero)
    if bias:
        spread = unsqueezed(context, bias, spatial)
        total = context.emit("Add", [total, spread], "with_bias")
    factor = context.emit("Mul", [x_scale, w_scale], "product_scale")
    factor = context.emit("Div", [factor, y_scale], "factor")
    if context.need_rank(w_scale, "it is spread along an axis") == 1 and spatial:
        factor = unsqueezed(context, factor, spatial)
    _requantize(context, total, factor, y_zero)


@born(
    "QLinearMatMul",
    10,
    "MatMulInteger, rescaled and rounded",
    blocks="the rank of a scale or of a zero point is not known",
)
def q_linear_mat_mul(context: Context) -> None:
    """``QLinearMatMul(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero)`` becomes
    ``Cast(Clip(Round(MatMulInteger(a, b, a_zero, b_zero) * s) + y_zero, 0, 255))`` with
    ``s = a_scale * b_scale / y_scale``.
    """
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (
        context.input(index) for index in range(8)
    )
    context.far = 10  # MatMulInteger came with the same opset; its own step goes on.
    total = context.emit("MatMulInteger", [a, b, a_zero, b_zero], "total")
    rank = context.need_rank(a_scale, "one for each row is a column")
    if rank == 1 and context.rank(a) != 1 and not _is_one(context, a_scale):
        a_scale = unsqueezed(context, a_scale, [1])
    factor = context.emit("Mul", [a_scale, b_scale], "product_scale")
    _requantize(context, total, context.emit("Div", [factor, y_scale], "factor"), y_zero)


def _is_one(context: Context, name: str) -> bool:
    known = context.type(name)
    return known is not None and known.dims == (1,)


def _convolved(context: Context, x: str, x_zero: str, w: str, w_zero: str) -> str:
    """The sums of a convolution of quantized tensors, in int32."""
    dims = dims_of(context, w)
    rank = context.need_rank(w, "the numbers that are summed are counted")
    zeros = list(range(1, rank)) if w_zero and context.rank(w_zero) == 1 else None
    weights = cast(context, centred(context, w, w_zero, zeros), TensorProto.FLOAT)
    numbers = cast(context, centred(context, x, x_zero), TensorProto.FLOAT)
    attributes: dict[str, Any] = {item.name: item for item in context.node.attribute}
    counts = None if dims is None else static(dims[1:])
    most = None if counts is None else math.prod(counts) * _APART
    if most is not None and most * _APART <= _WHOLE:
        parts = [weights]
    elif most is not None and most * 16 <= _WHOLE:
        sixteen = context.scalar(16.0, "sixteen")
        high = context.emit("Floor", [context.emit("Div", [weights, sixteen])], "high")
        low = context.emit("Sub", [weights, context.emit("Mul", [high, sixteen])], "low")
        parts = [low, high]
    else:
        raise Blocked(
            "its sums may be more than a float holds exactly, and nothing before opset 10 "
            "convolves integers",
            "choose opset 10 or later",
        )
    sums = [
        cast(
            context, context.emit("Conv", [numbers, part], "sums", **attributes), TensorProto.INT32
        )
        for part in parts
    ]
    if len(sums) == 1:
        return sums[0]
    factor = context.scalar(16, "sixteen", TensorProto.INT32)
    return context.emit("Add", [sums[0], context.emit("Mul", [sums[1], factor])], "sums")


def _requantize(context: Context, total: str, factor: str, zero: str) -> None:
    """``Cast(Clip(Round(Cast<float>(total) * factor) + zero))``, in the zero point's dtype."""
    context.far = 12  # Round came with 11, and limits of Clip that are inputs.
    to = context.need_elem_type(zero, "it is the dtype of the result")
    limits = np.iinfo(numpy_dtype(to))
    scaled = context.emit("Mul", [cast(context, total, TensorProto.FLOAT), factor], "scaled")
    rounded = context.emit("Round", [scaled], "rounded")
    moved = context.emit("Add", [rounded, cast(context, zero, TensorProto.FLOAT)], "moved")
    bounds = [context.scalar(float(limit), "limit") for limit in (limits.min, limits.max)]
    clipped = context.emit("Clip", [moved, *bounds], "clipped")
    context.replace("Cast", [lowest_for_nan(context, clipped, bounds[0])], keep=(), to=to)
