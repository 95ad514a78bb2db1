"""GatherElements: introduced with 11."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.axes import non_negative_axes, unsqueezed
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.indices import from_front, never_negative
from onnxreduce_cli.emit.numbers import Number, as_name, sizes
from onnxreduce_cli.emit.refusals import NO_COUNTING
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
from onnxreduce_cli.emit.sizes import arange, size_of
from onnxreduce_cli.steps.registry import introduced


@introduced("GatherElements", 11, "Gather from the flattened data", blocks=NO_COUNTING)
def gather_elements(context: Context) -> None:
    """``GatherElements<axis=1>(x, indices)`` with x of shape [2, 3] becomes
    ``Gather(Reshape(x, [-1]), 3 * [[0], [1]] + indices)``.
    """
    place = element_positions(context)
    data = context.input(0)
    if context.rank(data) != 1:
        data = flat(context, data)
    context.replace("Gather", [data, place], keep=(), axis=0)


def element_positions(context: Context) -> str:
    """Return the positions in the flattened data that the node's indices along its axis point to.

    They are int64 and of the shape of the indices. The node is a GatherElements or a Scatter.
    """
    data = context.input(0)
    rank = context.specialised_rank(data)
    if rank is None or context.specialised_rank(context.input(1)) is None:
        return positions_of_unknown_rank(context)
    axis = non_negative_axes((context.value("axis", 0),), rank)[0] if rank else 0
    indices = _counted_from_front(context, context.input(1), size_of(context, data, axis))
    place: str | None = None
    stride: Number = 1
    for dimension in reversed(range(rank)):
        if dimension == axis:
            part = _scaled(context, indices, stride)
        else:
            numbers = arange(context, size_of(context, context.input(1), dimension))
            behind = list(range(1, rank - dimension))
            part = unsqueezed(context, _scaled(context, numbers, stride), behind)
        place = part if place is None else context.op.Add(place, part)
        if dimension:
            stride = stride * size_of(context, data, dimension)
    assert place is not None
    return place


def _counted_from_front(context: Context, indices: str, size: Number) -> str:
    """Return indices of int32 or int64 as int64 in their shape, those below 0 raised by the size of
    their dimension.
    """
    if context.elem_type(indices) != TensorProto.INT64:
        indices = cast(context, indices, TensorProto.INT64)
    if never_negative(context, context.input(1)):
        return indices
    return from_front(context, indices, as_name(context, size), TensorProto.INT64)


def _scaled(context: Context, name: str, stride: Number) -> str:
    """Return an int64 tensor times a stride, in its shape."""
    return name if stride == 1 else context.op.Mul(name, as_name(context, stride))


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
