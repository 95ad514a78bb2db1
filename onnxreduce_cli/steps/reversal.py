"""ReverseSequence, below the opset that it came with."""

from __future__ import annotations

from onnxreduce_cli.steps import shapes
from onnxreduce_cli.steps.births import (
    END,
    NO_COUNTING,
    arange,
    as_name,
    born,
    part,
    size_of,
    unsqueezed,
)
from onnxreduce_cli.steps.context import Context


@born(
    "ReverseSequence",
    10,
    "each step of each sequence gathered from where it is when reversed",
    blocks=NO_COUNTING,
)
def reverse_sequence(context: Context) -> None:
    """``ReverseSequence<batch_axis=1, time_axis=0>(x, lengths)`` with x of shape [T, B, C] becomes
    ``Gather(Flatten<axis=2>(x), from * B + [0, ..., B - 1])``.

    ``from`` is ``lengths - 1 - t`` for a time t before its sequence's end, and t after it. With the
    batch first x is transposed, and back. Of unknown rank it has the further dimensions made one.
    """
    data, lengths, output = context.input(0), context.input(1), context.node.output[0]
    rank = context.settled_rank(data)
    if rank is None:
        _of_three_dimensions(context)
        return
    turned = context.value("time_axis", 0) == 1
    perm = [1, 0, *range(2, rank)]
    times, batch = (size_of(context, data, axis) for axis in ((1, 0) if turned else (0, 1)))
    if turned:
        data = context.emit("Transpose", [data], "time_first", perm=perm)
    time = unsqueezed(context, arange(context, times), [1])
    last = context.emit("Sub", [lengths, context.array([1], "one")], "last")
    backwards = context.emit("Sub", [last, time], "backwards")
    before_end = context.emit("Less", [time, lengths], "before_end")
    origin = context.emit("Where", [before_end, backwards, time], "origin")
    row = context.emit("Mul", [origin, as_name(context, batch)], "row")
    places = context.emit("Add", [row, arange(context, batch)], "places")
    steps = context.emit("Flatten", [data], "steps", axis=2)
    inputs = [steps, places]
    if rank == 3 and not turned:
        context.replace("Gather", inputs, keep=(), axis=0)
        return
    result = context.replace("Gather", inputs, [context.fresh("gathered")], keep=(), axis=0)
    name = result.output[0]
    if rank != 3:
        shaped = [name, context.emit("Shape", [data], "shape")]
        name = context.emit("Reshape", shaped, "shaped", outputs=None if turned else [output])
    if turned:
        context.emit("Transpose", [name], "batch_first", outputs=[output], perm=perm)


def _of_three_dimensions(context: Context) -> None:
    context = context.at(shapes.OPSET)  # It comes here again, with a known rank.
    data = context.input(0)
    shape = context.emit("Shape", [data], "shape")
    behind = shapes.product(context, part(context, shape, 2, END))
    three = context.emit("Concat", [part(context, shape, 0, 2), behind], "three", axis=0)
    viewed = shapes.reshaped(context, data, three, (None,) * 3)
    inputs = [viewed, context.input(1)]
    result = context.replace(inputs=inputs, outputs=[context.fresh("reversed")])
    shapes.restored(context, result.output[0], data, shape, context.node.output[0])
