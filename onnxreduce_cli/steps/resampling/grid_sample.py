"""GridSample: 16 and 20.

It was introduced with 16; 20 gave two modes other names, and took any rank, not only 4.
"""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.casts import replace_and_cast_back, widened
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES
from onnxreduce_cli.emit.numbers import Term, as_name, scalar
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.sizes import range_of, size_of
from onnxreduce_cli.steps.registry import down, introduced, up
from onnxreduce_cli.steps.resampling.interpolation import (
    Tap,
    finite,
    finite_or,
    gathered,
    in_axis,
    linear,
    margin,
    near,
    with_margins,
)

_NEWER_MODES = {"bilinear": "linear", "bicubic": "cubic"}
_OLDER_MODES = {newer: older for older, newer in _NEWER_MODES.items()}


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
    blocks=f"the input is not 4-D and {_BLOCKS}, or {NO_COUNTING}",
)
def older_mode(context: Context) -> None:
    """``GridSample<mode="linear">(x, grid)`` becomes ``GridSample<mode="bilinear">(x, grid)``."""
    if _grid_rank(context) != 4:
        _older_sample_by_gather(context)
        return
    mode = context.value("mode")
    if mode in _OLDER_MODES:
        context.replace(mode=_OLDER_MODES[mode])


def _grid_rank(context: Context) -> int:
    rank = context.rank(context.input(1))
    if rank is None:
        rank = context.need_rank(context.input(0), "each of its axes is sampled")
    return rank


@introduced(
    "GridSample",
    16,
    "the places computed, their elements taken by Gather and weighted",
    blocks=f"{_BLOCKS}, or {NO_COUNTING}",
)
def sampled_by_gather(context: Context) -> None:
    """``GridSample<mode="nearest">(x, grid)`` becomes
    ``Transpose(Gather(Reshape(Transpose(x), [-1, C]), (batch * H + row) * W + column))`` with rows
    and columns rounded from the grid; with ``mode="linear"`` it is the sum of four of these, each
    multiplied by the row's and the column's weight, with ``mode="cubic"`` of sixteen.
    """
    _older_sample_by_gather(context)


def _older_sample_by_gather(context: Context) -> None:
    """Sample by Gather, in the mode as opset 20 calls it."""
    mode = context.choice("mode", "linear", ("nearest", *_NEWER_MODES, *_OLDER_MODES))
    sample_by_gather(context, _NEWER_MODES.get(mode, mode), _grid_rank(context))


def sample_by_gather(context: Context, mode: str, rank: int) -> None:
    """Sample a tensor of any rank; see `grid_sample.sampled_by_gather`.

    Args:
        context: the context of the node.
        mode: the mode, as opset 20 calls it.
        rank: the rank of the input and of the grid.
    """
    padding = context.choice("padding_mode", "zeros", ("zeros", "border", "reflection"))
    if mode == "cubic" and padding == "border":
        raise Blocked(
            "it is cubic with padding_mode='border', and it is not defined whether points beyond "
            "the border are moved to it or only the elements around them: runtimes do the one and "
            "onnx's reference the other",
            "choose another mode or padding in the exporter, or opset 16 or later",
        )
    spatial = rank - 2
    data, elem_type, working = (
        (context.input(0), 0, 0) if mode == "nearest" else widened(context, 0)
    )
    # The operators below are those of opset 13.
    context = context.at(max(context.op.opset, 13))
    op = context.op
    batch, *lengths = (
        scalar(context, size_of(context, data, axis)) for axis in (0, *range(2, spatial + 2))
    )
    grid = _grid(context)
    along = [
        _taps(grid.at(spatial - 1 - axis, axis=rank - 1), length, mode, working)
        for axis, length in enumerate(lengths)
    ]
    perm = [0, *range(2, spatial + 2), 1]
    if padding == "zeros":
        count = margin(mode)
        lengths = [length + 2 * count for length in lengths]
        data = with_margins(context, data, count)
    last = op.Transpose(data, perm=perm)
    channels = as_name(context, size_of(context, context.input(0), 1))
    flat_shape = op.Concat(context.array([-1], "all"), channels, axis=0)
    flat = op.Reshape(last, flat_shape)
    first = range_of(batch, TensorProto.INT64).shaped(-1, *[1] * spatial)
    total = gathered(flat, first, lengths, along)
    perm = [0, spatial + 1, *range(1, spatial + 1)]
    if working:
        replace_and_cast_back(context, "Transpose", [total], elem_type, working, perm=perm)
    else:
        context.replace("Transpose", [total], keep=(), perm=perm)


def _grid(context: Context) -> Term:
    """Return the grid in float or double.

    It has -1 for what is no finite number, as ONNX Runtime takes it; the definition does not say.
    """
    name = context.input(1)
    elem_type = context.need_elem_type(name, "places are computed in that dtype")
    grid = Term(context, name, elem_type)
    return finite_or(grid.cast(TensorProto.FLOAT) if elem_type in HALVES else grid, -1.0)


def _taps(positions: Term, size: Term, mode: str, working: int) -> list[Tap]:
    """Return the neighbours of each sampling point along one axis.

    Args:
        positions: the positions on the axis, from -1 to 1.
        size: the length of the axis, an int64 of shape [].
        mode: the mode, as opset 20 calls it.
        working: the dtype of the weights.
    """
    context = positions.context
    length = size.cast(positions.elem_type)
    last = length - 1
    raised = positions + 1
    aligned = bool(context.value("align_corners", 0))
    coordinates = raised * 0.5 * last if aligned else (raised * length - 1) * 0.5
    if mode == "nearest":
        coordinates = coordinates.round()
    padding = context.value("padding_mode", "zeros")
    if padding == "reflection":
        coordinates = _reflected(coordinates, length, aligned=aligned)
    if padding == "zeros":
        coordinates = near(coordinates, length, mode)
    elif padding == "border" or mode == "nearest":
        coordinates = finite(coordinates, length).within(0, last)
    taps = []
    for start, weight in _neighbours(coordinates, mode):
        if padding == "zeros":
            place = (start + margin(mode)).cast(TensorProto.INT64)
        else:
            folded = padding == "reflection" and mode == "cubic"
            whole = _reflected(start, length, aligned=aligned) if folded else start
            place = in_axis(whole, length)
        taps.append(Tap(place, weight and weight.cast(working)))
    return taps


def _neighbours(coordinates: Term, mode: str) -> list[tuple[Term, Term | None]]:
    """Return the whole coordinates around each coordinate, and their weights; None if it is one.

    All are of the dtype and shape of `coordinates`, which are float or double.
    """
    if mode == "nearest":
        return [(coordinates, None)]
    if mode == "linear":
        return linear(coordinates)
    low = coordinates.floor()
    starts = [low + offset if offset else low for offset in (-1, 0, 1, 2)]
    apart = [(coordinates - start).abs() for start in starts]
    weights = [_outer(apart[0]), _inner(apart[1]), _inner(apart[2]), _outer(apart[3])]
    return list(zip(starts, weights, strict=True))


#: The coefficient of the cubic weights.
_CUBIC = -0.75


def _inner(distance: Term) -> Term:
    """Return R. Keys' cubic convolution of distances from 0 to 1, in their dtype and shape."""
    return (distance * (_CUBIC + 2) - (_CUBIC + 3)) * distance * distance + 1


def _outer(distance: Term) -> Term:
    """Return R. Keys' cubic convolution of distances from 1 to 2, in their dtype and shape."""
    return ((distance - 5) * distance + 8) * distance * _CUBIC - 4 * _CUBIC


def _reflected(coordinates: Term, length: Term, *, aligned: bool) -> Term:
    """Return coordinates reflected at the centres, or the borders, of the elements at both ends.

    They keep their shape, and their dtype, in which `length` is a scalar.
    """
    start = 0.0 if aligned else -0.5
    # The centre of a single element is both ends: any span does.
    span = (length - 1).most(1) if aligned else length
    size = (coordinates - start).abs()
    period = span * 2
    rest = size - (size / period).floor() * period
    return span - (rest - span).abs() + start
