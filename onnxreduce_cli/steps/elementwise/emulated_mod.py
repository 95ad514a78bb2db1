"""Mod of floats below opset 10, to the last bit: by steps, or in Loops for doubles."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast, replace_and_cast_back
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES
from onnxreduce_cli.emit.loops import LoopBody, LoopValue, loop
from onnxreduce_cli.emit.polynomials import clipped
from onnxreduce_cli.emit.sizes import dims_of
from onnxreduce_cli.model.values import finfo, numpy_dtype


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


#: More than the largest difference of the exponents of two doubles.
_MOST_DOUBLINGS = 2100


def fmod_of_doubles(context: Context) -> None:
    """``Mod<fmod=1>(a, b)`` becomes two Loops: one doubles d, at first ``Abs(b)``, while that is
    less than ``Abs(a)``; the other takes d from the rest where it can, and halves it again.

    Neither doubling and halving nor the difference of numbers so close is rounded. The rest is NaN
    where ``Abs(a) - Abs(a)`` or ``0 / b`` is; where b is infinite, it is a.
    """
    op = context.op
    first, second = context.input(0), context.input(1)
    size, divisor_size = (op.Abs(name) for name in (first, second))
    zero = context.scalar(0, "number", TensorProto.DOUBLE)
    finite = context.scalar(float(finfo(np.float64).max), "number", TensorProto.DOUBLE)
    divisor = op.Min(divisor_size, finite)
    infinite = op.Greater(divisor_size, divisor)
    spared = op.Mul(size, cast(context, infinite, TensorProto.DOUBLE))
    nothing = op.Sub(size, size)
    no_divisor = op.Div(zero, divisor_size)
    nan = op.Add(nothing, no_divisor)
    divided = op.Sub(size, spared)
    dividend = op.Add(divided, nan)
    start = op.Add(divisor, nan)
    largest, count = _doubled(context, start, dividend)
    rest = _remainder(context, dividend, largest, divisor, count)
    whole = op.Add(rest, spared)
    context.replace("Mul", [whole, _sign(context, first, TensorProto.DOUBLE)], keep=())


def _doubled(context: Context, start: Value, dividend: Value) -> tuple[Value, Value]:
    """Emit a Loop that doubles each divisor while it stays below its dividend.

    Args:
        context: the node.
        start: the divisors, double, of any shape that broadcasts with the dividends'.
        dividend: the dividends, double, in the shape of the result.

    Returns:
        the multiples, double, in the shape of the dividends, and how many rounds there were, an
        int64 scalar.
    """
    op = context.op

    def write(body: LoopBody) -> tuple[list[str], list[LoopValue]]:
        """Double the divisors that fit into their dividends, and count the round."""
        current, count = body.values
        twice = body.Add(current, current)
        fits = body.Less(twice, dividend)
        fitting = body.Cast(fits, to=int(TensorProto.DOUBLE))
        more = body.Mul(current, fitting)
        total = body.ReduceSum(fitting, keepdims=0)
        body.again = body.Cast(total, to=int(TensorProto.BOOL))
        counted = body.Add(count, context.scalar(1, "one"))
        return [body.Add(current, more), counted], []

    carried = [
        LoopValue(start, TensorProto.DOUBLE, dims_of(context, dividend)),
        LoopValue(context.scalar(0, "none"), TensorProto.INT64, ()),
    ]
    inputs, graph = loop(
        context, context.scalar(_MOST_DOUBLINGS, "most"), carried, write, "that doubles divisors"
    )
    largest, count = op.Loop(*inputs, outputs=2, body=graph)
    return largest, count


def _remainder(
    context: Context, dividend: Value, largest: Value, divisor: Value, count: Value
) -> Value:
    """Emit a Loop that subtracts multiples of the divisor, each half of the one before.

    Args:
        context: the node.
        dividend: the dividends, double, in the shape of the result.
        largest: the first multiples, see `_doubled`.
        divisor: the divisors, to which the multiples are halved again, double.
        count: how often they were doubled, an int64 scalar.

    Returns:
        the remainders, double, in the shape of the dividends.
    """
    op = context.op
    half, one = (context.scalar(value, "number", TensorProto.DOUBLE) for value in (0.5, 1))

    def write(body: LoopBody) -> tuple[list[str], list[LoopValue]]:
        """Subtract the multiples that fit, and halve those that do not fit any more."""
        rest, current = body.values
        fits = body.Not(body.Less(rest, current))
        fitting = body.Cast(fits, to=int(TensorProto.DOUBLE))
        subtrahend = body.Mul(current, fitting)
        left = body.Sub(rest, subtrahend)
        # In the first round the remainder may contain the largest multiple once more.
        done = body.Less(left, current)
        above = body.Greater(current, divisor)
        halved = body.And(done, above)
        halving = body.Cast(halved, to=int(TensorProto.DOUBLE))
        scale = body.Sub(one, body.Mul(halving, half))
        return [left, body.Mul(current, scale)], []

    rounds = op.Add(count, context.scalar(2, "two"))
    dims = dims_of(context, dividend)
    carried = [LoopValue(name, TensorProto.DOUBLE, dims) for name in (dividend, largest)]
    inputs, graph = loop(context, rounds, carried, write, "that subtracts multiples of divisors")
    rest, _ = op.Loop(*inputs, outputs=2, body=graph)
    return rest
