"""MaxUnpool: introduced with 9."""

from __future__ import annotations

import numpy as np
from onnx import numpy_helper

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import Number, as_name, as_shape
from onnxreduce_cli.emit.shapes import OPSET
from onnxreduce_cli.emit.sizes import size_of
from onnxreduce_cli.model.graph.values import numpy_dtype
from onnxreduce_cli.steps.registry import introduced


@introduced(
    "MaxUnpool",
    9,
    "zeros, into which the elements are scattered",
    blocks="output_shape is another than follows from the input, or the rank is not known",
)
def max_unpool(context: Context) -> None:
    """``MaxUnpool<kernel_shape=[2], strides=[2]>(x, indices)`` with x of shape [1, 1, 3] becomes
    ``Reshape(ScatterElements(zeros of 6, Reshape(indices, [-1]), Reshape(x, [-1])), [1, 1, 6])``.
    """
    context = context.at(OPSET)
    op = context.op
    data, indices, wanted = (context.input(index) for index in range(3))
    kernel = context.value("kernel_shape")
    axes = len(kernel)
    strides = context.value("strides") or [1] * axes
    pads = context.value("pads") or [0] * (2 * axes)
    dims = [size_of(context, data, 0), size_of(context, data, 1)]
    for at in range(axes):
        steps = size_of(context, data, at + 2) - 1
        less = kernel[at] - pads[at] - pads[at + axes]
        dims.append(steps * strides[at] + less)
    if wanted and context.elements(wanted) != tuple(dims):
        raise Blocked(
            f"its output_shape {wanted!r} is not known to be the shape that follows from its "
            "input, and where they differ the definition's own test counts indices in one of them "
            "and runtimes in the other",
            "leave output_shape out",
        )
    elem_type = context.need_elem_type(data, "the rest are zeros of that dtype")
    size: Number = 1
    for dim in dims:
        size = size * dim
    zero = numpy_helper.from_array(np.zeros(1, numpy_dtype(elem_type)))
    zeros = op.ConstantOfShape(as_name(context, size), value=zero)
    flat = context.array([-1], "flat")
    positions, elements = (op.Reshape(name, flat) for name in (indices, data))
    scattered = op.ScatterElements(zeros, positions, elements, axis=0)
    context.replace("Reshape", [scattered, as_shape(context, dims)], keep=(), allowzero=1)
