"""Alternatives to forms of Concat, Split, Tile and Unsqueeze that some runtimes get wrong.

An alternative means the same at the same opset. Which runtime gets what wrong is in `targets/`.
"""

from __future__ import annotations

from itertools import accumulate, pairwise

from onnxreduce_cli.emit.axes import constant_axes, known_axes, non_negative_axes, unsqueezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.sizes import known_size
from onnxreduce_cli.steps.registry import instead
from onnxreduce_cli.steps.shape.split import part_sizes

#: An opset in which Slice takes its bounds as inputs.
_SLICE_BY_INPUTS = 13

#: How many inputs a Concat is given at most.
_MOST = 64


@instead("Tile", {"any", "inner repeats"}, "written as Concats")
def as_concats(context: Context) -> None:
    """``Tile(x, [1, 2, 3])`` becomes ``Concat<axis=1>(c, c)``, c ``Concat<axis=2>(x, x, x)``."""
    repeats = context.constant(context.input(1))
    if repeats is None:
        raise Blocked("its repeats are only known at run time")
    times = [int(count) for count in repeats.reshape(-1)]
    if min(times, default=1) < 1:
        raise Blocked("it repeats a dimension 0 times")
    value: str = context.input(0)
    for axis in reversed(range(len(times))):
        value = _repeated(context, value, times[axis], axis)
    context.replace("Identity", [value], keep=())


def _repeated(context: Context, value: str, count: int, axis: int) -> str:
    """Return a tensor repeated along an axis: many times in blocks of 64, and what is left."""
    if count < 2:
        return value
    blocks, rest = divmod(count, _MOST)
    parts = [value] * rest
    if blocks:
        block = context.op.Concat(*[value] * _MOST, axis=axis)
        parts.insert(0, _repeated(context, block, blocks, axis))
    return context.op.Concat(*parts, axis=axis) if len(parts) > 1 else parts[0]


@instead("Concat", {"lists from the end"}, "written with its axis counted from the front")
def with_axis_of_lists(context: Context) -> None:
    """``Concat<axis=-1>(x, z)`` of rank 1 becomes ``Concat<axis=0>(x, z)``."""
    context.replace(axis=0)


@instead("Split", {"uneven num_outputs"}, "written with its sizes")
def with_sizes(context: Context) -> None:
    """``Split<num_outputs=2>(x)`` of 5 elements becomes ``Split(x, [3, 2])``."""
    data, number = context.input(0), context.value("num_outputs")
    size = known_size(context, data, context.value("axis", 0))
    if not isinstance(size, int):
        raise Blocked("the size that it splits is not known", "fix it: --dim NAME=SIZE")
    sizes = context.array(part_sizes(size, number), "sizes")
    context.replace(inputs=[data, sizes], drop=("num_outputs",))


@instead("Split", {"any", "uneven sizes"}, "written as Slices")
def as_slices(context: Context) -> None:
    """``Split(x, [1, 2])`` becomes ``Slice(x, [0], [1])`` and ``Slice(x, [1], [3])``."""
    sizes = context.value("split") or known_axes(context)
    if not isinstance(sizes, (list, tuple)):
        raise Blocked("its sizes are only known at run time")
    data, outputs = context.input(0), context.node.output
    if not context.input(1) and not sizes:
        size = known_size(context, data, context.value("axis", 0))
        if size is None:
            raise Blocked("the size that it splits is not known", "fix it: --dim NAME=SIZE")
        sizes = part_sizes(size, context.value("num_outputs", len(outputs)))
    context = context.at(_SLICE_BY_INPUTS)
    axis = context.array([context.value("axis", 0)], "axis")
    ends = list(accumulate(sizes, initial=0))
    for (start, end), output in zip(pairwise(ends), outputs, strict=True):
        if output:
            bounds = [context.array([start], "start"), context.array([end], "end")]
            context.op.Slice(data, *bounds, axis, outputs=[output])


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
