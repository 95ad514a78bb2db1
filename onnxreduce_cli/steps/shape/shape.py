"""Shape: 15 added `start` and `end`."""

from __future__ import annotations

import numpy as np

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.steps.registry import down, replaced_by_constant


@down("Shape", 15, "start and end: a Slice of the whole shape")
def whole_shape(context: Context) -> None:
    """``Shape<start=1, end=3>(x)`` becomes ``Slice(Shape(x), [1], [3])``.

    One of the model's own becomes a Constant where the sizes are known: some runtimes take no
    Slice of a constant.
    """
    start, end = context.value("start", 0), context.value("end")
    drop = ("start", "end")
    if not start and end is None:
        if context.attribute("start") is not None:
            context.replace(drop=drop)
        return
    if context.producer(context.node.output[0]) is not None and replaced_by_constant(context):
        return
    whole = context.replace(outputs=[context.fresh("whole")], drop=drop).output[0]
    # The bounds are cut to the rank, as those of Slice are to the size.
    bounds = [
        context.array([start], "start"),
        context.array([np.iinfo(np.int32).max if end is None else end], "end"),
    ]
    context.op.Slice(whole, *bounds, outputs=[context.node.output[0]])
