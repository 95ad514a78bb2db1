"""Squeeze and Unsqueeze where the axes or the rank are only known at run time: 11 and 13."""

from __future__ import annotations

import numpy as np
from onnx import numpy_helper

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import sizes


def reshape_at_run_time(context: Context, axes: str) -> None:
    """``Squeeze(x, axes)`` becomes ``Reshape(x, Gather(Shape(x), others))`` with the dimensions
    that are not among the axes. ``Unsqueeze(x, axes)`` becomes ``Reshape(x, shape)`` with a shape
    of ones, into which the sizes of x are scattered.

    Args:
        context: the node's.
        axes: the axes, integers of shape [k], counted from either end.
    """
    context = context.at(shapes.OPSET)
    op = context.op
    data = context.input(0)
    axes = shapes.int64_list(context, axes)
    dims = op.Shape(data)
    rank = op.Shape(dims)
    if context.node.op_type == "Unsqueeze":
        rank = op.Add(rank, op.Shape(axes))
    others = shapes.not_among(
        context, sizes(context, rank), shapes.axes_from_front(context, axes, sizes(context, rank))
    )
    if context.node.op_type == "Unsqueeze":
        one = numpy_helper.from_array(np.ones(1, np.int64))
        ones = op.ConstantOfShape(rank, value=one)
        shape = op.ScatterElements(ones, others, dims, axis=0)
    else:
        shape = op.Gather(dims, others, axis=0)
    context.replace("Reshape", [data, shape], keep=(), allowzero=1)
