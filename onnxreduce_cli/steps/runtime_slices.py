"""Slices whose axes or steps are only known at run time, before opset 10 made them inputs."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.steps import shapes
from onnxreduce_cli.steps.births import arange, reduced
from onnxreduce_cli.steps.casts import cast
from onnxreduce_cli.steps.context import Context


def slice_at_run_time(context: Context) -> None:
    """``Slice(x, starts, ends, axes, steps)`` becomes
    ``Reshape(Gather(Reshape(x, [-1]), places), sizes)``.

    A slice is as far from the next along an axis as the step says, times the elements between
    neighbours; what is not sliced goes from 0 on by steps of 1.
    """
    context = context.at(shapes.OPSET)
    data = context.input(0)
    starts, ends, axes, steps = (
        shapes.int64_list(context, name) if (name := context.input(index)) else ""
        for index in range(1, 5)
    )
    one, zero = context.array([1], "one"), context.array([0], "zero")
    sizes = context.emit("Shape", [data], "sizes")
    axes = axes or arange(context, context.emit("Shape", [starts], "number"))
    steps = steps or one
    length = context.emit("Gather", [sizes, axes], "length", axis=0)
    back = cast(context, context.emit("Less", [steps, zero], "is_back"), TensorProto.INT64)
    start, end = (_within(context, bound, length, back) for bound in (starts, ends))
    # Both the way from start to end and the step, as they are seen going forward.
    twice = context.emit("Mul", [back, context.array([2], "two")], "twice")
    sign = context.emit("Sub", [one, twice], "sign")
    way = context.emit("Mul", [context.emit("Sub", [end, start], "way"), sign], "way")
    some = cast(context, context.emit("Less", [zero, way], "is_some"), TensorProto.INT64)
    forward = context.emit("Mul", [steps, sign], "forward")
    more = context.emit("Div", [context.emit("Sub", [way, one], "rest"), forward], "more")
    count = context.emit("Mul", [context.emit("Add", [more, one], "count"), some], "count")

    rank = context.emit("Shape", [sizes], "rank")
    same = cast(context, shapes.which_axes(context, rank, axes), TensorProto.INT64)

    def for_every_axis(values: str) -> str:
        return reduced(context, "ReduceSum", _times(context, same, values), [1], keep=False)

    whole = context.emit("Sub", [one, for_every_axis(one)], "is_whole")
    kept = context.emit("Mul", [whole, sizes], "kept")
    new_sizes = context.emit("Add", [kept, for_every_axis(count)], "new_sizes")
    apart = shapes.strides(context, sizes)
    every_step = context.emit("Add", [whole, for_every_axis(steps)], "every_step")
    first = _times(context, apart, for_every_axis(start))
    first = reduced(context, "ReduceSum", first, [0], keep=True)
    places = shapes.places(context, new_sizes, _times(context, apart, every_step))
    places = context.emit("Add", [places, first], "places")
    taken = context.emit("Gather", [shapes.flat(context, data), places], "taken", axis=0)
    context.replace("Reshape", [taken, new_sizes], keep=(), allowzero=1)


def _times(context: Context, first: str, second: str) -> str:
    return context.emit("Mul", [first, second], "product")


def _within(context: Context, bound: str, length: str, back: str) -> str:
    """Bounds counted from the front; going back they lie one before where they lie forward."""
    bound = shapes.axes_from_front(context, bound, length)
    low = context.emit("Sub", [context.array([0], "zero"), back], "low")
    high = context.emit("Sub", [length, back], "high")
    bound = context.emit("Where", [context.emit("Less", [bound, low], "below"), low, bound])
    return context.emit("Where", [context.emit("Less", [high, bound], "above"), high, bound])
