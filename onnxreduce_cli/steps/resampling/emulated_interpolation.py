"""Interpolation for GridSample and DeformConv: the elements around places, by Gather, weighted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import Term


@dataclass(frozen=True)
class Tap:
    """One neighbour of each place, along one axis or several.

    Attributes:
        index: which element, an int64.
        inside: whether it truly lies there; None where what lies outside is none.
        weight: how much it counts; None where it is the only one.
    """

    index: Term
    inside: Term | None = None
    weight: Term | None = None


def linear(place: Term) -> list[tuple[Term, Term | None]]:
    """The whole places on either side, and how much they count."""
    low = place.floor()
    high = low + 1
    return [(low, high - place), (high, place - low)]


def finite(place: Term, length: Term) -> Term:
    """Places without infinities, if a conversion leads below opset 8 to lengths known at run time.

    There no bound that is only known at run time limits an infinity. No axis is longer than ours.
    """
    limit = float(1 << 23)
    return (
        place.within(-limit, limit)
        if place.context.target_opset < 8 and length.known is None
        else place
    )


def is_inside(whole: Term, length: Term) -> Term:
    """Bools: whether whole places are those of elements."""
    return (whole.less(0) | whole.greater(length - 1)).negated()


def gathered(flat: str, first: Term, lengths: Sequence[Term], along: Sequence[list[Tap]]) -> str:
    """The sum of all neighbours, each as far as it counts; nothing but 0 lies outside.

    Args:
        flat: all elements, of shape [places, channels].
        first: before the places on the axes, which image: an int64.
        lengths: of the axes, each an int64 of rank 0.
        along: the neighbours along each axis.
    """
    context, total = first.context, ""
    for tap in _of_all_axes(first, lengths, along):
        part = _counted(context, flat, tap)
        total = context.op.Add(total, part) if total else part
    return total


def _of_all_axes(first: Term, lengths: Sequence[Term], along: Sequence[list[Tap]]) -> list[Tap]:
    """The neighbours along all axes together, with their indices into `flat`; see `gathered`."""
    found = [Tap(first)]
    for length, taps in zip(lengths, along, strict=True):
        found = [
            Tap(
                row + tap.index,
                before.inside & tap.inside if before.inside and tap.inside else tap.inside,
                before.weight * tap.weight if before.weight and tap.weight else tap.weight,
            )
            for before in found
            for row in [before.index * length]
            for tap in taps
        ]
    return found


def _counted(context: Context, flat: str, tap: Tap) -> Value:
    """The elements of `flat` of one neighbour of each place, as far as they count."""
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
    """Whole places as indices: of those outside, of the element next to them."""
    return whole.within(0, length - 1).cast(TensorProto.INT64)
