"""Sinh below opset 9, by exponentials, of numbers below 1 by a series."""

from __future__ import annotations

from math import factorial

from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.polynomials import polynomial
from onnxreduce_cli.steps.elementwise.hyperbolic import half_exponentials, odd_function
from onnxreduce_cli.steps.registry import introduced


def _sinh(context: Context, size: str, elem_type: int) -> Value:
    """Return ``Exp(s) / 2 - Exp(-s) / 2``, below 1 its series, for s of dtype `elem_type`.

    Both are computed and the one that does not apply is multiplied by 0: it is finite.
    """
    op = context.op
    one = context.scalar(1, "number", elem_type)
    upper = op.Sub(*half_exponentials(context, size, elem_type))
    square = op.Mul(size, size)
    terms = 9 if elem_type == TensorProto.DOUBLE else 6
    series = [1 / factorial(2 * index + 1) for index in range(terms)]
    lower = op.Mul(size, polynomial(context, square, series, elem_type))
    is_lower = cast(context, op.Less(size, one), elem_type)
    is_upper = op.Sub(one, is_lower)
    parts = [op.Mul(*pair) for pair in ([lower, is_lower], [upper, is_upper])]
    return op.Add(*parts)


@introduced("Sinh", 9, "exponentials, below 1 a series")
def sinh(context: Context) -> None:
    """``Sinh(x)`` becomes ``x * (e / s)`` with ``s = Abs(x)`` and
    ``e = Exp(s / 2) / 2 * Exp(s / 2) - 1 / 2 / Exp(s / 2) / Exp(s / 2)``.
    """
    context = context.at(9)
    odd_function(context, _sinh, 2000)
