"""Scatter below opset 9: a Gather from the data and the updates behind each other."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.steps.births import (
    MOST_WRITTEN,
    NO_COUNTING,
    Number,
    arange,
    as_name,
    born,
    dims_of,
    plus,
    reduced,
    size_of,
    static,
    times,
)
from onnxreduce_cli.steps.casts import cast
from onnxreduce_cli.steps.context import Array, Context
from onnxreduce_cli.steps.gather_nd import element_places


@born("Scatter", 9, "Gather from the data and the updates in a row", blocks=NO_COUNTING)
def scatter(context: Context) -> None:
    """``Scatter(x, [[1]], [[9]])`` with x of shape [3, 1] becomes
    ``Gather([x0, x1, x2, 9], [[0], [3], [2]])``.

    Where the indices are only known at run time, so are the places: each element's own, or, where
    an index is equal to that, the update's.
    """
    data, updates = context.input(0), context.input(2)
    flat = context.array([-1], "flat")
    both = context.emit(
        "Concat",
        [context.emit("Reshape", [name, flat], "flat") for name in (data, updates)],
        "both",
        axis=0,
    )
    places = _constant_places(context)
    if places is not None:
        context.replace("Gather", [both, context.array(places, "places")], keep=(), axis=0)
        return
    gathered = context.emit("Gather", [both, _computed_places(context)], "changed", axis=0)
    context.replace("Reshape", [gathered, context.emit("Shape", [data], "shape")], keep=())


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


def _computed_places(context: Context) -> str:
    pointed = element_places(context)
    size, count = (_size(context, context.input(index)) for index in (0, 1))
    own = arange(context, size)
    # Nothing points to -1, so that there is something to find the highest of.
    none = context.array([-1], "none")
    flat = context.emit("Reshape", [pointed, context.array([-1], "flat")], "flat")
    pointed = context.emit("Concat", [none, flat], "pointed", axis=0)
    column = context.emit("Reshape", [own, context.array([-1, 1], "column")], "own")
    hits = cast(context, context.emit("Equal", [column, pointed], "hits"), TensorProto.INT64)
    if isinstance(count, int):
        order = arange(context, count + 1)
    else:
        more = plus(context, count, 1)
        order = arange(context, more)
    numbered = context.emit("Mul", [hits, order], "numbered")
    update = reduced(context, "ReduceMax", numbered, [1], keep=False)
    is_hit = cast(context, cast(context, update, TensorProto.BOOL), TensorProto.INT64)
    before = context.emit("Sub", [as_name(context, size), context.array([1], "one")], "before")
    behind = context.emit("Add", [update, before], "behind")
    apart = context.emit("Mul", [context.emit("Sub", [behind, own]), is_hit], "apart")
    return context.emit("Add", [own, apart], "places")


def _size(context: Context, name: str) -> Number:
    rank = context.rank(name)
    if rank is None:
        count = context.emit("Size", [name], "size")
        return context.emit("Reshape", [count, context.array([1], "one")], "size")
    size: Number = 1
    for axis in range(rank):
        size = times(context, size, size_of(context, name, axis))
    return size
