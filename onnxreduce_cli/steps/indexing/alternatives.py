"""Alternatives to forms of ArgMax, ArgMin and NonMaxSuppression that some runtimes get wrong.

An alternative means the same at the same opset. Which runtime gets what wrong is in `targets/`.
"""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.axes import non_negative_axes, squeezed
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.steps.registry import instead


@instead(("ArgMax", "ArgMin"), {"vector"}, "written with its dimension kept, and Squeeze")
def squeezed_next(context: Context) -> None:
    """``ArgMax<axis=1, keepdims=0>(x)`` becomes ``Squeeze<axes=[1]>(ArgMax<axis=1>(x))``."""
    rank = context.need_rank(context.input(0), "the axis is counted from the front")
    axes = list(non_negative_axes((context.value("axis", 0),), rank))
    made = context.replace(outputs=[context.fresh("kept")], keepdims=1)
    value = squeezed(context, made.output[0], axes)
    context.op.Identity(value, outputs=[context.node.output[0]])


@instead("NonMaxSuppression", {"read by a node"}, "written with the rows that are boxes taken out")
def without_padding(context: Context) -> None:
    """``NonMaxSuppression(boxes, scores)`` becomes ``Gather(n, ...)`` of the rows of n, that is
    ``NonMaxSuppression(boxes, scores)``, whose batch is not below 0: all, as ONNX has it.
    """
    op, output = context.op, context.node.output[0]
    rows = context.replace(outputs=[context.fresh("rows")]).output[0]
    zero = context.scalar(0, "zero")
    batches = op.Gather(rows, zero, axis=1)
    found = op.Cast(op.Not(op.Less(batches, zero)), to=TensorProto.FLOAT)
    places = squeezed(context, op.NonZero(found), [0])
    op.Gather(rows, places, axis=0, outputs=[output])
