"""Axes counted from the back of a tensor whose rank is not known.

Transpose without `perm` puts the dimensions in reverse, however many there are: what was axis -1 is
axis 0 then. It does so at every opset, for every dtype, with no dimensions and with empty ones.
Where axes of the result are meant, as in Unsqueeze and OneHot, it is the same.
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
    """Return negative axes as those of the tensor with reversed dimensions, in ascending order."""
    return sorted(-1 - axis for axis in axes)


def replace_with_reversed_dims(
    context: Context,
    tensors: Iterable[int] = (0,),
    inputs: Iterable[str] | None = None,
    **values: Any,
) -> None:
    """``Op<axis=-2>(x)`` becomes ``Transpose(Op<axis=1>(Transpose(x)))``.

    Args:
        context: the node's.
        tensors: the indices of its inputs whose dimensions are reversed; those of all outputs are.
        inputs: its inputs, where the axes are one that becomes another.
        values: its attributes that become others, with the axes of reversed dimensions.
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
