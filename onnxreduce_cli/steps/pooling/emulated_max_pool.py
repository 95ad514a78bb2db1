"""MaxPool with dilations below opset 10 that gives indices, and without any below opset 8."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import reduced, unsqueezed
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT, Number, as_name, sizes
from onnxreduce_cli.emit.sizes import arange, size_of
from onnxreduce_cli.steps.pooling.windows import Axis, Indices, axes, places, written


def reads_indices(context: Context) -> bool:
    """Return whether anything reads the node's second output; if a step made that, it is read."""
    name = context.node.output[1] if len(context.node.output) > 1 else ""
    return bool(name) and (context.is_read(name) or context.producer(name) is None)


def pool_with_indices(context: Context) -> None:
    """``y, i = MaxPool(x)`` becomes ``elements = Gather<axis=2>(Reshape(x, [0, 0, -1]), table)``,
    ``y = ReduceMax(elements)`` and ``i = Gather(table, ArgMax(elements)) + channel * size``.

    The table holds where the elements of each window are in a channel. In place of one in the
    padding it holds the window's next one that is not, which changes neither the largest nor which
    of several is the first. NaN is passed over, but for a window's first element, as kernels do
    that begin with it and go on to what is larger.
    """
    context = context.at(max(context.op.opset, 13))
    op = context.op
    found = axes(context)
    inside = [_inside(context, axis) for axis in found]
    table = _table(context, found, inside)
    elements = _elements(context, written(context, table))
    first = op.Gather(elements, context.scalar(0, "first"), axis=3)
    is_nan, first_is_nan = (op.IsNaN(name) for name in (elements, first))
    lowest = context.array(np.array(-np.inf, _dtype(context)), "lowest")
    ordered = op.Where(is_nan, lowest, elements)
    largest = reduced(context, "ReduceMax", ordered, [3], keep=False)
    largest = op.Where(first_is_nan, first, largest)
    place = op.ArgMax(ordered, axis=3, keepdims=0)
    place = op.Where(first_is_nan, context.scalar(0, "first"), place)
    if context.value("storage_order", 0):
        table = _table(context, found, inside, columns_first=True)
    index = _index(context, found, table, place)

    shape = _shape(context, found)
    output, indices = context.node.output
    given = context.elem_type(context.input(0))
    if given in HALVES:
        largest = cast(context, largest, int(given or 0))
    context.replace("Reshape", [largest, shape], [output], keep=())
    op.Reshape(index, shape, outputs=[indices])


def _dtype(context: Context) -> type:
    """The NumPy dtype in which elements are compared."""
    return np.float64 if context.elem_type(context.input(0)) == TensorProto.DOUBLE else np.float32


def _elements(context: Context, table: str) -> Value:
    """The elements of each window: [n, c, windows, kernel]; halves in float."""
    op = context.op
    data = context.input(0)
    if context.need_elem_type(data, "the largest are of that dtype") in HALVES:
        data = cast(context, data, TensorProto.FLOAT)
    channels = op.Reshape(data, context.array([0, 0, -1], "shape"))
    return op.Gather(channels, table, axis=2)


def _inside(context: Context, axis: Axis) -> Indices:
    """The indices of the elements of each window along an axis: int64, [count, kernel].

    In place of one in the padding there is that of the window's next element outside of it.
    """
    op = context.op
    where, step = places(context, axis), axis.window.dilation
    if not isinstance(where, str) and isinstance(axis.size, int) and isinstance(axis.begin, int):
        where = where - axis.begin
        where = np.where(where < 0, where % step, where)
        last = axis.size - 1
        where = np.where(where > last, last - (last - where) % step, where)
        return np.maximum(where, 0)
    place = as_name(context, sizes(context, written(context, where)) - axis.begin)
    dilation = context.array([step], "dilation")
    size, zero = as_name(context, axis.size), context.array([0], "zero")

    def chosen(above: str, below: str, yes: str, no: str) -> str:
        return op.Where(op.Less(below, above), yes, no)

    place = chosen(zero, place, op.Mod(place, dilation), place)
    end = op.Sub(size, context.array([1], "one"))
    back = op.Mod(op.Sub(end, place), dilation)
    place = chosen(size, place, place, op.Sub(end, back))
    return chosen(zero, place, zero, place)


def _table(
    context: Context, found: list[Axis], inside: list[Indices], *, columns_first: bool = False
) -> Indices:
    """The indices of the elements of each window in a flattened channel: [windows, kernel]."""
    op = context.op
    count = len(found)
    kernel = math.prod(axis.window.kernel for axis in found)
    strides: list[Number] = []
    stride: Number = 1
    for axis in found if columns_first else reversed(found):
        strides.append(stride)
        stride = stride * axis.size
    if not columns_first:
        strides.reverse()
    arrays = [part for part in inside if not isinstance(part, str)]
    steps = [step for step in strides if isinstance(step, int)]
    elements = math.prod(part.size for part in arrays)
    if len(arrays) == len(steps) == count and elements <= LARGEST_CONSTANT:
        total = np.zeros((), np.int64)
        for at, (part, step) in enumerate(zip(arrays, steps, strict=True)):
            total = total + step * np.expand_dims(part, _others(at, count))
        return total.reshape(-1, kernel)
    parts = []
    for at, (where, by) in enumerate(zip(inside, strides, strict=True)):
        scaled = as_name(context, sizes(context, written(context, where)) * by)
        parts.append(unsqueezed(context, scaled, list(_others(at, count))))
    added = parts[0]
    for scaled in parts[1:]:
        added = op.Add(added, scaled)
    return op.Reshape(added, context.array([-1, kernel], "shape"))


def _others(at: int, count: int) -> tuple[int, ...]:
    """The dimensions of [counts..., kernels...] but those of one axis."""
    return tuple(index for index in range(2 * count) if index % count != at)


def _index(context: Context, found: list[Axis], table: Indices, place: str) -> Value:
    """The indices in the flattened input of the `place`-th elements of windows.

    Both are int64 of shape [n, c, windows].
    """
    op = context.op
    kernel = math.prod(axis.window.kernel for axis in found)
    windows: Number = 1
    size: Number = 1
    for axis in found:
        windows, size = windows * axis.count, size * axis.size
    rows = sizes(context, arange(context, windows)) * kernel
    flat = written(context, table if isinstance(table, str) else table.reshape(-1))
    if isinstance(table, str):
        flat = op.Reshape(table, context.array([-1], "flat"))
    at = op.Add(place, rows.name)
    within = op.Gather(flat, at, axis=0)
    batch, channels = (size_of(context, context.input(0), at) for at in (0, 1))
    first = unsqueezed(context, (sizes(context, arange(context, batch)) * channels).name, [1])
    channel = op.Add(first, arange(context, channels))
    before = (sizes(context, channel) * size).name
    return op.Add(within, unsqueezed(context, before, [2]))


def _shape(context: Context, found: list[Axis]) -> Value:
    """The shape of the outputs, for a Reshape that keeps the first two dimensions."""
    counts = [axis.count for axis in found]
    known = [count for count in counts if isinstance(count, int)]
    if len(known) == len(counts):
        return context.array([0, 0, *known], "shape")
    return context.op.Concat(
        context.array([0, 0], "kept"), *(as_name(context, count) for count in counts), axis=0
    )
