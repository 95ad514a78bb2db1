"""ScatterND: introduced with 11. Its reductions are in scatter_reductions.py."""

from __future__ import annotations

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import Number, as_name
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.sizes import arange, need_dims, size_of, static_dims
from onnxreduce_cli.steps.indexing.flat_positions import (
    COUNTED_FLAT,
    ranks_are_known,
    slice_positions,
)
from onnxreduce_cli.steps.indexing.slice_numbers import scatter_slices
from onnxreduce_cli.steps.registry import introduced


@introduced("ScatterND", 11, "Scatter into the flattened data", blocks=NO_COUNTING)
def scatter_nd(context: Context) -> None:
    """``ScatterND(x, indices, updates)`` with indices of shape [5, 1] becomes
    ``Scatter<axis=0>(x, Expand(indices, Shape(updates)), updates)``. With x of shape [2, 3] and
    indices of shape [5, 2] it becomes
    ``Reshape(Scatter(Reshape(x, [-1]), places, Reshape(updates, [-1])), [2, 3])``.
    """
    op = context.op
    data, indices, updates = (context.input(index) for index in range(3))
    if not ranks_are_known(context):
        scatter_slices(context)
        return
    dims, counts = need_dims(context, data, COUNTED_FLAT), need_dims(context, indices, COUNTED_FLAT)
    place, depth = slice_positions(context, dims)
    if 0 in dims or 0 in counts:
        context.replace("Identity", [data], keep=())
        return
    if depth == 1 and len(counts) == 2:
        # The places have the rank of the updates, which is that of the data.
        column = op.Reshape(place, context.array([-1, *[1] * (len(dims) - 1)], "column"))
        each = op.Expand(column, op.Shape(updates))
        context.replace("Scatter", [data, each, updates], keep=(), axis=0)
        return
    size: Number = 1
    for axis in range(depth, len(dims)):
        size = size * size_of(context, data, axis)
    # One row for each index, with the places of all its elements.
    rows = op.Reshape(place, context.array([-1, 1], "rows"))
    if size != 1:
        first = op.Mul(rows, as_name(context, size))
        rows = op.Add(first, arange(context, size))
    at, values, changed = (shapes.flat(context, name) for name in (rows, updates, data))
    result = op.Scatter(changed, at, values, axis=0)
    known = static_dims(dims)
    if known is not None:
        context.replace("Reshape", [result, context.array(known, "shape")], keep=())
        return
    shape = op.Shape(data)
    context.at(shapes.OPSET).replace("Reshape", [result, shape], keep=(), allowzero=1)
