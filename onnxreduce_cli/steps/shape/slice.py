"""Slice: 10 made starts, ends and axes inputs and added steps, 11 allowed negative axes.

Shape is here too: the part of it that 15 lets it give is a Slice of the whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.axes import ints_to_constant, known_axes, normalised
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.indices import size_along
from onnxreduce_cli.emit.numbers import NO_COUNTING, arange
from onnxreduce_cli.emit.reversed_dims import replace_mirrored
from onnxreduce_cli.steps.registry import down, up
from onnxreduce_cli.steps.shape.emulated_slice import slice_at_run_time


@up("Slice", 10, "starts, ends and axes: attributes to inputs")
def slice_inputs(context: Context) -> None:
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
def slice_attributes(context: Context) -> None:
    """``Slice(x, [1], [3], [0])`` becomes ``Slice<starts=[1], ends=[3], axes=[0]>(x)``.

    With steps, ``Slice(x, [0], [5], [0], [2])`` becomes ``Gather<axis=0>(x, [0, 2, 4])``. The
    indices are computed at run time where the bounds, or the size along the axis, are.
    """
    data = context.input(0)
    names = ("starts", "ends", "axes", "steps")
    known = {name: known_axes(context, index) for index, name in enumerate(names, 1)}
    given = {name: bool(context.input(index)) for index, name in enumerate(names, 1)}
    unit_steps = not given["steps"] or known["steps"] == (1,) * len(_numbers(context, 4))
    if unit_steps and None not in known.values():
        values: dict[str, Any] = {n: known[n] for n in names[:3] if given[n]}
        context.replace(inputs=[data], **values)
        return
    steps, axes = _numbers(context, 4), _numbers(context, 3)
    count = len(steps) or len(axes) or len(context.elements(context.input(1)) or ())
    if (given["steps"] and not steps) or (given["axes"] and not axes) or not count:
        context.settle("what is known of its axes and steps")
        slice_at_run_time(context)
        return
    parts = zip(axes or range(count), steps or (1,) * count, strict=True)
    for index, (axis, step) in enumerate(parts):
        indices = _indices(context, index, axis, step)
        if index + 1 < count:
            data = context.op.Gather(data, indices, axis=axis)
        else:
            context.replace("Gather", [data, indices], keep=(), axis=axis)


def _numbers(context: Context, index: int) -> tuple[int, ...]:
    """The input at `index` as a constant list; empty where it is absent or unknown."""
    array = context.constant(context.input(index)) if context.input(index) else None
    return () if array is None else tuple(int(number) for number in array.reshape(-1))


def _indices(context: Context, index: int, axis: int, step: int) -> Value:
    """The indices that a part takes along one axis."""
    starts, ends = _numbers(context, 1), _numbers(context, 2)
    known = context.type(context.input(0))
    dim = known.dims[axis] if known is not None and known.dims is not None else None
    if starts and ends and isinstance(dim, int):
        start, end = starts[index], ends[index]
        # Going backwards, an end before the first element means "through the first".
        last = None if step < 0 and end < -dim else end
        return context.array(list(range(dim)[start:last:step]), "indices")
    return _indices_at_run_time(context, index, axis, step)


def _indices_at_run_time(context: Context, index: int, axis: int, step: int) -> Value:
    """``start + step * (0, 1, ... count - 1)``, all of them int64 of one element."""
    op = context.op
    zero, one = context.array([0], "zero"), context.array([1], "one")
    size = op.Reshape(size_along(context, context.input(0), axis, TensorProto.INT64), one)
    # Where a bound may lie: before the first element, or after the last.
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
    numbers = arange(context, count)
    strides = op.Mul(numbers, context.array([step], "step"))
    return op.Add(strides, bounds[0])


def _element(context: Context, position: int, index: int) -> Value:
    """One element of an input, as an int64 list of one."""
    numbers = _numbers(context, position)
    if numbers:
        return context.array([numbers[index]], "bound")
    name = context.input(position)
    if context.elem_type(name) != TensorProto.INT64:
        name = cast(context, name, TensorProto.INT64)
    return context.op.Slice(name, axes=[0], starts=[index], ends=[index + 1])


@down("Slice", 11, "negative axes made non-negative, at run time where they or the rank are")
def slice_axes(context: Context) -> None:
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
        context.settle("what its axes are")
    rank = None if axes is None else context.settled_rank(context.input(0))
    inputs = list(context.node.input)
    if axes is not None and rank is None and (axes < 0).all() and context.target_opset < 10:
        inputs[3] = context.array(-1 - axes, "axes")
        replace_mirrored(context, inputs=inputs)
        return
    if axes is not None and rank is not None:
        positive = np.array(normalised(tuple(axes.tolist()), rank), axes.dtype)
        inputs[3] = context.array(positive, "axes")
    else:
        inputs[1:] = [shapes.int64_list(context, name) if name else "" for name in inputs[1:]]
        rank_now = shapes.rank_at_run_time(context, inputs[0])
        inputs[3] = shapes.axes_from_front(context, inputs[3], rank_now)
    context.replace(inputs=inputs)


@down("Shape", 15, "start and end: a Slice of the whole shape")
def whole_shape(context: Context) -> None:
    """``Shape<start=1, end=3>(x)`` becomes ``Slice(Shape(x), [1], [3])``."""
    start, end = context.value("start", 0), context.value("end")
    drop = ("start", "end")
    if not start and end is None:
        if context.attribute("start") is not None:
            context.replace(drop=drop)
        return
    whole = context.replace(outputs=[context.fresh("whole")], drop=drop).output[0]
    # The bounds are cut to the rank, as those of Slice are to the size.
    bounds = [
        context.array([start], "start"),
        context.array([np.iinfo(np.int32).max if end is None else end], "end"),
    ]
    context.op.Slice(whole, *bounds, outputs=[context.node.output[0]])
