"""Slices whose axes or steps are only known at run time, before opset 10 made them inputs."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import arange, reduced


def slice_at_run_time(context: Context) -> None:
    """``Slice(x, starts, ends, axes, steps)`` becomes
    ``Reshape(Gather(Reshape(x, [-1]), places), sizes)``.

    A slice is as far from the next along an axis as the step says, times the elements between
    neighbours; what is not sliced goes from 0 on by steps of 1.
    """
    context = context.at(shapes.OPSET)
    op = context.op
    data = context.input(0)
    starts, ends, axes, steps = (
        shapes.int64_list(context, name) if (name := context.input(index)) else ""
        for index in range(1, 5)
    )
    one, zero = context.array([1], "one"), context.array([0], "zero")
    sizes = op.Shape(data)
    axes = axes or arange(context, op.Shape(starts))
    steps = steps or one
    length = op.Gather(sizes, axes, axis=0)
    back = cast(context, op.Less(steps, zero), TensorProto.INT64)
    start, end = (_within(context, bound, length, back) for bound in (starts, ends))
    # Both the way from start to end and the step, as they are seen going forward.
    twice = op.Mul(back, context.array([2], "two"))
    sign = op.Sub(one, twice)
    way = op.Mul(op.Sub(end, start), sign)
    some = cast(context, op.Less(zero, way), TensorProto.INT64)
    forward = op.Mul(steps, sign)
    more = op.Div(op.Sub(way, one), forward)
    count = op.Mul(op.Add(more, one), some)

    rank = op.Shape(sizes)
    same = cast(context, shapes.which_axes(context, rank, axes), TensorProto.INT64)

    def for_every_axis(values: str) -> str:
        return reduced(context, "ReduceSum", _times(context, same, values), [1], keep=False)

    whole = op.Sub(one, for_every_axis(one))
    kept = op.Mul(whole, sizes)
    new_sizes = op.Add(kept, for_every_axis(count))
    apart = shapes.strides(context, sizes)
    every_step = op.Add(whole, for_every_axis(steps))
    first: str = _times(context, apart, for_every_axis(start))
    first = reduced(context, "ReduceSum", first, [0], keep=True)
    places = shapes.places(context, new_sizes, _times(context, apart, every_step))
    places = op.Add(places, first)
    taken = op.Gather(shapes.flat(context, data), places, axis=0)
    context.replace("Reshape", [taken, new_sizes], keep=(), allowzero=1)


def _times(context: Context, first: str, second: str) -> Value:
    return context.op.Mul(first, second)


def _within(context: Context, bound: str, length: str, back: str) -> Value:
    """Bounds counted from the front; going back they lie one before where they lie forward."""
    op = context.op
    bound = shapes.axes_from_front(context, bound, length)
    low = op.Sub(context.array([0], "zero"), back)
    high = op.Sub(length, back)
    bound = op.Where(op.Less(bound, low), low, bound)
    return op.Where(op.Less(high, bound), high, bound)
