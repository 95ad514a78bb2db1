"""Slice: 10 made starts, ends and axes inputs and added steps, 11 allowed negative axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.axes import ints_to_constant, known_axes, non_negative_axes, reduced
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.indices import size_along
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT, sizes
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.reversed_dims import replace_with_reversed_dims
from onnxreduce_cli.emit.sizes import arange, known_size
from onnxreduce_cli.steps.registry import down, up


@up("Slice", 10, "starts, ends and axes: attributes to inputs")
def attributes_to_inputs(context: Context) -> None:
    """``Slice<starts=[1], ends=[3], axes=[0]>(x)`` becomes ``Slice(x, starts, ends, axes)``."""
    names = ("starts", "ends", "axes")
    inputs = [ints_to_constant(context, name) for name in names]
    context.replace(inputs=[context.input(0), *inputs], drop=names)


@down(
    "Slice",
    10,
    "starts, ends and axes: inputs to attributes; steps or bounds at run time: done by Gather",
    blocks=NO_COUNTING,
)
def inputs_to_attributes(context: Context) -> None:
    """``Slice(x, [1], [3], [0])`` becomes ``Slice<starts=[1], ends=[3], axes=[0]>(x)``.

    With steps, ``Slice(x, [0], [5], [0], [2])`` becomes ``Gather<axis=0>(x, [0, 2, 4])``. The
    indices are computed at run time where the bounds, or the size along the axis, are.
    """
    data = context.input(0)
    names = ("starts", "ends", "axes", "steps")
    known = {name: known_axes(context, index) for index, name in enumerate(names, 1)}
    present = {name: bool(context.input(index)) for index, name in enumerate(names, 1)}
    unit_steps = not present["steps"] or known["steps"] == (1,) * len(constant_list(context, 4))
    if unit_steps and None not in known.values():
        values: dict[str, Any] = {n: known[n] for n in names[:3] if present[n]}
        context.replace(inputs=[data], **{**values, **_in_ascending_order(context)})
        return
    steps, axes = constant_list(context, 4), constant_list(context, 3)
    count = len(steps) or len(axes) or len(context.elements(context.input(1)) or ())
    if (present["steps"] and not steps) or (present["axes"] and not axes) or not count:
        context.require_specialised("what is known of its axes and steps")
        slice_at_run_time(context)
        return
    along = zip(axes or range(count), steps or (1,) * count, strict=True)
    for index, (axis, step) in enumerate(along):
        indices = _indices(context, index, axis, step)
        if index + 1 < count:
            data = context.op.Gather(data, indices, axis=axis)
        else:
            context.replace("Gather", [data, indices], keep=(), axis=axis)


def _in_ascending_order(context: Context) -> dict[str, list[int]]:
    """Return starts, ends and axes by ascending axis; empty where they are, or are not known.

    Shape inference below opset 10 takes axes for ascending.
    """
    given = [context.constant(context.input(index)) for index in (1, 2, 3)]
    lists = [array.reshape(-1).tolist() for array in given if array is not None]
    if len(lists) < 3 or lists[2] == sorted(lists[2]):
        return {}
    ordered = sorted(zip(*lists, strict=True), key=lambda item: item[2])
    columns = [list(column) for column in zip(*ordered, strict=True)]
    return dict(zip(("starts", "ends", "axes"), columns, strict=True))


def _indices(context: Context, index: int, axis: int, step: int) -> Value:
    """Return the indices that the slice takes along an axis, int64 of shape [count].

    Args:
        context: the context of the node.
        index: the index of the axis in the lists of bounds.
        axis: the axis.
        step: the step along it.
    """
    starts, ends = constant_list(context, 1), constant_list(context, 2)
    dim = known_size(context, context.input(0), axis)
    if starts and ends and isinstance(dim, int):
        start, end = starts[index], ends[index]
        # Going backwards, an end before the first element means "through the first".
        last = None if step < 0 and end < -dim else end
        taken = range(dim)[start:last:step]
        if len(taken) <= LARGEST_CONSTANT:
            return context.array(list(taken), "indices")
    return indices_at_run_time(context, index, axis, step)


@down("Slice", 11, "negative axes made non-negative, at run time where they or the rank are")
def slice_axes_from_front(context: Context) -> None:
    """``Slice(x, starts, ends, [-1])`` with x of rank 3 becomes ``Slice(x, starts, ends, [2])``.

    Of unknown rank it becomes ``Transpose(Slice(Transpose(x), starts, ends, [0]))``, or the rank is
    added to negative axes at run time.
    """
    if not context.input(3):
        return
    axes = context.constant(context.input(3))
    if axes is not None and (axes >= 0).all():
        return
    if axes is None:
        context.require_specialised("what its axes are")
    rank = None if axes is None else context.specialised_rank(context.input(0))
    inputs = list(context.node.input)
    if axes is not None and rank is None and (axes < 0).all() and not context.reaches(10):
        inputs[3] = context.array(-1 - axes, "axes")
        replace_with_reversed_dims(context, inputs=inputs)
        return
    if axes is not None and rank is not None:
        positive = np.array(non_negative_axes(tuple(axes.tolist()), rank), axes.dtype)
        inputs[3] = context.array(positive, "axes")
    else:
        inputs[1:] = [shapes.int64_list(context, name) if name else "" for name in inputs[1:]]
        rank_now = shapes.rank_at_run_time(context, inputs[0])
        inputs[3] = shapes.axes_from_front(context, inputs[3], sizes(context, rank_now))
    context.replace(inputs=inputs)


def constant_list(context: Context, index: int) -> tuple[int, ...]:
    """Return the input at `index` as a constant list; empty where it is absent or unknown."""
    array = context.constant(context.input(index)) if context.input(index) else None
    return () if array is None else tuple(int(number) for number in array.reshape(-1))


def indices_at_run_time(context: Context, index: int, axis: int, step: int) -> Value:
    """Return ``start + step * [0, 1, ... count - 1]``, int64 of shape [count].

    Args:
        context: the context of the node.
        index: the index of the axis in the lists of bounds.
        axis: the axis.
        step: the step along it.
    """
    op = context.op
    zero, one = context.array([0], "zero"), context.array([1], "one")
    size = op.Reshape(size_along(context, context.input(0), axis, TensorProto.INT64), one)
    # Bounds are clamped to these: going forward to [0, size], going back to [-1, size - 1].
    first = zero if step > 0 else context.array([-1], "before")
    last = size if step > 0 else op.Sub(size, one)
    bounds = []
    for position in (1, 2):
        bound = _element(context, position, index)
        negative = op.Less(bound, zero)
        counted = op.Add(bound, size)
        bound = op.Where(negative, counted, bound)
        below = op.Less(bound, first)
        bound = op.Where(below, first, bound)
        above = op.Less(last, bound)
        bound = op.Where(above, last, bound)
        bounds.append(bound)
    forward = bounds[::-1] if step > 0 else bounds
    length = op.Sub(*forward)
    none = op.Less(length, zero)
    length = op.Where(none, zero, length)
    rounded = op.Add(length, context.array([abs(step) - 1], "more"))
    count = op.Div(rounded, context.array([abs(step)], "step"))
    numbers = arange(context, sizes(context, count))
    strides = op.Mul(numbers, context.array([step], "step"))
    return op.Add(strides, bounds[0])


def _element(context: Context, position: int, index: int) -> Value:
    """Return one element of the input at `position`, int64 of shape [1]."""
    numbers = constant_list(context, position)
    if numbers:
        return context.array([numbers[index]], "bound")
    name = context.input(position)
    if context.elem_type(name) != TensorProto.INT64:
        name = cast(context, name, TensorProto.INT64)
    return context.op.Slice(name, axes=[0], starts=[index], ends=[index + 1])


def slice_at_run_time(context: Context) -> None:
    """``Slice(x, starts, ends, axes, steps)`` becomes
    ``Reshape(Gather(Reshape(x, [-1]), indices), sizes)``.

    The indices of the elements that the slice takes are computed in the flattened data, from a
    start, a count and a step for each axis; an axis that is not sliced is taken whole.
    """
    context = context.at(shapes.OPSET)
    op = context.op
    data = context.input(0)
    starts, ends, axes, steps = (
        shapes.int64_list(context, name) if (name := context.input(index)) else ""
        for index in range(1, 5)
    )
    dims = op.Shape(data)
    axes = axes or arange(context, sizes(context, op.Shape(starts)))
    steps = steps or context.array([1], "one")
    length = op.Gather(dims, axes, axis=0)
    start, count = _start_and_count(context, starts, ends, steps, length)

    # From one element for each axis that is sliced to one for each dimension.
    same = cast(
        context,
        shapes.which_axes(context, sizes(context, op.Shape(dims)), axes),
        TensorProto.INT64,
    )

    def of_dimensions(values: str) -> str:
        """Return values of the axes, int64 [axes], for all dimensions: 0 for the others."""
        return reduced(context, "ReduceSum", op.Mul(same, values), [1], keep=False)

    one = context.array([1], "one")
    whole = op.Sub(one, of_dimensions(one))
    new_sizes = op.Add(op.Mul(whole, dims), of_dimensions(count))
    strides = shapes.strides(context, dims)
    new_strides = op.Mul(strides, op.Add(whole, of_dimensions(steps)))
    starts_in_flat = op.Mul(strides, of_dimensions(start))
    first = reduced(context, "ReduceSum", starts_in_flat, [0], keep=True)
    indices = op.Add(shapes.flat_indices(context, new_sizes, new_strides), first)
    elements = op.Gather(shapes.flat(context, data), indices, axis=0)
    context.replace("Reshape", [elements, new_sizes], keep=(), allowzero=1)


def _start_and_count(
    context: Context, starts: str, ends: str, steps: str, length: str
) -> tuple[Value, Value]:
    """Return the first index along each axis, and the number of indices: int64 of shape [axes].

    Args:
        context: the context of the node.
        starts: the starts, which may be out of range or count from the end.
        ends: the ends, likewise.
        steps: the steps, which may be negative; none is 0.
        length: the size of the data along each axis. All are int64 of shape [axes].
    """
    op = context.op
    one, zero = context.array([1], "one"), context.array([0], "zero")
    backward = cast(context, op.Less(steps, zero), TensorProto.INT64)
    start, end = (_clamped(context, bound, length, backward) for bound in (starts, ends))
    # The distance from start to end and the step, each positive where the step is taken forward.
    twice = op.Mul(backward, context.array([2], "two"))
    sign = op.Sub(one, twice)
    distance = op.Mul(op.Sub(end, start), sign)
    not_empty = cast(context, op.Less(zero, distance), TensorProto.INT64)
    forward = op.Mul(steps, sign)
    last = op.Div(op.Sub(distance, one), forward)
    return start, op.Mul(op.Add(last, one), not_empty)


def _clamped(context: Context, bound: str, length: str, backward: str) -> Value:
    """Return bounds counted from the front, within [0, length], or [-1, length - 1] going back.

    Args:
        context: the context of the node.
        bound: the bounds.
        length: the size of the data along each axis.
        backward: 1 for each axis whose step is negative, else 0. All are int64 of shape [axes].
    """
    op = context.op
    bound = shapes.axes_from_front(context, bound, sizes(context, length))
    low = op.Sub(context.array([0], "zero"), backward)
    high = op.Sub(length, backward)
    bound = op.Where(op.Less(bound, low), low, bound)
    return op.Where(op.Less(high, bound), high, bound)
