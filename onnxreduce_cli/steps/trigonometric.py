"""Sin, Cos, Tan, Asin, Acos and Atan below opset 7, by arithmetic in double.

The largest error found over all exponents, and close to the zeros, is half a unit in the last
place; of double 4 units of Sin, Cos and Tan and 6 of the others.
"""

from __future__ import annotations

from functools import lru_cache
from math import factorial, pi

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.model.values import tensor_type
from onnxreduce_cli.steps.births import born, dims_of
from onnxreduce_cli.steps.casts import cast
from onnxreduce_cli.steps.context import Array, Context
from onnxreduce_cli.steps.curves import between, number, polynomial
from onnxreduce_cli.steps.loops import Body, Carried, loop

_DOUBLE = TensorProto.DOUBLE


def _in_double(context: Context) -> tuple[str, int]:
    """The input in double, and the dtype that was given."""
    data = context.input(0)
    given = context.need_elem_type(data, "it is computed in double")
    return (data if given == _DOUBLE else cast(context, data, _DOUBLE)), given


def _finish(context: Context, op_type: str, inputs: list[str], given: int) -> None:
    if given == _DOUBLE:
        context.replace(op_type, inputs, keep=())
    else:
        context.replace("Cast", [context.emit(op_type, inputs)], keep=(), to=given)


def _with(context: Context, op_type: str, name: str, value: float) -> str:
    """An operator of a value and a constant."""
    return context.emit(op_type, [name, number(context, value, _DOUBLE)])


# The angle within its quadrant

#: So many digits of 2 / pi are multiplied at once: with half of those of a double that is exact.
_BITS = 24
#: Beyond this many the digits are scaled up, and what they multiply is scaled down.
_SCALED, _SCALE = 22, 2.0**500


@lru_cache
def _two_over_pi(count: int) -> tuple[int, ...]:
    """The digits of 2 / pi after the point, in groups of `_BITS` bits."""
    precision = _BITS * count + 64

    def arctan_of_inverse(divisor: int) -> int:
        term = (1 << precision) // divisor
        total, odd = 0, 1
        while term:
            total += term // odd if odd % 4 == 1 else -(term // odd)
            term //= divisor * divisor
            odd += 2
        return total

    # Machin's formula.
    whole_pi = 16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239)
    digits = (2 << (precision + _BITS * count)) // whole_pi
    mask = (1 << _BITS) - 1
    return tuple(digits >> _BITS * (count - 1 - index) & mask for index in range(count))


def _tables(given: int) -> tuple[Array, Array]:
    """The groups as numbers, and what is to be multiplied by them is scaled by.

    As many as the largest number, and what is left of it after the point, has digits.
    """
    count = 48 if given == _DOUBLE else 9
    groups = _two_over_pi(count)
    scaled = np.arange(count) >= _SCALED
    exponents = -_BITS * np.arange(1, count + 1) + np.where(scaled, 500, 0)
    return np.ldexp(np.array(groups, float), exponents), np.where(scaled, 1 / _SCALE, 1.0)


def _halves(context: Context, data: str) -> list[str]:
    """Two numbers of half the digits each, of which the sum is a double."""
    # Scaled down, as the product would overflow.
    small = _with(context, "Mul", data, 2.0**-30)
    more = _with(context, "Mul", small, 2.0**27 + 1)
    rest = context.emit("Sub", [more, small], "rest")
    high = context.emit("Sub", [more, rest], "high")
    # The largest numbers would be rounded up to infinity.
    most = 2.0**994 - 2.0**967
    high = _with(context, "Mul", between(context, high, -most, most, _DOUBLE), 2.0**30)
    # In this order, so that both halves of a zero have its sign.
    return [high, context.emit("Neg", [context.emit("Sub", [high, data])], "low")]


def _quarters(context: Context, data: str, given: int) -> tuple[str, str]:
    """The angle as a number of quarter turns, from -2 to 2, and what that was rounded up by.

    It is the sum of the products of x with the digits of 2 / pi, from the highest on; whole turns
    are left out on the way.
    """
    parts = _halves(context, data) if given == _DOUBLE else [data]
    digits, scales = (
        context.array(table, hint)
        for table, hint in zip(_tables(given), ("digits", "scales"), strict=True)
    )
    quarter, half, one, four = (number(context, value, _DOUBLE) for value in (0.25, 0.5, 1, 4))

    def without(body: Body, name: str, turns: str) -> str:
        whole = body.emit("Mul", [body.emit("Floor", [turns]), four], "whole")
        return body.emit("Sub", [name, whole], "within")

    def write(body: Body) -> tuple[list[str], list[Carried]]:
        angle, excess = body.values
        group, scale = (body.emit("Gather", [table, body.round]) for table in (digits, scales))
        for part in parts:
            product = body.emit("Mul", [body.emit("Mul", [part, scale]), group], "product")
            turns = body.emit("Add", [body.emit("Mul", [product, quarter]), half], "turns")
            added = without(body, product, turns)
            total = body.emit("Add", [angle, added], "total")
            # By how much the sum was rounded up, exactly.
            taken = body.emit("Sub", [total, angle], "taken")
            kept = body.emit("Sub", [total, taken], "kept")
            more = [body.emit("Sub", pair, "more") for pair in ([kept, angle], [taken, added])]
            excess = body.emit("Add", [excess, body.emit("Add", more, "more")], "excess")
            # With all its digits a number stays, or a turn is taken off, if that makes it smaller.
            pairs = body.emit("Floor", [body.emit("Mul", [total, half])], "pairs")
            turns = body.emit("Mul", [body.emit("Add", [pairs, one]), half], "turns")
            angle = without(body, total, turns)
        return [angle, excess], []

    dims = dims_of(context, data)
    start = _with(context, "Mul", data, 0)
    carried = [Carried(start, _DOUBLE, dims)] * 2
    count = context.scalar(len(_tables(given)[0]), "count")
    inputs, graph = loop(context, count, carried, write)
    outputs = context.fresh("angle"), context.fresh("excess")
    # A Loop may change shapes, so that inference does not tell them.
    like = tensor_type(_DOUBLE, dims)
    context.emit("Loop", inputs, outputs=outputs, body=graph, like=like)
    return outputs[0], context.emit("Identity", outputs[1:], "excess", like=like)


def _turned(context: Context, given: int, data: str) -> tuple[str, str, str, str]:
    """Sine and cosine of the angle to the nearest quarter turn, how many half turns there are up to
    that, and -1 where it is another quarter turn.
    """
    quarters, excess = _quarters(context, data, given)
    nearest = context.emit("Floor", [_with(context, "Add", quarters, 0.5)], "nearest")
    rest = context.emit("Sub", [quarters, nearest], "rest")
    angle = _with(context, "Mul", context.emit("Sub", [rest, excess], "rest"), pi / 2)
    square = context.emit("Mul", [angle, angle], "square")
    series = [(-1) ** (index // 2) / factorial(index) for index in range(20)]
    sine = polynomial(context, square, series[1::2], _DOUBLE)
    cosine = polynomial(context, square, series[::2], _DOUBLE)
    halves = context.emit("Floor", [_with(context, "Mul", nearest, 0.5)], "halves")
    odd = context.emit("Sub", [_with(context, "Mul", halves, 2), nearest], "minus_odd")
    return context.emit("Mul", [angle, sine], "sine"), cosine, halves, odd


def _either(context: Context, even: str, odd: str, minus_odd: str) -> str:
    """One of two finite values; where it is the first a zero keeps its sign."""
    first = context.emit("Mul", [even, _with(context, "Add", minus_odd, 1)], "even")
    # What is added to the first is -0 as long as the second is positive.
    second = context.emit("Mul", [context.emit("Neg", [odd]), minus_odd], "odd")
    return context.emit("Add", [first, second], "either")


def _signed(context: Context, value: str, halves: str, given: int) -> None:
    """The value, negative where an odd number of half turns was left out."""
    pairs = context.emit("Floor", [_with(context, "Mul", halves, 0.5)], "pairs")
    odd = context.emit("Sub", [halves, _with(context, "Mul", pairs, 2)], "odd")
    sign = _with(context, "Add", _with(context, "Mul", odd, -2), 1)
    _finish(context, "Mul", [value, sign], given)


@born("Sin", 7, "the angle within a quarter turn, and polynomials of it")
def sin(context: Context) -> None:
    """``Sin(x)`` becomes the polynomial of sine or cosine, whichever the quarter turn that x is
    in asks for, of what x is in quarter turns, less whole ones; that product is found in a Loop.
    """
    context.far = 8  # There Min and Max broadcast; their own steps go on.
    data, given = _in_double(context)
    sine, cosine, halves, odd = _turned(context, given, data)
    _signed(context, _either(context, sine, cosine, odd), halves, given)


@born("Cos", 7, "the angle within a quarter turn, and polynomials of it")
def cos(context: Context) -> None:
    """``Cos(x)`` becomes what ``Sin(x)`` does, a quarter turn further on."""
    context.far = 8  # There Min and Max broadcast; their own steps go on.
    data, given = _in_double(context)
    sine, cosine, halves, odd = _turned(context, given, data)
    further = context.emit("Sub", [halves, odd], "halves")
    _signed(context, _either(context, cosine, sine, odd), further, given)


@born("Tan", 7, "the angle within a quarter turn, and polynomials of it")
def tan(context: Context) -> None:
    """``Tan(x)`` becomes ``Div(s, c)`` with the polynomials of sine and cosine, or ``Div(c, -s)``;
    see `sin`.
    """
    context.far = 8  # There Min and Max broadcast; their own steps go on.
    data, given = _in_double(context)
    sine, cosine, _, odd = _turned(context, given, data)
    other = context.emit("Neg", [sine])
    parts = [_either(context, sine, cosine, odd), _either(context, cosine, other, odd)]
    _finish(context, "Div", parts, given)


# Angles


def _halved(context: Context, tangent: str, cosine: str) -> str:
    """The tangent of half an angle of a given sine (or tangent) and cosine (or its inverse)."""
    return context.emit("Div", [tangent, _with(context, "Add", cosine, 1)], "half")


def _root(context: Context, tangent: str) -> str:
    """``Sqrt(1 + t * t)``, the inverse of the cosine of an angle of this tangent."""
    return context.emit("Sqrt", [_with(context, "Add", context.emit("Mul", [tangent] * 2), 1)])


def _angle(context: Context, tangent: str, times: int, given: int) -> None:
    """``Atan(t) * times`` with t from -1 to 1: by the series of a quarter of it."""
    for _ in range(2):
        tangent = _halved(context, tangent, _root(context, tangent))
    square = context.emit("Mul", [tangent, tangent], "square")
    series = [(-1) ** index / (2 * index + 1) for index in range(13)]
    quotient = polynomial(context, square, series, _DOUBLE)
    scaled = _with(context, "Mul", tangent, 4 * times)
    _finish(context, "Mul", [scaled, quotient], given)


@born("Atan", 7, "a polynomial of the tangent of an eighth of the angle")
def atan(context: Context) -> None:
    """``Atan(x)`` becomes ``8 * t * p(t * t)`` where t comes of x by ``t / (1 + Sqrt(1 + t * t))``,
    three times.
    """
    context.far = 8  # There Min and Max broadcast; their own steps go on.
    data, given = _in_double(context)
    # Beyond these the angle is a quarter turn to the last digit.
    tangent = between(context, data, -1e18, 1e18, _DOUBLE)
    _angle(context, _halved(context, tangent, _root(context, tangent)), 2, given)


@born("Asin", 7, "a polynomial of the tangent of an eighth of the angle")
def asin(context: Context) -> None:
    """``Asin(x)`` becomes ``2 * Atan(x / (1 + Sqrt((1 - x) * (1 + x))))``; see `atan`."""
    context.far = 8  # There Min and Max broadcast; their own steps go on.
    data, given = _in_double(context)
    sides = [_with(context, "Add", name, 1) for name in (data, context.emit("Neg", [data]))]
    cosine = context.emit("Sqrt", [context.emit("Mul", sides)], "cosine")
    _angle(context, _halved(context, data, cosine), 2, given)


@born("Acos", 7, "a polynomial of the tangent of a sixteenth of the angle")
def acos(context: Context) -> None:
    """``Acos(x)`` becomes ``4 * Atan(Sqrt((1 - x) / 2) / (1 + Sqrt((1 + x) / 2)))``; see `atan`."""
    context.far = 8  # There Min and Max broadcast; their own steps go on.
    data, given = _in_double(context)
    sine, cosine = (
        context.emit("Sqrt", [_with(context, "Mul", _with(context, "Add", name, 1), 0.5)])
        for name in (context.emit("Neg", [data]), data)
    )
    _angle(context, _halved(context, sine, cosine), 4, given)
