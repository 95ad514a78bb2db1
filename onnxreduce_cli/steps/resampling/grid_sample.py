"""GridSample: 16 and 20.

It was introduced with 16; 20 gave two modes other names, and took any rank, not only 4.
"""

from __future__ import annotations

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.steps.registry import down, introduced, up
from onnxreduce_cli.steps.resampling.emulated_grid_sample import sample_by_gather

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
    if _rank(context) != 4:
        _by_gather(context)
        return
    mode = context.value("mode")
    if mode in _OLDER_MODES:
        context.replace(mode=_OLDER_MODES[mode])


def _rank(context: Context) -> int:
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
    _by_gather(context)


def _by_gather(context: Context) -> None:
    """Sample by Gather, in the mode as opset 20 calls it."""
    mode = context.choice("mode", "linear", ("nearest", *_NEWER_MODES, *_OLDER_MODES))
    sample_by_gather(context, _NEWER_MODES.get(mode, mode), _rank(context))
