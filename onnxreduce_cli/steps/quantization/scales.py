"""Scales and zero points of QuantizeLinear and DequantizeLinear, of any granularity.

There may be one for the tensor, for each index along an axis, or for each block along it.
Arithmetic wants them in float, and in a shape that broadcasts to the data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.axes import non_negative_axes
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT, sizes
from onnxreduce_cli.emit.sizes import along_axis, arange, dims_of, size_of


@dataclass(frozen=True, slots=True)
class Granularity:
    """The granularity of quantization: the parts of a tensor with a scale and a zero point each.

    Attributes:
        data: the tensor, or another of its shape.
        axis: the axis along which the parts lie.
        block_size: how many elements along it a part has; 0 where there is one scale for the whole
            tensor, or for each index along the axis.
    """

    data: str
    axis: int
    block_size: int


def granularity(context: Context) -> Granularity:
    """Return which parts of its input the node itself has scales for."""
    axis, block_size = context.value("axis", 1), context.value("block_size", 0)
    return Granularity(context.input(0), axis, block_size)


def spread(context: Context, name: str, of: Granularity | None = None) -> str:
    """Return scales or zero points in float, in a shape that broadcasts to the data.

    Args:
        context: the node.
        name: the scales or zero points.
        of: the parts of the data that they are for; by default as the node states it.
    """
    of = of or granularity(context)
    numbers = as_float(context, name)
    if of.block_size:
        return for_each_element(context, numbers, of)
    if dims_of(context, name) in ((), (1,)):
        return numbers
    shape = _shape_along_axis(context, of)
    if isinstance(shape, list):
        if shape == [-1] and context.rank(name) == 1:
            return numbers
        shape = context.array(shape, "shape")
    return context.op.Reshape(numbers, shape)


def _shape_along_axis(context: Context, of: Granularity) -> list[int] | str:
    """Return the shape in which a vector, or a scalar, broadcasts along the axis.

    It is a list where the rank is known, else the name of an int64 vector.
    """
    op = context.op
    rank = context.rank(of.data)
    if rank == 0:
        return []
    if rank == 1:
        return [-1]
    if rank is not None:
        return [-1] + [1] * (rank - 1 - non_negative_axes((of.axis,), rank)[0])
    if of.axis >= 0:
        return along_axis(context, of.data, of.axis)
    # No more dimensions than the data has: that may be a scalar, with one scale.
    shape = context.array([-1] + [1] * (-1 - of.axis), "shape")
    dims = op.Shape(of.data)
    rank_of = op.Shape(dims)
    return op.Slice(shape, context.array([0], "start"), rank_of)


def for_each_element(context: Context, name: str, of: Granularity) -> Value:
    """Return scales or zero points of blocks repeated: one for each element along the axis.

    Their dtype stays, and their shape becomes that of the data.
    """
    op = context.op
    rank, axis = context.rank(of.data), of.axis
    if rank is not None:
        axis = non_negative_axes((axis,), rank)[0]
        size = size_of(context, of.data, axis)
    else:
        shape = op.Shape(of.data)
        size = sizes(context, op.Gather(shape, context.array([axis], "axis"), axis=0))
    if isinstance(size, int) and size <= LARGEST_CONSTANT:
        blocks = context.array(np.arange(size, dtype=np.int64) // of.block_size, "blocks")
    else:
        length = context.array([of.block_size], "block_size")
        blocks = op.Div(arange(context, size), length)
    return op.Gather(name, blocks, axis=axis)


def as_float(context: Context, name: str) -> str:
    """Return a value in float; a constant of a dtype that the target opset lacks is cast here."""
    if context.need_elem_type(name, "it is computed with in float") == TensorProto.FLOAT:
        return name
    if context.kind(name) not in schemas.allowed_types("Cast", context.target_opset)["in0"]:
        known = context.constant(name)
        if known is not None:
            return context.array(known.astype(np.float32), "as_float")
    return cast(context, name, TensorProto.FLOAT)


def with_scalar_scale(context: Context) -> bool:
    """Replace a single scale and zero point by scalars; return whether there is a single one."""
    if dims_of(context, context.input(1)) not in ((), (1,)):
        return False
    inputs = [context.input(0), *(_scalar(context, name) for name in context.node.input[1:])]
    if inputs != list(context.node.input) or context.attribute("axis") is not None:
        context.replace(inputs=inputs, drop=("axis",))
    return True


def _scalar(context: Context, name: str) -> str:
    """Return the one element of a tensor, in its dtype, in shape []."""
    op = context.op
    known = context.constant(name) if name else None
    rank = context.rank(name) if name else 0
    if rank == 0:
        return name
    if known is not None:
        return context.array(known.reshape(()), "scalar")
    if rank == 1:
        return op.Squeeze(name, axes=[0])
    return op.Reshape(name, context.array([], "scalar"))
