"""Interpolation for GridSample and DeformConv: weighted sums of the elements around points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import Term

#: By mode the neighbours of a coordinate rounded down, or rounded: the first and the last.
_REACH = {"nearest": (0, 0), "linear": (0, 1), "cubic": (-1, 2)}

#: No axis is longer.
LONGEST = float(1 << 23)


@dataclass(frozen=True, slots=True)
class Tap:
    """One neighbour of each sampling point along one axis.

    Attributes:
        index: the neighbour's index, an int64 tensor.
        weight: its weight in the sum; None where it is the only neighbour.
    """

    index: Term
    weight: Term | None = None


def linear(coordinates: Term) -> list[tuple[Term, Term | None]]:
    """Return the whole coordinates on either side of each, and their weights.

    All are of the dtype and shape of `coordinates`, which are float or double.
    """
    low = coordinates.floor()
    high = low + 1
    return [(low, high - coordinates), (high, coordinates - low)]


def finite(coordinates: Term, length: Term) -> Term:
    """Return coordinates without infinities, if below opset 8 for a length known at run time only.

    There no bound that is only known at run time limits an infinity. Coordinates keep their dtype
    and shape.
    """
    return (
        coordinates.within(-LONGEST, LONGEST)
        if not coordinates.context.reaches(8) and length.known is None
        else coordinates
    )


def finite_or(coordinates: Term, other: float) -> Term:
    """Return coordinates with `other` in place of NaN and infinities, which make no index.

    Below opset 9, which has no Where, they stay as they are. Coordinates keep their dtype and
    shape, and are emitted into a context bound to opset 13 or later.
    """
    context = coordinates.context
    if not context.reaches(9):
        return coordinates
    chosen = context.op.Where(
        coordinates.abs().less(np.inf).name,
        coordinates.name,
        context.scalar(other, "no_number", coordinates.elem_type),
    )
    return Term(context, chosen, coordinates.elem_type)


def margin(mode: str) -> int:
    """Return how many zeros there are to be around an axis for what is outside to be 0.

    The neighbours of coordinates that are limited by `near` are then all within.
    """
    first, last = _REACH[mode]
    return last - first + 1


def near(coordinates: Term, length: Term, mode: str) -> Term:
    """Return coordinates, in their dtype and shape, limited to where all neighbours are outside."""
    first, last = _REACH[mode]
    return finite(coordinates, length).within(-1 - last, length - first)


def with_margins(context: Context, data: str, count: int) -> Value:
    """Return data of shape [n, c, lengths...] with so many zeros before and after each length.

    The context is bound to opset 13 or later.
    """
    rank = context.need_rank(data, "zeros are put around each of its axes")
    side = [0, 0, *[count] * (rank - 2)]
    return context.op.Pad(data, context.array(side * 2, "margins"))


def gathered(flat: str, first: Term, lengths: Sequence[Term], along: Sequence[list[Tap]]) -> str:
    """Return the weighted sums of the neighbours of each point, summed along the last axis first.

    Args:
        flat: all elements, of shape [images * lengths..., channels].
        first: the image of each point, an int64 tensor that broadcasts to the points' shape.
        lengths: the lengths of the axes, each an int64 of shape [].
        along: the neighbours along each axis.

    Returns:
        a tensor of the shape of the points with a last dimension of channels.
    """
    op = first.context.op
    behind = first.context.array([-1], "behind")
    weights = [
        [op.Unsqueeze(tap.weight.name, behind) if tap.weight else None for tap in taps]
        for taps in along
    ]
    return _sum_of_taps(flat, first, [*zip(lengths, along, weights, strict=True)])


#: An axis: its length, the neighbours of each point along it, and their weights, None for 1.
_AxisTaps = tuple[Term, Sequence[Tap], Sequence["Value | None"]]


def _sum_of_taps(flat: str, start: Term, axes: Sequence[_AxisTaps]) -> str:
    """Return the weighted sums over the first of some axes of those over the others."""
    op = start.context.op
    if not axes:
        return op.Gather(flat, start.name, axis=0)
    length, taps, weights = axes[0]
    total, row = "", start * length
    for tap, weight in zip(taps, weights, strict=True):
        part = _sum_of_taps(flat, row + tap.index, axes[1:])
        part = op.Mul(part, weight) if weight else part
        total = op.Add(total, part) if total else part
    return total


def in_axis(whole: Term, length: Term) -> Term:
    """Return whole coordinates as int64 indices, limited to those of elements."""
    return whole.within(0, length - 1).cast(TensorProto.INT64)
