"""Slice below 10 where bounds, axes or steps are only known at run time."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.axes import reduced
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.indices import size_along
from onnxreduce_cli.emit.numbers import sizes
from onnxreduce_cli.emit.sizes import arange


def constant_list(context: Context, index: int) -> tuple[int, ...]:
    """Return the input at `index` as a constant list; empty where it is absent or unknown."""
    array = context.constant(context.input(index)) if context.input(index) else None
    return () if array is None else tuple(int(number) for number in array.reshape(-1))


def indices_at_run_time(context: Context, index: int, axis: int, step: int) -> Value:
    """Return ``start + step * [0, 1, ... count - 1]``, int64 of shape [count].

    Args:
        context: the node's.
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
        context: the node's.
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
        context: the node's.
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
