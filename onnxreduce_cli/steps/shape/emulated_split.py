"""Split below 13 with sizes that are only known at run time."""

from __future__ import annotations

from onnxreduce_cli.emit.context import Context


def slices_at_run_time(context: Context) -> None:
    """``Split(x, sizes)`` becomes ``Slice(x, start, start + size)`` for each output."""
    op = context.op
    data, sizes = context.input(0), context.input(1)
    axis = context.array([context.value("axis", 0)], "axis")
    start = context.array([0], "start")
    outputs = context.node.output
    for index, output in enumerate(outputs):
        size = op.Slice(sizes, context.array([index], "start"), context.array([index + 1], "end"))
        end = op.Add(start, size)
        inputs = [data, start, end, axis]
        if index + 1 < len(outputs):
            op.Slice(*inputs, outputs=[output])
        else:
            context.replace("Slice", inputs, [output], keep=())
        start = end
