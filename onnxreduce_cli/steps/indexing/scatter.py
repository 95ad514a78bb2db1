"""Scatter: introduced with 9, called ScatterElements from 11 on."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.axes import reduced
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import Array
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT, Number, as_name, sizes
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.sizes import arange, dims_of, known_dims, size_of
from onnxreduce_cli.steps.indexing.gather_elements import element_positions
from onnxreduce_cli.steps.registry import impossible, introduced, up


@introduced("Scatter", 9, "Gather from the data and the updates in a row", blocks=NO_COUNTING)
def scatter(context: Context) -> None:
    """``Scatter(x, [[1]], [[9]])`` with x of shape [3, 1] becomes
    ``Gather([x0, x1, x2, 9], [[0], [3], [2]])``.

    Indices that are only known at run time are compared with each position; see
    `positions_at_run_time`.
    """
    op = context.op
    data, updates = context.input(0), context.input(2)
    flat = context.array([-1], "flat")
    both = op.Concat(*[op.Reshape(name, flat) for name in (data, updates)], axis=0)
    positions = _constant_positions(context)
    if positions is not None:
        context.replace("Gather", [both, context.array(positions, "positions")], keep=(), axis=0)
        return
    inputs = [both, positions_at_run_time(context)]
    if context.rank(data) == 1:
        context.replace("Gather", inputs, keep=(), axis=0)
        return
    gathered, shape = op.Gather(*inputs, axis=0), op.Shape(data)
    context.at(shapes.OPSET).replace("Reshape", [gathered, shape], keep=(), allowzero=1)


def _constant_positions(context: Context) -> Array | None:
    """Return the position of each element of the result in the flattened data and updates.

    Returns:
        an int64 array of the data's shape, or None where shape or indices are not known.
    """
    indices, dims = (
        context.constant(context.input(1)),
        known_dims(dims_of(context, context.input(0))),
    )
    if indices is None or dims is None or math.prod(dims) > LARGEST_CONSTANT:
        return None
    size = math.prod(dims)
    positions = np.arange(size, dtype=np.int64).reshape(dims)
    at = list(np.indices(indices.shape))
    if at:
        at[context.value("axis", 0)] = indices
    positions[tuple(at)] = size + np.arange(indices.size).reshape(indices.shape)
    return positions


@up("Scatter", 11, "its successor ScatterElements")
def scatter_to_scatter_elements(context: Context) -> None:
    """``Scatter(x, indices, updates)`` becomes ``ScatterElements(x, indices, updates)``."""
    context.replace("ScatterElements")


impossible(
    "Scatter",
    11,
    "down",
    "Scatter is deprecated from opset 11 on: no valid model from there has one to bring down",
)


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
