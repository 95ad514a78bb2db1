"""ReverseSequence of unknown rank below opset 10."""

from __future__ import annotations

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.sizes import END, sliced


def of_unknown_rank(context: Context) -> None:
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
