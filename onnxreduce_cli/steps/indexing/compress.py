"""Compress: introduced with 9."""

from __future__ import annotations

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.refusals import NO_LOOP
from onnxreduce_cli.steps.registry import introduced


@introduced("Compress", 9, "Gather at the places of NonZero", blocks=NO_LOOP)
def compress(context: Context) -> None:
    """``Compress<axis=1>(x, condition)`` becomes ``Gather<axis=1>(x, NonZero(condition)[0])``;
    without an axis x is flattened.
    """
    context = context.at(9)  # NonZero was introduced with it too; its step goes on.
    op = context.op
    data, axis = context.input(0), context.value("axis")  # Gather's may be negative too.
    indices = op.NonZero(context.input(1))
    indices = op.Squeeze(indices, axes=[0])
    if axis is None:
        data = op.Reshape(data, context.array([-1], "flat"))
    context.replace("Gather", [data, indices], keep=(), axis=axis or 0)
