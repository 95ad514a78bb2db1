"""MaxPool with dilations below opset 10 that gives indices, and without any below opset 8."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import reduced, unsqueezed
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT, Number, as_name, sizes
from onnxreduce_cli.emit.sizes import arange, size_of
from onnxreduce_cli.steps.pooling.windows import (
    Indices,
    WindowedAxis,
    indices_value,
    window_indices,
    windowed_axes,
)


def uses_indices(context: Context) -> bool:
    """Return whether anything reads the node's second output; if a step made that, it is read."""
    name = context.node.output[1] if len(context.node.output) > 1 else ""
    return bool(name) and (context.is_read(name) or context.producer(name) is None)


def pool_with_indices(context: Context) -> None:
    """``y, i = MaxPool(x)`` becomes, with a Gather for each axis, ``elements = Gather(x, inside)``,
    ``y = ReduceMax(elements)`` and ``i = Gather(table, ArgMax(elements)) + channel * size``.

    The table holds where the elements of each window are in a channel. In place of one in the
    padding there is the window's next one that is not, which changes neither the largest nor which
    of several is the first. NaN is passed over, but for a window's first element, as kernels do
    that begin with it and go on to what is larger.
    """
    context = context.at(max(context.op.opset, 13))
    op = context.op
    found = windowed_axes(context)
    inside = [_indices_inside(context, axis) for axis in found]
    last = 2 + len(found)
    elements = _window_elements(context, found, inside)
    first = op.Gather(elements, context.scalar(0, "first"), axis=last)
    is_nan, first_is_nan = (op.IsNaN(name) for name in (elements, first))
    lowest = context.array(np.array(-np.inf, _dtype(context)), "lowest")
    ordered = op.Where(is_nan, lowest, elements)
    largest = reduced(context, "ReduceMax", ordered, [last], keep=False)
    largest = op.Where(first_is_nan, first, largest)
    place = op.ArgMax(ordered, axis=last, keepdims=0)
    place = op.Where(first_is_nan, context.scalar(0, "first"), place)
    columns_first = bool(context.value("storage_order", 0))
    table = _index_table(context, found, inside, columns_first=columns_first)
    output, indices = context.node.output
    given = context.elem_type(context.input(0))
    if given in HALVES:
        context.replace("Cast", [largest], [output], keep=(), to=given)
    else:
        context.replace("Identity", [largest], [output], keep=())
    _write_index(context, found, table, place, indices)


def _dtype(context: Context) -> type:
    """Return the NumPy dtype in which elements are compared: float64 of doubles, else float32."""
    return np.float64 if context.elem_type(context.input(0)) == TensorProto.DOUBLE else np.float32


def _window_elements(context: Context, found: list[WindowedAxis], inside: list[Indices]) -> str:
    """Return the elements of each window, [n, c, counts..., kernel], halves in float.

    Args:
        context: the pool.
        found: its spatial axes.
        inside: the indices of the elements of each window along each of them.
    """
    op = context.op
    elements: str = context.input(0)
    if context.need_elem_type(elements, "the largest are of that dtype") in HALVES:
        elements = cast(context, elements, TensorProto.FLOAT)
    for at, part in enumerate(inside):
        elements = op.Gather(elements, indices_value(context, part), axis=2 + 2 * at)
    count = len(found)
    if count == 1:
        return elements
    perm = [0, 1, *range(2, 2 + 2 * count, 2), *range(3, 3 + 2 * count, 2)]
    turned = op.Transpose(elements, perm=perm)
    kernel = math.prod(axis.window.kernel for axis in found)
    # A 0 copies a dimension, also one of 0.
    return op.Reshape(turned, context.array([0] * (2 + count) + [kernel], "shape"))


def _indices_inside(context: Context, axis: WindowedAxis) -> Indices:
    """Return the indices of the elements of each window along an axis: int64, [count, kernel].

    In place of one in the padding there is that of the window's next element outside of it.
    """
    op = context.op
    where, step = window_indices(context, axis), axis.window.dilation
    if not isinstance(where, str) and isinstance(axis.size, int) and isinstance(axis.begin, int):
        where = where - axis.begin
        where = np.where(where < 0, where % step, where)
        last = axis.size - 1
        where = np.where(where > last, last - (last - where) % step, where)
        return np.maximum(where, 0)
    place = as_name(context, sizes(context, indices_value(context, where)) - axis.begin)
    dilation = context.array([step], "dilation")
    size, zero = as_name(context, axis.size), context.array([0], "zero")

    def chosen(above: str, below: str, yes: str, no: str) -> str:
        return op.Where(op.Less(below, above), yes, no)

    place = chosen(zero, place, op.Mod(place, dilation), place)
    end = op.Sub(size, context.array([1], "one"))
    back = op.Mod(op.Sub(end, place), dilation)
    place = chosen(size, place, place, op.Sub(end, back))
    return chosen(zero, place, zero, place)


def _index_table(
    context: Context, found: list[WindowedAxis], inside: list[Indices], *, columns_first: bool
) -> str:
    """Return the indices of the elements of each window in a flattened channel.

    They are int64 of shape [windows * kernel], those of one window behind each other.
    """
    op = context.op
    count = len(found)
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
            total = total + step * np.expand_dims(part, _other_axes(at, count))
        return context.array(total.reshape(-1), "table")
    parts = []
    for at, (where, by) in enumerate(zip(inside, strides, strict=True)):
        scaled = as_name(context, sizes(context, indices_value(context, where)) * by)
        parts.append(unsqueezed(context, scaled, list(_other_axes(at, count))))
    added = parts[0]
    for scaled in parts[1:]:
        added = op.Add(added, scaled)
    return op.Reshape(added, context.array([-1], "flat"))


def _other_axes(at: int, count: int) -> tuple[int, ...]:
    """Return the dimensions of [counts..., kernels...] but those of one axis."""
    return tuple(index for index in range(2 * count) if index % count != at)


def _write_index(
    context: Context, found: list[WindowedAxis], table: str, place: str, output: str
) -> None:
    """Give the indices in the flattened input of the `place`-th elements of windows.

    Args:
        context: the pool.
        found: its spatial axes.
        table: the indices in a flattened channel of the elements of all windows; `_index_table`.
        place: the place of the chosen element within its window, int64 of shape [n, c, counts...].
        output: the name of the result, of the same dtype and shape.
    """
    op = context.op
    count = len(found)
    size: Number = 1
    step: Number = math.prod(axis.window.kernel for axis in found)
    at = place
    for behind, axis in enumerate(reversed(found)):
        starts = (sizes(context, arange(context, axis.count)) * step).name
        at = op.Add(at, unsqueezed(context, starts, list(range(1, 1 + behind))))
        step, size = step * axis.count, size * axis.size
    within = op.Gather(table, at, axis=0)
    batch, channels = (size_of(context, context.input(0), at) for at in (0, 1))
    first = unsqueezed(context, (sizes(context, arange(context, batch)) * channels).name, [1])
    channel = op.Add(first, arange(context, channels))
    before = (sizes(context, channel) * size).name
    op.Add(within, unsqueezed(context, before, list(range(2, 2 + count))), outputs=[output])
