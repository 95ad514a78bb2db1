"""Axes counted from the back of a tensor whose rank is not known.

Transpose without `perm` reverses the dimensions, however many there are: axis -1 becomes axis 0. It
does so at every opset and for every dtype, also for scalars and empty tensors. The same works for
axes of the result, as Unsqueeze and OneHot have them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context


def with_reversed_dims(context: Context, name: str, output: str = "") -> Value:
    """Return a tensor of any dtype and rank with its dimensions in reverse."""
    return context.op.Transpose(name, outputs=[output] if output else None)


def reversed_axes(axes: Iterable[int]) -> list[int]:
    """Return the axes that negative axes become when dimensions are reversed, sorted."""
    return sorted(-1 - axis for axis in axes)


def replace_with_reversed_dims(
    context: Context,
    tensors: Iterable[int] = (0,),
    inputs: Iterable[str] | None = None,
    **values: Any,
) -> None:
    """``Op<axis=-2>(x)`` becomes ``Transpose(Op<axis=1>(Transpose(x)))``.

    Args:
        context: the node.
        tensors: the indices of the inputs to reverse; all outputs are reversed.
        inputs: the inputs, if the axes are an input that changes.
        values: the attributes that change, with the axes of reversed dimensions.
    """
    inputs = list(context.node.input if inputs is None else inputs)
    outputs = list(context.node.output)
    for index in tensors:
        inputs[index] = with_reversed_dims(context, inputs[index])
    within = [context.fresh("reversed") if name else "" for name in outputs]
    context.replace(inputs=inputs, outputs=within, **values)
    for name, output in zip(within, outputs, strict=True):
        if output:
            with_reversed_dims(context, name, output)
