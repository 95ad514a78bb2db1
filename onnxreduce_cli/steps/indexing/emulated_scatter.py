"""Scatter below opset 9 where the indices, or the sizes, are only known at run time."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.axes import reduced
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import Number, as_name, sizes
from onnxreduce_cli.emit.sizes import arange, size_of
from onnxreduce_cli.steps.indexing.gather_elements import element_positions


def positions_at_run_time(context: Context) -> Value:
    """Return the position of each element of the result in the flattened data and updates.

    That is its own position or, where an index points to that, the position of the last update
    that does: each position is compared with each index.

    Returns:
        an int64 tensor of shape [elements of the data].
    """
    op = context.op
    context.warn("each element of the data is compared with each index: memory for all those pairs")
    pointed = element_positions(context)
    size, count = (_element_count(context, context.input(index)) for index in (0, 1))
    own = arange(context, size)
    # Nothing points to -1, so that there is something to find the highest of.
    none = context.array([-1], "none")
    flat = op.Reshape(pointed, context.array([-1], "flat"))
    pointed = op.Concat(none, flat, axis=0)
    column = op.Reshape(own, context.array([-1, 1], "column"))
    hits = cast(context, op.Equal(column, pointed), TensorProto.INT64)
    if isinstance(count, int):
        order = arange(context, count + 1)
    else:
        more = count + 1
        order = arange(context, more)
    numbered = op.Mul(hits, order)
    update = reduced(context, "ReduceMax", numbered, [1], keep=False)
    is_hit = cast(context, cast(context, update, TensorProto.BOOL), TensorProto.INT64)
    before = op.Sub(as_name(context, size), context.array([1], "one"))
    behind = op.Add(update, before)
    apart = op.Mul(op.Sub(behind, own), is_hit)
    return op.Add(own, apart)


def _element_count(context: Context, name: str) -> Number:
    """Return the number of a tensor's elements; as a value it is an int64 of shape [1]."""
    op = context.op
    rank = context.rank(name)
    if rank is None:
        count = op.Size(name)
        return sizes(context, op.Reshape(count, context.array([1], "one")))
    size: Number = 1
    for axis in range(rank):
        size = size * size_of(context, name, axis)
    return size
