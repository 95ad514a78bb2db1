"""Squeeze and Unsqueeze: 11 allowed negative axes, 13 made them an input.

Both also took more dtypes later, which needs no step.
"""

from __future__ import annotations

from onnx import AttributeProto

from onnxreduce_cli.emit.axes import attribute_to_input, known_axes, non_negative_axes
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.reversed_dims import replace_with_reversed_dims, reversed_axes
from onnxreduce_cli.steps.registry import down, up
from onnxreduce_cli.steps.shape.emulated_squeeze_unsqueeze import reshape_at_run_time

_OPERATORS = ("Squeeze", "Unsqueeze")


@up(_OPERATORS, 13, "axes: attribute to input")
def axes_to_input(context: Context) -> None:
    """``Squeeze<axes=[1]>(x)`` becomes ``Squeeze(x, axes)``."""
    attribute_to_input(context)


@down(
    _OPERATORS,
    13,
    "axes: input to attribute; at run time a Reshape",
    blocks=f"the axes of Squeeze are empty, or {NO_COUNTING}",
)
def axes_to_attribute(context: Context) -> None:
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
            "its axes are empty, which before opset 13 cannot be told from all axes",
            "remove the node",
        )


@down(
    _OPERATORS,
    11,
    "axes made non-negative and put in ascending order; of unknown rank, those of the transposed "
    "tensor",
    blocks=NO_COUNTING,
)
def negative_axes(context: Context) -> None:
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
