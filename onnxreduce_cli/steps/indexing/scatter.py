"""Scatter below opset 9: a Gather from the data and the updates behind each other."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Array, Context
from onnxreduce_cli.emit.numbers import (
    MOST_WRITTEN,
    NO_COUNTING,
    Number,
    arange,
    as_name,
    dims_of,
    plus,
    reduced,
    size_of,
    static,
    times,
)
from onnxreduce_cli.steps.indexing.gather_nd import element_places
from onnxreduce_cli.steps.registry import introduced


@introduced("Scatter", 9, "Gather from the data and the updates in a row", blocks=NO_COUNTING)
def scatter(context: Context) -> None:
    """``Scatter(x, [[1]], [[9]])`` with x of shape [3, 1] becomes
    ``Gather([x0, x1, x2, 9], [[0], [3], [2]])``.

    Where the indices are only known at run time, so are the places: each element's own, or, where
    an index is equal to that, the update's.
    """
    op = context.op
    data, updates = context.input(0), context.input(2)
    flat = context.array([-1], "flat")
    both = op.Concat(*[op.Reshape(name, flat) for name in (data, updates)], axis=0)
    places = _constant_places(context)
    if places is not None:
        context.replace("Gather", [both, context.array(places, "places")], keep=(), axis=0)
        return
    gathered = op.Gather(both, _computed_places(context), axis=0)
    context.replace("Reshape", [gathered, op.Shape(data)], keep=())


def _constant_places(context: Context) -> Array | None:
    indices, dims = context.constant(context.input(1)), static(dims_of(context, context.input(0)))
    if indices is None or dims is None or math.prod(dims) > MOST_WRITTEN:
        return None
    size = math.prod(dims)
    places = np.arange(size, dtype=np.int64).reshape(dims)
    at = list(np.indices(indices.shape))
    if at:
        at[context.value("axis", 0)] = indices
    places[tuple(at)] = size + np.arange(indices.size).reshape(indices.shape)
    return places


def _computed_places(context: Context) -> Value:
    op = context.op
    pointed = element_places(context)
    size, count = (_size(context, context.input(index)) for index in (0, 1))
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
        more = plus(context, count, 1)
        order = arange(context, more)
    numbered = op.Mul(hits, order)
    update = reduced(context, "ReduceMax", numbered, [1], keep=False)
    is_hit = cast(context, cast(context, update, TensorProto.BOOL), TensorProto.INT64)
    before = op.Sub(as_name(context, size), context.array([1], "one"))
    behind = op.Add(update, before)
    apart = op.Mul(op.Sub(behind, own), is_hit)
    return op.Add(own, apart)


def _size(context: Context, name: str) -> Number:
    op = context.op
    rank = context.rank(name)
    if rank is None:
        count = op.Size(name)
        return op.Reshape(count, context.array([1], "one"))
    size: Number = 1
    for axis in range(rank):
        size = times(context, size, size_of(context, name, axis))
    return size
