"""GridSample: 16 and 20.

It came with 16; 20 gave two modes other names, and took any rank where there had been only 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnx import TensorProto

from onnxreduce_cli.steps.births import as_name, born, constant, size_of
from onnxreduce_cli.steps.casts import HALVES, finish, widened
from onnxreduce_cli.steps.context import Blocked, Context
from onnxreduce_cli.steps.registry import down, up
from onnxreduce_cli.steps.terms import Term, counted, scalar

_NEWER_MODES = {"bilinear": "linear", "bicubic": "cubic"}
_OLDER_MODES = {newer: older for older, newer in _NEWER_MODES.items()}

#: The coefficient of the cubic weights.
_CUBIC = -0.75


@up("GridSample", 20, "modes bilinear and bicubic called linear and cubic")
def newer_mode(context: Context) -> None:
    """``GridSample<mode="bilinear">(x, grid)`` becomes ``GridSample<mode="linear">(x, grid)``."""
    mode = context.value("mode")
    if mode in _NEWER_MODES:
        context.replace(mode=_NEWER_MODES[mode])


_BLOCKS = "it is cubic beyond a border that is repeated, or the rank or a dtype is not known"


@down(
    "GridSample",
    20,
    "modes linear and cubic called bilinear and bicubic; of other ranks than 4 as below 16",
    blocks=f"the input is not 4-D and {_BLOCKS}",
)
def older_mode(context: Context) -> None:
    """``GridSample<mode="linear">(x, grid)`` becomes ``GridSample<mode="bilinear">(x, grid)``."""
    if _rank(context) != 4:
        grid_sample(context)
        return
    mode = context.value("mode")
    if mode in _OLDER_MODES:
        context.replace(mode=_OLDER_MODES[mode])


def _rank(context: Context) -> int:
    rank = context.rank(context.input(1))
    if rank is None:
        rank = context.need_rank(context.input(0), "each of its axes is sampled")
    return rank


@dataclass(frozen=True)
class _Tap:
    """One neighbour of each place along one axis.

    Attributes:
        index: which element, an int64 within the axis.
        inside: whether it truly lies there; None where what lies outside is none.
        weight: how much it counts; None where it is the only one.
    """

    index: Term
    inside: Term | None
    weight: Term | None


@born(
    "GridSample",
    16,
    "the places computed, their elements taken by Gather and weighted",
    blocks=_BLOCKS,
)
def sampled_by_gather(context: Context) -> None:
    """``GridSample<mode="nearest">(x, grid)`` becomes
    ``Transpose(Gather(Reshape(Transpose(x), [-1, C]), (batch * H + row) * W + column))`` with rows
    and columns rounded from the grid; with ``mode="linear"`` it is the sum of four of these, each
    multiplied by the row's and the column's weight, with ``mode="cubic"`` of sixteen.
    """
    grid_sample(context)


def grid_sample(context: Context) -> None:
    """Sample a tensor of any rank by Gather; see `sampled_by_gather`."""
    mode = context.value("mode", "linear")
    mode = _NEWER_MODES.get(mode, mode)
    padding = context.value("padding_mode", "zeros")
    if mode == "cubic" and padding == "border":
        raise Blocked(
            "it is cubic with padding_mode='border', and it is not defined whether places beyond "
            "the border are moved to it or only the elements around them: runtimes do the one and "
            "onnx's reference the other",
            "choose another mode or padding in the exporter, or opset 16 or later",
        )
    spatial = _rank(context) - 2
    data, given, working = (context.input(0), 0, 0) if mode == "nearest" else widened(context, 0)
    context.far = max(context.far, 13)  # Its operators are read with their inputs of today.
    batch, *lengths = (
        scalar(context, size_of(context, data, axis)) for axis in (0, *range(2, spatial + 2))
    )
    along = [
        _taps(context, spatial - 1 - axis, length, mode, working)
        for axis, length in enumerate(lengths)
    ]
    perm = [0, *range(2, spatial + 2), 1]
    last = context.emit("Transpose", [data], "channels_last", perm=perm)
    channels = as_name(context, size_of(context, data, 1))
    flat_shape = context.emit(
        "Concat", [context.array([-1], "all"), channels], "flat_shape", axis=0
    )
    flat = context.emit("Reshape", [last, flat_shape], "flat")
    total = ""
    for neighbour in _neighbours_of_all(batch, lengths, along):
        part = _counted(context, flat, neighbour)
        total = context.emit("Add", [total, part], "sum") if total else part
    perm = [0, spatial + 1, *range(1, spatial + 1)]
    if working:
        finish(context, "Transpose", [total], given, working, perm=perm)
    else:
        context.replace("Transpose", [total], keep=(), perm=perm)


def _neighbours_of_all(
    batch: Term, lengths: Sequence[Term], along: Sequence[list[_Tap]]
) -> list[_Tap]:
    """The neighbours of each place among the elements of all axes and batches in one row."""
    first = counted(batch, TensorProto.INT64).shaped(-1, *[1] * len(along))
    found = [_Tap(first, None, None)]
    for length, taps in zip(lengths, along, strict=True):
        found = [
            _Tap(
                row + tap.index,
                before.inside & tap.inside if before.inside and tap.inside else tap.inside,
                before.weight * tap.weight if before.weight and tap.weight else tap.weight,
            )
            for before in found
            for row in [before.index * length]
            for tap in taps
        ]
    return found


def _counted(context: Context, flat: str, tap: _Tap) -> str:
    """The elements of one neighbour as far as they count."""
    part = context.emit("Gather", [flat, tap.index.name], axis=0)
    behind = context.array([-1], "behind")
    if tap.inside:
        name = context.emit("Unsqueeze", [tap.inside.name, behind], "inside")
        elem_type = context.need_elem_type(context.input(0), "outside it is 0 of that dtype")
        if tap.weight and elem_type in HALVES:
            elem_type = TensorProto.FLOAT
        part = context.emit("Where", [name, part, constant(context, 0, elem_type, "zero")])
    if tap.weight:
        name = context.emit("Unsqueeze", [tap.weight.name, behind], "weight")
        part = context.emit("Mul", [part, name], "weighted")
    return part


def _taps(context: Context, index: int, size: Term, mode: str, working: int) -> list[_Tap]:
    """The neighbours along one axis, the grid's numbers at `index`."""
    name = context.input(1)
    elem_type = context.need_elem_type(name, "places are computed in that dtype")
    grid = Term(context, name, elem_type)
    if elem_type in HALVES:
        grid = grid.cast(TensorProto.FLOAT)
    length = size.cast(grid.elem_type)
    last = length - 1
    raised = grid.at(index, axis=_rank(context) - 1) + 1
    aligned = bool(context.value("align_corners", 0))
    place = raised * 0.5 * last if aligned else (raised * length - 1) * 0.5
    if mode == "nearest":
        place = place.round()
    padding = context.value("padding_mode", "zeros")
    if padding == "reflection":
        place = _reflected(place, length, aligned=aligned)
    if padding == "zeros":
        place = _finite(place, length).within(-3, length + 2)
    elif padding == "border" or mode == "nearest":
        place = _finite(place, length).within(0, last)
    taps = []
    for start, weight in _neighbours(place, mode):
        inside = None
        if padding == "zeros":
            inside = (start.less(0) | start.greater(last)).negated()
        elif padding == "reflection" and mode == "cubic":
            start = _reflected(start, length, aligned=aligned)
        whole = start.within(0, last).cast(TensorProto.INT64)
        taps.append(_Tap(whole, inside, weight and weight.cast(working)))
    return taps


def _finite(place: Term, length: Term) -> Term:
    """Places without infinities, which before opset 8 no bound known at run time only can bring in.

    No axis is that long.
    """
    far = float(1 << 23)
    return place.within(-far, far) if place.context.target < 8 and length.known is None else place


def _neighbours(place: Term, mode: str) -> list[tuple[Term, Term | None]]:
    """The elements around each place, and how much they count."""
    if mode == "nearest":
        return [(place, None)]
    low = place.floor()
    if mode == "linear":
        high = low + 1
        return [(low, high - place), (high, place - low)]
    starts = [low + offset if offset else low for offset in (-1, 0, 1, 2)]
    apart = [(place - start).abs() for start in starts]
    weights = [_outer(apart[0]), _inner(apart[1]), _inner(apart[2]), _outer(apart[3])]
    return list(zip(starts, weights, strict=True))


def _inner(distance: Term) -> Term:
    """R. Keys' cubic convolution of distances up to 1."""
    return (distance * (_CUBIC + 2) - (_CUBIC + 3)) * distance * distance + 1


def _outer(distance: Term) -> Term:
    """The same of those from 1 to 2."""
    return ((distance - 5) * distance + 8) * distance * _CUBIC - 4 * _CUBIC


def _reflected(place: Term, length: Term, *, aligned: bool) -> Term:
    """Places beyond an end turned back: at the centre of the last element, or at its border."""
    start = 0.0 if aligned else -0.5
    # Of one element, whose centre is both ends, any way is as long.
    way = (length - 1).most(1) if aligned else length
    size = (place - start).abs()
    there_and_back = way * 2
    rest = size - (size / there_and_back).floor() * there_and_back
    return way - (rest - way).abs() + start
