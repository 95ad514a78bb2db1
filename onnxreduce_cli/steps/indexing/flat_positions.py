"""The positions that the indices of GatherND and ScatterND point to, in flattened data."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.indices import from_front, never_negative
from onnxreduce_cli.emit.numbers import Number, as_name
from onnxreduce_cli.emit.sizes import known_size, need_dims, size_of, static_dims
from onnxreduce_cli.model.graph.values import Dims

#: Why ranks are needed.
COUNTED_FLAT = "positions are counted in the flattened data"


def slice_positions(context: Context, dims: Dims) -> tuple[str, int]:
    """Return the numbers, in the order of the data, of the slices that the node's indices point to.

    Args:
        context: the context of a GatherND or ScatterND for which `ranks_are_known` is true.
        dims: the dimensions of the data.

    Returns:
        an int64 tensor of the shape of the indices without the last dimension, and how many
        dimensions are indexed.

    Raises:
        Blocked: that is none, which no definition allows.
    """
    op = context.op
    indices = context.input(1)
    shape = need_dims(context, indices, COUNTED_FLAT)
    depth = shape[-1]
    assert isinstance(depth, int)
    if not depth:
        raise Blocked(
            "its indices name no dimension",
            "mend the model: give it indices whose last dimension is at least 1",
        )
    known = context.constant(indices)
    sizes = static_dims(dims[:depth])
    if known is not None and sizes is not None:
        positive = np.where(known < 0, known + np.array(sizes), known)
        strides = [math.prod(sizes[index + 1 :]) for index in range(depth)]
        return context.array((positive * strides).sum(-1).astype(np.int64), "places"), depth
    place: str | None = None
    stride: Number = 1
    for dimension in reversed(range(depth)):
        size = size_of(context, context.input(0), dimension)
        column = context.scalar(dimension, "column")
        part: str = op.Gather(indices, column, axis=len(shape) - 1)
        if not never_negative(context, indices):
            length = op.Squeeze(as_name(context, size), axes=[0])
            part = from_front(context, part, length, TensorProto.INT64)
        part = _scaled_scalar(context, part, stride)
        place = part if place is None else op.Add(place, part)
        stride = stride * size
    assert place is not None
    return place, depth


def _scaled_scalar(context: Context, name: str, stride: Number) -> str:
    """Return an int64 tensor, of any shape, times a stride, in its shape: of a scalar it is a
    scalar.
    """
    op = context.op
    if stride == 1:
        return name
    if isinstance(stride, int):
        factor = context.scalar(stride, "stride")
    else:
        factor = op.Squeeze(as_name(context, stride), axes=[0])
    return op.Mul(name, factor)


def ranks_are_known(context: Context) -> bool:
    """Return whether both ranks are known, and how many dimensions are indexed."""
    data, indices = context.input(0), context.input(1)
    ranks = context.specialised_rank(data), context.specialised_rank(indices)
    return None not in ranks and known_size(context, indices, -1) is not None
