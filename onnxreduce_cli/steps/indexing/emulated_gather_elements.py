"""GatherElements and Scatter of unknown rank, below opsets 11 and 9."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.indices import from_front, never_negative
from onnxreduce_cli.emit.numbers import sizes
from onnxreduce_cli.emit.shapes import (
    OPSET,
    among,
    axes_from_front,
    element,
    flat,
    flat_indices,
    rank_at_run_time,
    reshaped,
    strides,
)


def positions_of_unknown_rank(context: Context) -> Value:
    """Do as `gather_elements.element_positions` where a rank is only known at run time."""
    context = context.at(OPSET)
    op = context.op
    data, indices, axis = context.input(0), context.input(1), context.value("axis", 0)
    dims = op.Shape(data)
    apart = strides(context, dims)
    rank = rank_at_run_time(context, data)
    number = context.array([axis], "axis")
    is_axis = among(
        context,
        sizes(context, rank),
        axes_from_front(context, number, sizes(context, rank)) if axis < 0 else number,
    )
    others = op.Where(is_axis, context.array([0], "zero"), apart)
    if context.elem_type(indices) != TensorProto.INT64:
        indices = cast(context, indices, TensorProto.INT64)
    shape = op.Shape(indices)
    along = flat(context, indices)
    if not never_negative(context, context.input(1)):
        length = element(context, dims, axis)
        along = from_front(context, along, length, TensorProto.INT64)
    along = op.Mul(along, element(context, apart, axis))
    positions = op.Add(flat_indices(context, shape, others), along)
    return reshaped(context, positions, shape)
