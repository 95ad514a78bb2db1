"""Cosh, Sinh, Asinh, Acosh and Atanh below opset 9, by exponentials, logarithms and roots.

Half precision is computed in float. The largest error found over all exponents is 8 units in the
last place of Sinh, and 5 of the others, and one of half precision.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast, replace_and_cast_back, widened
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.polynomials import clipped, polynomial
from onnxreduce_cli.model.graph.values import finfo, numpy_dtype
from onnxreduce_cli.steps.registry import introduced

#: Returns a function's values at positive numbers, of their dtype and shape. Its arguments are the
#: context, the numbers and their dtype.
Curve = Callable[[Context, str, int], str]


def odd_function(context: Context, curve: Curve, most: float) -> None:
    """``f(x)`` becomes ``x * (f(s) / s)``, so that zeros keep their signs and NaN remains.

    s is ``Abs(x)``, cut off below where the quotient is 1, and above at `most`.
    """
    op = context.op
    data, elem_type, working = widened(context, TensorProto.FLOAT)
    least = float(finfo(numpy_dtype(working)).eps) ** 2
    size = clipped(context, op.Abs(data), least, most, working)
    slope = op.Div(curve(context, size, working), size)
    replace_and_cast_back(context, "Mul", [data, slope], elem_type, working)


def _finite(context: Context) -> float:
    """Return the largest finite number of the dtype to compute in."""
    wide = context.elem_type(context.input(0)) == TensorProto.DOUBLE
    return float(finfo(np.float64 if wide else np.float32).max)


def half_exponentials(context: Context, size: str, elem_type: int) -> tuple[str, str]:
    """Return ``Exp(size) / 2`` and ``Exp(-size) / 2``, of dtype `elem_type` in the shape of `size`.

    The products are ordered such that the first overflows only where its own value does.
    """
    op = context.op
    half = context.scalar(0.5, "number", elem_type)
    root = op.Exp(op.Mul(size, half))
    grown = op.Mul(op.Mul(root, half), root)
    shrunk = op.Div(op.Div(half, root), root)
    return grown, shrunk


def _log1p(context: Context, name: str, elem_type: int) -> Value:
    """Return ``Log(1 + t)`` for positive t of dtype `elem_type`, in their shape.

    The error of the rounded sum is subtracted, so that small t keep their digits.
    """
    op = context.op
    one = context.scalar(1, "number", elem_type)
    log = op.Log(op.Add(name, one))
    small = clipped(context, name, 0, 1, elem_type)
    raised = op.Add(small, one)
    excess = op.Sub(op.Sub(raised, one), small)
    return op.Sub(log, op.Div(excess, raised))


def _acosh_of(context: Context, half: str, elem_type: int) -> Value:
    """Return ``Acosh(1 + 2 * h)`` for positive h of dtype `elem_type`, in their shape.

    That is ``2 * log1p(p + h / (1 + Sqrt(1 + h)))`` with ``p = Sqrt(h)``. The quotient is
    ``1 / (i + Sqrt(i * i + i))`` with ``i = 1 / h``, which is infinite for an infinite h.
    """
    op = context.op
    one = context.scalar(1, "number", elem_type)
    inverse = op.Div(one, half)
    square = op.Mul(inverse, inverse)
    root = op.Sqrt(op.Add(square, inverse))
    rest = op.Div(one, op.Add(inverse, root))
    raised = op.Add(op.Sqrt(half), rest)
    log = _log1p(context, raised, elem_type)
    return op.Add(log, log)


def _asinh(context: Context, size: str, elem_type: int) -> Value:
    """Return ``Asinh(s)`` for positive s of dtype `elem_type`, in their shape.

    That is ``Acosh(1 + 2 * h)`` with h as ``s / (j + Sqrt(1 + j * j)) / 2`` and ``j = 1 / s``.
    """
    op = context.op
    one = context.scalar(1, "number", elem_type)
    inverse = op.Div(one, size)
    square = op.Mul(inverse, inverse)
    root = op.Sqrt(op.Add(square, one))
    slope = op.Add(inverse, root)
    twice = op.Div(size, slope)
    half = op.Mul(twice, context.scalar(0.5, "number", elem_type))
    return _acosh_of(context, half, elem_type)


def _atanh(context: Context, size: str, elem_type: int) -> Value:
    """Return ``log1p(2 * s / (1 - s)) / 2`` for positive s of dtype `elem_type`, in their shape.

    From 1 on the logarithm is infinite, or NaN.
    """
    op = context.op
    rest = op.Sub(context.scalar(1, "number", elem_type), size)
    odds = op.Div(op.Add(size, size), rest)
    log = _log1p(context, odds, elem_type)
    return op.Mul(log, context.scalar(0.5, "number", elem_type))


@introduced("Cosh", 9, "exponentials")
def cosh(context: Context) -> None:
    """``Cosh(x)`` becomes ``Exp(s / 2) / 2 * Exp(s / 2) + 1 / 2 / Exp(s / 2) / Exp(s / 2)`` with
    ``s = Abs(x)``.
    """
    data, elem_type, working = widened(context, TensorProto.FLOAT)
    size = context.op.Abs(data)
    replace_and_cast_back(
        context, "Add", half_exponentials(context, size, working), elem_type, working
    )


@introduced("Asinh", 9, "a logarithm that keeps the digits of small numbers")
def asinh(context: Context) -> None:
    """``Asinh(x)`` becomes ``x * (2 * log1p(p + h / (1 + Sqrt(1 + h))) / s)`` with ``s = Abs(x)``,
    ``h = (Sqrt(1 + s * s) - 1) / 2`` and ``p = Sqrt(h)``.
    """
    context = context.at(9)
    odd_function(context, _asinh, _finite(context))


@introduced("Acosh", 9, "a logarithm that keeps the digits of numbers close to 1")
def acosh(context: Context) -> None:
    """``Acosh(x)`` becomes ``2 * log1p(p + h / (1 + Sqrt(1 + h)))`` with ``h = (x - 1) / 2`` and
    ``p = Sqrt(h)``, which is NaN below 1.
    """
    op = context.op
    data, elem_type, working = widened(context, TensorProto.FLOAT)
    above = op.Sub(data, context.scalar(1, "number", working))
    half = op.Mul(above, context.scalar(0.5, "number", working))
    replace_and_cast_back(
        context, "Identity", [_acosh_of(context, half, working)], elem_type, working
    )


@introduced("Atanh", 9, "a logarithm that keeps the digits of small numbers")
def atanh(context: Context) -> None:
    """``Atanh(x)`` becomes ``x * (log1p(2 * s / (1 - s)) / 2 / s)`` with ``s = Abs(x)``."""
    context = context.at(9)
    odd_function(context, _atanh, 2)


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
