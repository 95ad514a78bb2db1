"""Polynomials, for functions that are written out as arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context


def clipped(context: Context, name: str, low: float, high: float, elem_type: int) -> Value:
    """Return a tensor of dtype `elem_type`, a float, clipped to a range.

    ONNX Runtime's Clip takes no doubles before opset 12.
    """
    op = context.op
    if elem_type == TensorProto.FLOAT:
        return op.Clip(name, min=float(low), max=float(high))
    least = op.Min(name, context.scalar(high, "number", elem_type))
    return op.Max(least, context.scalar(low, "number", elem_type))


def polynomial(
    context: Context, variable: str, coefficients: Sequence[float], elem_type: int
) -> Value:
    """Return the values of a polynomial at a tensor of dtype `elem_type`, a float, in its shape.

    The coefficient of the lowest power comes first.
    """
    op = context.op
    *lower, highest = coefficients
    total = context.scalar(highest, "number", elem_type)
    for coefficient in reversed(lower):
        product = op.Mul(variable, total)
        total = op.Add(product, context.scalar(coefficient, "number", elem_type))
    return total
