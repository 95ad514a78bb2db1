"""Interpolation for GridSample and DeformConv: weighted sums of the elements around points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import Term


@dataclass(frozen=True)
class Tap:
    """One neighbour of each sampling point, along one axis or several.

    Attributes:
        index: the neighbour's index, an int64 tensor.
        inside: a bool tensor, false where it is outside the input and counts as 0; None where all
            count.
        weight: its weight in the sum; None where it is the only neighbour.
    """

    index: Term
    inside: Term | None = None
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

    There no bound that is only known at run time limits an infinity. No axis is longer than 2**23.
    Coordinates keep their dtype and shape.
    """
    limit = float(1 << 23)
    return (
        coordinates.within(-limit, limit)
        if coordinates.context.target_opset < 8 and length.known is None
        else coordinates
    )


def is_inside(whole: Term, length: Term) -> Term:
    """Return bools, true for the whole coordinates from 0 to ``length - 1``."""
    return (whole.less(0) | whole.greater(length - 1)).negated()


def gathered(flat: str, first: Term, lengths: Sequence[Term], along: Sequence[list[Tap]]) -> str:
    """Return the weighted sums of the neighbours of each point; what is outside counts as 0.

    Args:
        flat: all elements, of shape [images * lengths..., channels].
        first: the image of each point, an int64 tensor that broadcasts to the points' shape.
        lengths: the lengths of the axes, each an int64 of shape [].
        along: the neighbours along each axis.

    Returns:
        a tensor of the shape of the points with a last dimension of channels.
    """
    context, total = first.context, ""
    for tap in _of_all_axes(first, lengths, along):
        part = _counted(context, flat, tap)
        total = context.op.Add(total, part) if total else part
    return total


def _of_all_axes(first: Term, lengths: Sequence[Term], along: Sequence[list[Tap]]) -> list[Tap]:
    """Return the neighbours along all axes together, with indices into `flat`; see `gathered`."""
    neighbours = [Tap(first)]
    for length, taps in zip(lengths, along, strict=True):
        neighbours = [
            Tap(
                start + tap.index,
                before.inside & tap.inside if before.inside and tap.inside else tap.inside,
                before.weight * tap.weight if before.weight and tap.weight else tap.weight,
            )
            for before in neighbours
            for start in [before.index * length]
            for tap in taps
        ]
    return neighbours


def _counted(context: Context, flat: str, tap: Tap) -> Value:
    """Return one neighbour of each point, of shape [points..., channels], times its weight."""
    op = context.op
    part = op.Gather(flat, tap.index.name, axis=0)
    behind = context.array([-1], "behind")
    if tap.inside:
        name = op.Unsqueeze(tap.inside.name, behind)
        elem_type = context.need_elem_type(flat, "outside it is 0 of that dtype")
        part = op.Where(name, part, context.scalar(0, "zero", elem_type))
    if tap.weight:
        name = op.Unsqueeze(tap.weight.name, behind)
        part = op.Mul(part, name)
    return part


def in_axis(whole: Term, length: Term) -> Term:
    """Return whole coordinates as int64 indices, limited to those of elements."""
    return whole.within(0, length - 1).cast(TensorProto.INT64)
