"""Mod: introduced at opset 10; 28 defined fmod=0 for floats."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Operators, Value
from onnxreduce_cli.emit.casts import cast, replace_and_cast_back
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES, INTEGERS, UNSIGNED
from onnxreduce_cli.emit.indices import never_negative
from onnxreduce_cli.emit.polynomials import clipped
from onnxreduce_cli.model.graph.values import finfo, numpy_dtype
from onnxreduce_cli.steps.registry import down, introduced


@down("Mod", 28, "fmod=0 of floats: fmod=1, to which B is added where the signs differ")
def floor_of_floats(context: Context) -> None:
    """``Mod(a, b)`` of floats becomes ``Where(r and b differ in sign, r + b, Abs(r) * Sign(b))``.

    r is ``Mod<fmod=1>(a, b)``. The sign is set too because that of a zero must be b's.
    """
    op = context.op
    elem_type = context.need_elem_type(context.input(0), "fmod=0 of floats came with opset 28")
    if elem_type in INTEGERS or context.value("fmod", 0):
        return
    divisor, output = context.input(1), context.node.output[0]
    rest = context.replace(outputs=[context.fresh("rest")], fmod=1).output[0]
    zero = context.scalar(0, "zero", elem_type)
    differ = _differ_in_sign(rest, divisor, zero, op)
    moved = op.Add(rest, divisor)
    size = op.Abs(rest)
    sign = op.Sign(divisor)
    signed = op.Mul(size, sign)
    op.Where(differ, moved, signed, outputs=[output])


@introduced(
    "Mod",
    10,
    "a - b * (a / b) of integers; of floats the same in steps without rounding",
    blocks="its inputs are double",
)
def mod(context: Context) -> None:
    """``Mod(a, b)`` of integers becomes ``r + b * Cast(r and b have different signs)`` with
    ``r = a - b * (a / b)``; with ``fmod=1`` it is r alone, and without negative numbers as well.
    """
    op = context.op
    first, second = context.input(0), context.input(1)
    elem_type = context.need_elem_type(first, "what is exact depends on it")
    if elem_type == TensorProto.DOUBLE:
        raise Blocked(
            "before opset 10 only a Loop computes the exact remainders of doubles",
            "choose opset 10 or later, or compute it in float",
        )
    if elem_type not in INTEGERS:
        fmod_of_floats(context, elem_type)
        return
    working = elem_type
    if elem_type not in (TensorProto.INT64, TensorProto.UINT64):
        working = TensorProto.INT64
        first, second = (cast(context, name, working) for name in (first, second))
    divisor = second
    known = context.constant(context.input(1))
    if elem_type == TensorProto.INT64 and (known is None or np.any(known == -1)):
        # The lowest number divided by -1 overflows, which may end the process; the remainder by 1
        # is 0 too.
        minus = op.Equal(second, context.scalar(-1, "minus_one", working))
        two = context.scalar(2, "two", working)
        more = op.Mul(cast(context, minus, working), two)
        divisor = op.Add(second, more)
    whole = op.Div(first, divisor)
    covered = op.Mul(whole, divisor)
    rest = op.Sub(first, covered)
    positive = known is not None and bool(np.all(known > 0))
    whole_numbers = positive and never_negative(context, context.input(0))
    if not context.value("fmod", 0) and elem_type not in UNSIGNED and not whole_numbers:
        zero = context.scalar(0, "zero", working)
        signs_differ = op.Less(rest, zero) if positive else _differ_in_sign(rest, divisor, zero, op)
        added = op.Mul(divisor, cast(context, signs_differ, working))
        rest = op.Add(rest, added)
    if working == elem_type:
        context.replace("Identity", [rest], keep=())
    else:
        context.replace("Cast", [rest], keep=(), to=elem_type)


def _differ_in_sign(rest: str, divisor: str, zero: str, op: Operators) -> Value:
    """Return whether one of two tensors of one dtype is below zero and the other above: bool."""
    signs = [
        op.And(op.emit(first, rest, zero), op.emit(second, divisor, zero))
        for first, second in (("Less", "Greater"), ("Greater", "Less"))
    ]
    return op.Or(*signs)


def _sign(context: Context, name: str, elem_type: int) -> Value:
    """Return 1 or -1 by the signs of floats of dtype `elem_type`; zeros and NaN stay."""
    op = context.op
    info = finfo(numpy_dtype(elem_type))
    size = op.Abs(name)
    limits = float(info.smallest_subnormal), float(info.max)
    return op.Div(name, clipped(context, size, *limits, elem_type))


#: By dtype, shifts up to the largest difference of two exponents, in steps of the bits by which
#: double is more precise.
_SHIFTS: dict[int, range] = {
    TensorProto.FLOAT16: range(1),
    TensorProto.BFLOAT16: range(0, 280, 28),
    TensorProto.FLOAT: range(0, 280, 28),
}


def fmod_of_floats(context: Context, given: int) -> None:
    """``Mod<fmod=1>(a, b)`` becomes ``r * side`` with ``r = Abs(a)``, from which
    ``s * Floor(r / s)`` is taken for each s of ``b * 2 ** 252``, ``b * 2 ** 224``, ..., b.

    In double nothing of that is rounded: each quotient has as many bits as go with those of b, and
    is further from the next whole number than it could be rounded. Infinite b is made more than a.
    """
    op = context.op
    first, second = context.input(0), context.input(1)
    if given in HALVES:
        first, second = (cast(context, name, TensorProto.FLOAT) for name in (first, second))
    finite = float(finfo(np.float32).max)
    size = op.Abs(second)
    infinite = op.Greater(size, context.scalar(finite, "number", TensorProto.FLOAT))
    limited = clipped(context, size, 0, finite, TensorProto.FLOAT)
    infinite, divisor = (cast(context, name, TensorProto.DOUBLE) for name in (infinite, limited))
    beyond = op.Mul(infinite, context.scalar(2.0**200, "number", TensorProto.DOUBLE))
    divisor = op.Add(divisor, beyond)
    rest = cast(context, op.Abs(first), TensorProto.DOUBLE)
    for shift in reversed(_SHIFTS[given]):
        step = divisor
        if shift:
            scale = context.scalar(2.0**shift, "number", TensorProto.DOUBLE)
            step = op.Mul(divisor, scale)
        whole = op.Floor(op.Div(rest, step))
        rest = op.Sub(rest, op.Mul(whole, step))
    sides = [cast(context, rest, TensorProto.FLOAT), _sign(context, first, TensorProto.FLOAT)]
    replace_and_cast_back(context, "Mul", sides, given, TensorProto.FLOAT)
