"""ArgMax and ArgMin: 12 added `select_last_index`."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.indices import size_along
from onnxreduce_cli.steps.registry import down


@down(("ArgMax", "ArgMin"), 12, "select_last_index: the first of the reversed elements")
def last_index(context: Context) -> None:
    """``ArgMax<select_last_index=1>(x)`` becomes ``size - 1 - ArgMax(Slice<step -1>(x))``."""
    op = context.op
    if not context.value("select_last_index", 0):
        if context.attribute("select_last_index") is not None:
            context.replace(drop=("select_last_index",))
        return
    axis = context.value("axis", 0)
    ends = context.array([-(2**63) + 1], "ends")
    step = context.array([-1], "last")
    inputs = [context.input(0), step, ends, context.array([axis], "axes"), step]
    backwards = op.Slice(*inputs)
    reversed_index = context.replace(
        inputs=[backwards], outputs=[context.fresh("index")], drop=("select_last_index",)
    ).output[0]
    size = size_along(context, context.input(0), axis, TensorProto.INT64)
    last = op.Sub(size, context.scalar(1, "one"))
    op.Sub(last, reversed_index, outputs=[context.node.output[0]])
