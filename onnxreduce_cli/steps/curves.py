"""What functions that are written out as arithmetic have in common."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto

from onnxreduce_cli.steps.births import constant
from onnxreduce_cli.steps.context import Context


def number(context: Context, value: float, elem_type: int) -> str:
    """A constant of rank 0."""
    return constant(context, value, elem_type, "number")


def between(context: Context, name: str, low: float, high: float, elem_type: int) -> str:
    """A value cut off at both ends; ONNX Runtime's Clip takes no doubles before opset 12."""
    if elem_type == TensorProto.FLOAT:
        return context.emit("Clip", [name], "clipped", min=float(low), max=float(high))
    least = context.emit("Min", [name, number(context, high, elem_type)], "least")
    return context.emit("Max", [least, number(context, low, elem_type)], "clipped")


def polynomial(
    context: Context, variable: str, coefficients: Sequence[float], elem_type: int
) -> str:
    """A polynomial's value; the coefficient of the lowest power comes first."""
    *lower, highest = coefficients
    total = number(context, highest, elem_type)
    for coefficient in reversed(lower):
        product = context.emit("Mul", [variable, total], "product")
        total = context.emit("Add", [product, number(context, coefficient, elem_type)], "sum")
    return total
