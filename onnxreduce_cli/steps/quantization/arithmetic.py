"""QuantizeLinear and DequantizeLinear written as arithmetic, with scales of any granularity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.axes import normalised
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import HALVES, cast, finish
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import along_axis, arange, dims_of, size_of
from onnxreduce_cli.model.values import numpy_dtype
from onnxreduce_cli.steps.quantization.matmul_conv_integer import lowest_for_nan


def quantized_to(context: Context) -> int:
    """The dtype that a QuantizeLinear gives."""
    zero = context.input(2)
    if not zero:
        return int(context.value("output_dtype", 0)) or int(TensorProto.UINT8)
    return context.need_elem_type(zero, "it is the dtype to quantize to")


def quantize(context: Context) -> None:
    """``Cast(Clip(Add(Round(Div(x, scale)), zero_point)))`` for integers, in float until the Cast.

    Only the quotient is rounded to the dtype of the scale, if that is a half.
    """
    op = context.op
    data, scale, zero = (context.input(index) for index in range(3))
    to = quantized_to(context)
    limits = np.iinfo(numpy_dtype(to))
    divided = op.Div(as_float(context, data), spread(context, scale))
    given = context.need_elem_type(scale, "it is divided in the dtype of the scale")
    if given in HALVES:
        # Rounded to float and then to a half it is rounded as once.
        divided = cast(context, cast(context, divided, given), TensorProto.FLOAT)
    rounded = op.Round(divided)
    if zero:
        rounded = op.Add(rounded, spread(context, zero))
    bounds = [context.scalar(float(limit), "limit") for limit in (limits.min, limits.max)]
    clipped = lowest_for_nan(context, op.Clip(rounded, *bounds), bounds[0])
    context.replace("Cast", [clipped], keep=(), to=to)


def dequantize(context: Context, numbers: str) -> None:
    """``Mul(Sub(numbers, zero_point), scale)`` of numbers in float, then in the result's dtype."""
    scale, zero = context.input(1), context.input(2)
    given = context.need_elem_type(scale, "it is the dtype of the result")
    if zero:
        numbers = context.op.Sub(numbers, spread(context, zero))
    to = int(context.value("output_dtype", 0)) or given
    finish(context, "Mul", [numbers, spread(context, scale)], to, int(TensorProto.FLOAT))


def as_float(context: Context, name: str) -> str:
    """A value in float; a constant of a dtype that the target lacks is cast here."""
    if context.need_elem_type(name, "it is computed with in float") == TensorProto.FLOAT:
        return name
    if context.kind(name) not in schemas.allowed_types("Cast", context.target_opset)["in0"]:
        known = context.constant(name)
        if known is not None:
            return context.array(known.astype(np.float32), "as_float")
    return cast(context, name, TensorProto.FLOAT)


@dataclass(frozen=True)
class Parts:
    """What parts of a tensor have a scale each.

    Attributes:
        data: the tensor, or another of its shape.
        axis: the axis along which they lie.
        block: how many elements along it one of them has; 0 where there is one scale for all, or
            for each index.
    """

    data: str
    axis: int
    block: int


def parts(context: Context) -> Parts:
    """What parts the node's own scales are for."""
    axis, block = context.value("axis", 1), context.value("block_size", 0)
    return Parts(context.input(0), axis, block)


def spread(context: Context, name: str, of: Parts | None = None) -> str:
    """Scales or zero points in float, such that they broadcast to the data; the node's own ones."""
    of = of or parts(context)
    numbers = as_float(context, name)
    if of.block:
        return of_blocks(context, numbers, of)
    if dims_of(context, name) in ((), (1,)):
        return numbers
    shape = _along_axis(context, of)
    if isinstance(shape, list):
        if shape == [-1] and context.rank(name) == 1:
            return numbers
        shape = context.array(shape, "shape")
    return context.op.Reshape(numbers, shape)


def _along_axis(context: Context, of: Parts) -> list[int] | str:
    """The shape that lets a vector, or a scalar, broadcast along the axis."""
    op = context.op
    rank = context.rank(of.data)
    if rank == 0:
        return []
    if rank == 1:
        return [-1]
    if rank is not None:
        return [-1] + [1] * (rank - 1 - normalised((of.axis,), rank)[0])
    if of.axis >= 0:
        return along_axis(context, of.data, of.axis)
    # No more dimensions than the data has: that may be a scalar, with one scale.
    shape = context.array([-1] + [1] * (-1 - of.axis), "shape")
    dims = op.Shape(of.data)
    rank_of = op.Shape(dims)
    return op.Slice(shape, context.array([0], "start"), rank_of)


def of_blocks(context: Context, name: str, of: Parts) -> Value:
    """One number for each element along the axis, of numbers for blocks of them."""
    op = context.op
    rank, axis = context.rank(of.data), of.axis
    if rank is not None:
        axis = normalised((axis,), rank)[0]
        size = size_of(context, of.data, axis)
    else:
        shape = op.Shape(of.data)
        size = op.Gather(shape, context.array([axis], "axis"), axis=0)
    if isinstance(size, int):
        places = context.array(np.arange(size, dtype=np.int64) // of.block, "blocks")
    else:
        length = context.array([of.block], "block_size")
        places = op.Div(arange(context, size), length)
    return op.Gather(name, places, axis=axis)
