"""Cosh, Asinh, Acosh and Atanh below opset 9, by exponentials, logarithms and roots.

Half precision is computed in float. The largest error found over all exponents is 8 units in the
last place of Sinh, which is in emulated_sinh.py, and 5 of the others, and one of half precision.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import replace_and_cast_back, widened
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.polynomials import clipped
from onnxreduce_cli.model.values import numpy_dtype
from onnxreduce_cli.steps.registry import introduced

#: Emits a function's values at positive numbers, given with their dtype.
Curve = Callable[[Context, str, int], str]


def odd_function(context: Context, curve: Curve, most: float) -> None:
    """``f(x)`` becomes ``x * (f(s) / s)``, so that zeros keep their signs and NaN remains.

    s is ``Abs(x)``, cut off below where the quotient is 1, and above at `most`.
    """
    op = context.op
    data, given, working = widened(context, TensorProto.FLOAT)
    least = float(np.finfo(numpy_dtype(working)).eps) ** 2
    size = clipped(context, op.Abs(data), least, most, working)
    slope = op.Div(curve(context, size, working), size)
    replace_and_cast_back(context, "Mul", [data, slope], given, working)


def _finite(context: Context) -> float:
    """The largest finite number of the dtype that is computed in."""
    wide = context.elem_type(context.input(0)) == TensorProto.DOUBLE
    return float(np.finfo(np.float64 if wide else np.float32).max)


def half_exponentials(context: Context, size: str, elem_type: int) -> tuple[str, str]:
    """Half of ``Exp(size)`` and of ``Exp(-size)``.

    The first overflows where its double would not, if it were not multiplied in that order.
    """
    op = context.op
    half = context.scalar(0.5, "number", elem_type)
    root = op.Exp(op.Mul(size, half))
    grown = op.Mul(op.Mul(root, half), root)
    shrunk = op.Div(op.Div(half, root), root)
    return grown, shrunk


def _log1p(context: Context, name: str, elem_type: int) -> Value:
    """``Log(1 + t)``, less what the sum was rounded up by, so that small t keep their digits."""
    op = context.op
    one = context.scalar(1, "number", elem_type)
    log = op.Log(op.Add(name, one))
    small = clipped(context, name, 0, 1, elem_type)
    raised = op.Add(small, one)
    excess = op.Sub(op.Sub(raised, one), small)
    return op.Sub(log, op.Div(excess, raised))


def _acosh_of(context: Context, half: str, elem_type: int) -> Value:
    """``Acosh(1 + 2 * h)``: ``2 * log1p(p + h / (1 + Sqrt(1 + h)))`` with ``p = Sqrt(h)``.

    The quotient is ``1 / (i + Sqrt(i * i + i))`` with ``i = 1 / h``, which an infinite h leaves
    infinite.
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
    """``Acosh(Sqrt(1 + s * s))``: its h is ``s / (j + Sqrt(1 + j * j)) / 2`` with ``j = 1 / s``."""
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
    """``log1p(2 * s / (1 - s)) / 2``; from 1 on it is of a negative number, or infinite."""
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
    data, given, working = widened(context, TensorProto.FLOAT)
    size = context.op.Abs(data)
    replace_and_cast_back(context, "Add", half_exponentials(context, size, working), given, working)


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
    data, given, working = widened(context, TensorProto.FLOAT)
    above = op.Sub(data, context.scalar(1, "number", working))
    half = op.Mul(above, context.scalar(0.5, "number", working))
    replace_and_cast_back(context, "Identity", [_acosh_of(context, half, working)], given, working)


@introduced("Atanh", 9, "a logarithm that keeps the digits of small numbers")
def atanh(context: Context) -> None:
    """``Atanh(x)`` becomes ``x * (log1p(2 * s / (1 - s)) / 2 / s)`` with ``s = Abs(x)``."""
    context = context.at(9)
    odd_function(context, _atanh, 2)
