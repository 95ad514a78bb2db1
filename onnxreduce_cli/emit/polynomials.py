"""What functions that are written out as arithmetic have in common."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import constant


def number(context: Context, value: float, elem_type: int) -> Value:
    """A constant of rank 0."""
    return constant(context, value, elem_type, "number")


def between(context: Context, name: str, low: float, high: float, elem_type: int) -> Value:
    """A value cut off at both ends; ONNX Runtime's Clip takes no doubles before opset 12."""
    op = context.op
    if elem_type == TensorProto.FLOAT:
        return op.Clip(name, min=float(low), max=float(high))
    least = op.Min(name, number(context, high, elem_type))
    return op.Max(least, number(context, low, elem_type))


def polynomial(
    context: Context, variable: str, coefficients: Sequence[float], elem_type: int
) -> Value:
    """A polynomial's value; the coefficient of the lowest power comes first."""
    op = context.op
    *lower, highest = coefficients
    total = number(context, highest, elem_type)
    for coefficient in reversed(lower):
        product = op.Mul(variable, total)
        total = op.Add(product, number(context, coefficient, elem_type))
    return total
