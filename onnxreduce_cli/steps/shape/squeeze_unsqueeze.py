"""Squeeze and Unsqueeze: 11 allowed negative axes, 13 made them an input.

Both also took more dtypes later, which needs no step.
"""

from __future__ import annotations

import numpy as np
from onnx import AttributeProto, numpy_helper

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.axes import attribute_to_input, known_axes, non_negative_axes
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import sizes
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.reversed_dims import replace_with_reversed_dims, reversed_axes
from onnxreduce_cli.steps.registry import down, up

_OPERATORS = ("Squeeze", "Unsqueeze")


@up(_OPERATORS, 13, "axes: attribute to input")
def squeeze_axes_to_input(context: Context) -> None:
    """``Squeeze<axes=[1]>(x)`` becomes ``Squeeze(x, axes)``."""
    attribute_to_input(context)


@down(
    _OPERATORS,
    13,
    "axes: input to attribute; at run time a Reshape",
    blocks=f"the axes of Squeeze are empty, or {NO_COUNTING}",
)
def squeeze_axes_to_attribute(context: Context) -> None:
    """``Squeeze(x, axes)`` with constant axes becomes ``Squeeze<axes=[1]>(x)``.

    With axes that are only known at run time it becomes ``Reshape(x, Gather(Shape(x), others))``.
    """
    axes = known_axes(context)
    if axes is None:
        context.require_specialised("what its axes are")
        reshape_at_run_time(context, context.input(1))
    elif isinstance(axes, AttributeProto) or axes or context.node.op_type == "Unsqueeze":
        context.replace(inputs=[context.input(0)], axes=axes)
    elif context.input(1):
        raise Blocked(
            "its axes are an empty list, and before opset 13 that means all axes",
            "remove the node",
        )


@down(
    _OPERATORS,
    11,
    "axes made non-negative and put in ascending order; of unknown rank, those of the transposed "
    "tensor",
    blocks=NO_COUNTING,
)
def squeeze_axes_from_front(context: Context) -> None:
    """``Unsqueeze<axes=[-1]>(x)`` with x of rank 2 becomes ``Unsqueeze<axes=[2]>(x)``, of unknown
    rank ``Transpose(Unsqueeze<axes=[0]>(Transpose(x)))``.

    Unsqueeze counts axes in its output, which has one more dimension for each. Shape inference
    below opset 11 takes axes for ascending.
    """
    axes = context.value("axes", ())
    if all(axis >= 0 for axis in axes):
        if list(axes) != sorted(set(axes)):
            context.replace(axes=sorted(set(axes)))
        return
    rank = context.specialised_rank(context.input(0))
    if rank is None and max(axes) < 0:
        replace_with_reversed_dims(context, axes=reversed_axes(axes))
    elif rank is None:
        reshape_at_run_time(context, context.array(list(axes), "axes"))
    else:
        added = len(axes) if context.node.op_type == "Unsqueeze" else 0
        context.replace(axes=sorted(set(non_negative_axes(axes, rank + added))))


def reshape_at_run_time(context: Context, axes: str) -> None:
    """``Squeeze(x, axes)`` becomes ``Reshape(x, Gather(Shape(x), others))`` with the dimensions
    that are not among the axes. ``Unsqueeze(x, axes)`` becomes ``Reshape(x, shape)`` with a shape
    of ones, into which the sizes of x are scattered.

    Args:
        context: the context of the node.
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
