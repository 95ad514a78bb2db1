"""Alternatives to forms of Concat, Tile and Unsqueeze that some runtimes get wrong.

An alternative means the same at the same opset. Which runtime gets what wrong is in `targets/`.
"""

from __future__ import annotations

from onnxreduce_cli.emit.axes import constant_axes, non_negative_axes, unsqueezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.steps.registry import instead

#: How often data are repeated along a dimension by a Concat, at most.
_MOST = 64


@instead("Tile", {"inner repeats"}, "written as Concats")
def as_concats(context: Context) -> None:
    """``Tile(x, [1, 2, 3])`` becomes ``Concat<axis=1>(c, c)``, c ``Concat<axis=2>(x, x, x)``."""
    repeats = context.constant(context.input(1))
    if repeats is None:
        raise Blocked("its repeats are only known at run time")
    times = [int(count) for count in repeats.reshape(-1)]
    if min(times, default=1) < 1 or max(times, default=1) > _MOST:
        raise Blocked(f"it repeats a dimension 0 times, or more than {_MOST}")
    value: str = context.input(0)
    for axis in reversed(range(len(times))):
        if times[axis] > 1:
            value = context.op.Concat(*[value] * times[axis], axis=axis)
    context.replace("Identity", [value], keep=())


@instead("Concat", {"lists from the end"}, "written with its axis counted from the front")
def with_axis_of_lists(context: Context) -> None:
    """``Concat<axis=-1>(x, z)`` of rank 1 becomes ``Concat<axis=0>(x, z)``."""
    context.replace(axis=0)


@instead("Unsqueeze", {"several axes"}, "written as one Unsqueeze for each dimension")
def unsqueeze_one_by_one(context: Context) -> None:
    """``Unsqueeze<axes=[0, 3]>(x)``, x of shape [2, 3], becomes
    ``Unsqueeze<axes=[3]>(Unsqueeze<axes=[0]>(x))``.
    """
    axes = constant_axes(context)
    rank = context.need_rank(context.input(0), "axes are counted from the front")
    value: str = context.input(0)
    for axis in sorted(non_negative_axes(axes, rank + len(axes))):
        value = unsqueezed(context, value, [axis])
    context.replace("Identity", [value], keep=())
