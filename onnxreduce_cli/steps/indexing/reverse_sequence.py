"""ReverseSequence: introduced with 10."""

from __future__ import annotations

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.axes import unsqueezed
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import as_name
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.shapes import OPSET, reshaped
from onnxreduce_cli.emit.sizes import END, arange, size_of, sliced
from onnxreduce_cli.steps.registry import introduced


@introduced(
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
    op = context.op
    data, lengths, output = context.input(0), context.input(1), context.node.output[0]
    rank = context.specialised_rank(data)
    if rank is None:
        reverse_sequence_of_unknown_rank(context)
        return
    turned = context.value("time_axis", 0) == 1
    perm = [1, 0, *range(2, rank)]
    times, batch = (size_of(context, data, axis) for axis in ((1, 0) if turned else (0, 1)))
    if turned:
        data = op.Transpose(data, perm=perm)
    time = unsqueezed(context, arange(context, times), [1])
    last = op.Sub(lengths, context.array([1], "one"))
    backwards = op.Sub(last, time)
    before_end = op.Less(time, lengths)
    origin = op.Where(before_end, backwards, time)
    first = op.Mul(origin, as_name(context, batch))
    indices = op.Add(first, arange(context, batch))
    steps = op.Flatten(data, axis=2)
    inputs = [steps, indices]
    if rank == 3 and not turned:
        context.replace("Gather", inputs, keep=(), axis=0)
        return
    result = context.replace("Gather", inputs, [context.fresh("gathered")], keep=(), axis=0)
    name = result.output[0]
    if rank != 3:
        shape = op.Shape(data)
        name = reshaped(context.at(OPSET), name, shape, output="" if turned else output)
    if turned:
        op.Transpose(name, outputs=[output], perm=perm)


def reverse_sequence_of_unknown_rank(context: Context) -> None:
    """Replace the node by a ReverseSequence of rank 3: all dims behind time and batch made one."""
    context = context.at(shapes.OPSET)  # The step is taken again, with a known rank.
    op = context.op
    data = context.input(0)
    shape = op.Shape(data)
    behind = shapes.product(context, sliced(context, shape, 2, END))
    three = op.Concat(sliced(context, shape, 0, 2), behind, axis=0)
    viewed = shapes.reshaped(context, data, three, (None,) * 3)
    inputs = [viewed, context.input(1)]
    result = context.replace(inputs=inputs, outputs=[context.fresh("reversed")])
    shapes.reshaped(context, result.output[0], shape, output=context.node.output[0])
