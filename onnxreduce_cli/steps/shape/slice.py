"""Slice: 10 made starts, ends and axes inputs and added steps, 11 allowed negative axes.

Bounds, axes and steps that are only known at run time, before 10, are in `emulated_slice`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.axes import ints_to_constant, known_axes, non_negative_axes
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT, sizes
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.reversed_dims import replace_with_reversed_dims
from onnxreduce_cli.emit.sizes import known_size
from onnxreduce_cli.steps.registry import down, up
from onnxreduce_cli.steps.shape.emulated_slice import (
    constant_list,
    indices_at_run_time,
    slice_at_run_time,
)


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
        context: the node's.
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
def negative_axes(context: Context) -> None:
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
    if axes is not None and rank is None and (axes < 0).all() and context.target_opset < 10:
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
