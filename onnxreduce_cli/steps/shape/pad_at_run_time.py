"""Pad where pads, axes, rank or sizes are only known at run time: a Gather along each axis."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import reduced, unsqueezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import Array
from onnxreduce_cli.emit.numbers import (
    LARGEST_CONSTANT,
    Number,
    Term,
    as_name,
    at_least_zero,
    sizes,
)
from onnxreduce_cli.emit.sizes import arange


def pads_of_axes_at_run_time(context: Context, rank: int | None) -> Value:
    """Return ``ReduceSum(Reshape(pads, [2, -1, 1]) * Cast(axes == [0, 1, ...]), 1)``.

    These are the pads of all axes, int64 of shape [2 * rank], where the axes or the rank are only
    known at run time.
    """
    op = context.op
    dimensions: Number | None = rank
    if dimensions is None:
        dimensions = sizes(context, op.Shape(op.Shape(context.input(0))))
    axes = context.input(3)
    if axes.elem_type != TensorProto.INT64:
        axes = cast(context, axes, TensorProto.INT64)
    from_front = op.Mod(axes, as_name(context, dimensions))
    column = unsqueezed(context, from_front, [1])
    hits = op.Equal(column, arange(context, dimensions))
    sides = context.array([2, -1, 1], "sides")
    by_side = op.Reshape(context.input(1), sides)
    summands = op.Mul(by_side, cast(context, hits, TensorProto.INT64))
    total = reduced(context, "ReduceSum", summands, [1], keep=False)
    return op.Reshape(total, context.array([-1], "flat"))


def source_indices(context: Context, size: Number, before: Number, after: Number, mode: str) -> str:
    """Return the index in the data of each element of the padded data along one axis.

    Args:
        context: the context of the node.
        size: the size of the data along the axis.
        before: the pad before it; negative where it crops.
        after: the pad after it, likewise.
        mode: the node's mode; for "constant" the index `size` stands for the value.

    Returns:
        int64 of shape [before + size + after].
    """
    op = context.op
    numbers = (size, before, after)
    known = [number for number in numbers if isinstance(number, int)]
    if len(known) == len(numbers) and sum(known) <= LARGEST_CONSTANT:
        return context.array(_known_indices(known, mode), "indices")
    if mode == "constant":
        index = _counted_from(context, size + before + after, before)
        inside = op.And(_is_below(context, -1, index), _is_below(context, index, size))
        return op.Where(inside, index.name, as_name(context, size))
    (begin, cropped), (end, cut) = (_added_and_cropped(context, pad) for pad in (before, after))
    left = size - cropped - cut
    index = _counted_from(context, left + begin + end, begin)
    index = _within(context, index, left, mode)
    return (index + cropped).name


def _within(context: Context, index: Term, size: Number, mode: str) -> Term:
    """Return indices that may be out of range as what they stand for in [0, size).

    Args:
        context: the context of the node.
        index: the indices, int64 of shape [count].
        size: the size along the axis.
        mode: "wrap", "edge" or "reflect".
    """
    op = context.op
    if mode == "wrap":
        # Of an axis of size 0 there is no index to divide, which may end the process all the same.
        around = as_name(context, at_least_zero(context, size - 1) + 1)
        return sizes(context, op.Mod(index.name, around))
    if mode == "edge":
        zero = context.array([0], "zero")
        index = sizes(context, op.Where(_is_below(context, index, 0), zero, index.name))
        last = size - 1
        below = _is_below(context, index, last)
        return sizes(context, op.Where(below, index.name, as_name(context, last)))
    # There and back; one element alone has nothing to reflect, and is not padded.
    twice = size + size - 2
    one = context.array([1], "one")
    alone = _is_below(context, twice, 1)
    period = op.Where(alone, one, as_name(context, twice))
    forward = op.Mod(index.name, period)
    backward = op.Sub(period, forward)
    is_forward = _is_below(context, sizes(context, forward), size)
    return sizes(context, op.Where(is_forward, forward, backward))


def _known_indices(numbers: list[int], mode: str) -> Array:
    """Return what `source_indices` does where the size and both pads are known, in that order.

    Raises:
        Blocked: there is no element that the padding could repeat.
    """
    size, before, after = numbers
    own = np.arange(size, dtype=np.int64)[max(0, -before) : size + min(0, after)]
    beside = (max(0, before), max(0, after))
    if mode == "constant":
        return np.pad(own, beside, constant_values=size)
    if not own.size and any(beside):
        raise Blocked(
            f"it pads an axis of size 0 by its elements (mode {mode!r})",
            "mend the model: pad it by mode constant",
        )
    return np.pad(own, beside, mode=mode)  # type: ignore[call-overload, no-any-return]


def _counted_from(context: Context, count: Number, before: Number) -> Term:
    """Return ``[0 - before, 1 - before, ..., count - 1 - before]``, int64 of shape [count]."""
    return sizes(context, arange(context, count)) - before


def _is_below(context: Context, first: Number, second: Number) -> Value:
    """Return ``first < second``, bool of the shape to which both broadcast."""
    return context.op.Less(as_name(context, first), as_name(context, second))


def _added_and_cropped(context: Context, pad: Number) -> tuple[Number, Number]:
    """Return how many elements a pad adds, and how many it crops; both are at least 0."""
    added = at_least_zero(context, pad)
    return added, added - pad
