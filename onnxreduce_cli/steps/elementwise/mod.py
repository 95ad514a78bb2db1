"""Mod below the opset that it came with."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import INTEGERS, cast, finish
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.curves import between, number
from onnxreduce_cli.emit.loops import Body, Carried, loop
from onnxreduce_cli.emit.numbers import NO_LOOP, constant, dims_of
from onnxreduce_cli.model.values import numpy_dtype
from onnxreduce_cli.steps.registry import introduced

_UNSIGNED = frozenset(
    {TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64}
)


@introduced(
    "Mod",
    10,
    "a - b * (a / b) of integers; of floats the same in steps without rounding",
    blocks=f"it is of doubles and {NO_LOOP}",
)
def mod(context: Context) -> None:
    """``Mod(a, b)`` of integers becomes ``r + b * Cast(r and b have different signs)`` with
    ``r = a - b * (a / b)``; with ``fmod=1`` it is r alone, and without negative numbers as well.
    """
    op = context.op
    first, second = context.input(0), context.input(1)
    given = context.need_elem_type(first, "what is exact depends on it")
    if given == TensorProto.DOUBLE:
        _of_doubles(context)
        return
    if given not in INTEGERS:
        _of_floats(context, given)
        return
    working = given
    if given not in (TensorProto.INT64, TensorProto.UINT64):
        working = TensorProto.INT64
        first, second = (cast(context, name, working) for name in (first, second))
    divisor = second
    known = context.constant(context.input(1))
    if given == TensorProto.INT64 and (known is None or np.any(known == -1)):
        # The lowest number divided by -1 overflows, which may end the process; 1 leaves no rest
        # either.
        minus = op.Equal(second, constant(context, -1, working, "minus_one"))
        two = constant(context, 2, working, "two")
        more = op.Mul(cast(context, minus, working), two)
        divisor = op.Add(second, more)
    whole = op.Div(first, divisor)
    covered = op.Mul(whole, divisor)
    rest = op.Sub(first, covered)
    if not context.value("fmod", 0) and given not in _UNSIGNED:
        zero = constant(context, 0, working, "zero")
        rest_signs = [op.emit(op_type, rest, zero) for op_type in ("Less", "Greater")]
        divisor_signs = [op.emit(op_type, divisor, zero) for op_type in ("Greater", "Less")]
        pairs = [op.And(a, b) for a, b in zip(rest_signs, divisor_signs, strict=True)]
        apart = cast(context, op.Or(*pairs), working)
        added = op.Mul(divisor, apart)
        rest = op.Add(rest, added)
    if working == given:
        context.replace("Identity", [rest], keep=())
    else:
        context.replace("Cast", [rest], keep=(), to=given)


def _side(context: Context, name: str, elem_type: int) -> Value:
    """1 or -1 as a finite number is, zero as it is; NaN stays."""
    op = context.op
    info = np.finfo(numpy_dtype(elem_type))
    size = op.Abs(name)
    limits = float(info.smallest_subnormal), float(info.max)
    return op.Div(name, between(context, size, *limits, elem_type))


#: Up to more than the exponents of two numbers are apart, in steps of what 53 bits leave.
_SHIFTS: dict[int, range] = {
    TensorProto.FLOAT16: range(1),
    TensorProto.FLOAT: range(0, 280, 28),
}


def _of_floats(context: Context, given: int) -> None:
    """``Mod<fmod=1>(a, b)`` becomes ``r * side`` with ``r = Abs(a)``, from which
    ``s * Floor(r / s)`` is taken for each s of ``b * 2 ** 252``, ``b * 2 ** 224``, ..., b.

    In double nothing of that is rounded: each quotient has as many bits as go with those of b, and
    is further from the next whole number than it could be rounded. Infinite b is made more than a.
    """
    op = context.op
    first, second = context.input(0), context.input(1)
    if given == TensorProto.FLOAT16:
        first, second = (cast(context, name, TensorProto.FLOAT) for name in (first, second))
    finite = float(np.finfo(np.float32).max)
    size = op.Abs(second)
    infinite = op.Greater(size, number(context, finite, TensorProto.FLOAT))
    limited = between(context, size, 0, finite, TensorProto.FLOAT)
    infinite, divisor = (cast(context, name, TensorProto.DOUBLE) for name in (infinite, limited))
    beyond = op.Mul(infinite, number(context, 2.0**200, TensorProto.DOUBLE))
    divisor = op.Add(divisor, beyond)
    rest = cast(context, op.Abs(first), TensorProto.DOUBLE)
    for shift in reversed(_SHIFTS[given]):
        step = divisor
        if shift:
            scale = number(context, 2.0**shift, TensorProto.DOUBLE)
            step = op.Mul(divisor, scale)
        whole = op.Floor(op.Div(rest, step))
        rest = op.Sub(rest, op.Mul(whole, step))
    sides = [cast(context, rest, TensorProto.FLOAT), _side(context, first, TensorProto.FLOAT)]
    finish(context, "Mul", sides, given, TensorProto.FLOAT)


#: The exponents of two doubles are less apart.
_MOST_DOUBLINGS = 2100


def _of_doubles(context: Context) -> None:
    """``Mod<fmod=1>(a, b)`` becomes two Loops: one doubles d, at first ``Abs(b)``, while that is
    less than ``Abs(a)``; the other takes d from the rest where it can, and halves it again.

    Neither doubling and halving nor the difference of numbers so close is rounded. The rest is NaN
    where ``Abs(a) - Abs(a)`` or ``0 / b`` is; where b is infinite, it is a.
    """
    op = context.op
    first, second = context.input(0), context.input(1)
    size, given = (op.Abs(name) for name in (first, second))
    zero, half, one = (number(context, value, TensorProto.DOUBLE) for value in (0, 0.5, 1))
    finite = number(context, float(np.finfo(np.float64).max), TensorProto.DOUBLE)
    divisor = op.Min(given, finite)
    infinite = op.Greater(given, divisor)
    spared = op.Mul(size, cast(context, infinite, TensorProto.DOUBLE))
    nothing = op.Sub(size, size)
    no_divisor = op.Div(zero, given)
    nan = op.Add(nothing, no_divisor)
    divided = op.Sub(size, spared)
    dividend = op.Add(divided, nan)
    start = op.Add(divisor, nan)
    dims = dims_of(context, dividend)

    def write_doubling(body: Body) -> tuple[list[str], list[Carried]]:
        current, count = body.values
        twice = body.Add(current, current)
        fits = body.Less(twice, dividend)
        fitting = body.Cast(fits, to=int(TensorProto.DOUBLE))
        more = body.Mul(current, fitting)
        total = body.ReduceSum(fitting, keepdims=0)
        body.again = body.Cast(total, to=int(TensorProto.BOOL))
        counted = body.Add(count, context.scalar(1, "one"))
        return [body.Add(current, more), counted], []

    def write_halving(body: Body) -> tuple[list[str], list[Carried]]:
        rest, current = body.values
        fits = body.Not(body.Less(rest, current))
        fitting = body.Cast(fits, to=int(TensorProto.DOUBLE))
        taken = body.Mul(current, fitting)
        left = body.Sub(rest, taken)
        # At first what is left may be d once more.
        done = body.Less(left, current)
        above = body.Greater(current, divisor)
        halved = body.And(done, above)
        halving = body.Cast(halved, to=int(TensorProto.DOUBLE))
        scale = body.Sub(one, body.Mul(halving, half))
        return [left, body.Mul(current, scale)], []

    carried = [
        Carried(start, TensorProto.DOUBLE, dims),
        Carried(context.scalar(0, "none"), TensorProto.INT64, ()),
    ]
    inputs, graph = loop(context, context.scalar(_MOST_DOUBLINGS, "most"), carried, write_doubling)
    largest, count = context.fresh("largest"), context.fresh("count")
    op.Loop(*inputs, outputs=[largest, count], body=graph)
    rounds = op.Add(count, context.scalar(2, "two"))
    carried = [Carried(name, TensorProto.DOUBLE, dims) for name in (dividend, largest)]
    inputs, graph = loop(context, rounds, carried, write_halving)
    rest, last = context.fresh("rest"), context.fresh("last")
    op.Loop(*inputs, outputs=[rest, last], body=graph)
    whole = op.Add(rest, spared)
    context.replace("Mul", [whole, _side(context, first, TensorProto.DOUBLE)], keep=())
