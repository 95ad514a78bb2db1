"""Add, Sub, Mul, Div, Abs and Neg of integers below opset 6, where they take floats only."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.steps.births import unsqueezed
from onnxreduce_cli.steps.casts import INTEGERS, cast
from onnxreduce_cli.steps.context import Context
from onnxreduce_cli.steps.integer_parts import (
    INTEGERS_OF_64_BITS,
    difference,
    stacked,
    with_number,
)
from onnxreduce_cli.steps.registry import down
from onnxreduce_cli.steps.repeating import aligned, placed_within, repeated


@down(
    ("Add", "Div", "Mul", "Sub"),
    6,
    "integers: sums and products over a stack, quotients by way of double",
)
def of_integers(context: Context) -> None:
    """``Add(x, y)`` of int32 becomes ``ReduceSum<axes=[0]>(Concat(Unsqueeze(x), Unsqueeze(y)))``,
    for reductions take integers, and ``Mul(x, y)`` ReduceProd of the same.

    ``Sub(x, y)`` adds ``y * -1``. ``Div(x, y)`` of 32 bits is ``Cast(Div(Cast(x), Cast(y)))`` in
    double, which is exact; of 64 bits see `_quotient`.
    """
    first, second = context.input(0), context.input(1)
    elem_type = context.elem_type(first)
    if elem_type is None or elem_type not in INTEGERS:
        return
    op_type = context.node.op_type
    if op_type == "Div" and elem_type not in INTEGERS_OF_64_BITS:
        wide = [cast(context, name, TensorProto.DOUBLE) for name in (first, second)]
        quotient = context.replace(inputs=wide, outputs=[context.fresh("quotient")]).output[0]
        cast(context, quotient, elem_type, [context.node.output[0]])
    elif context.value("broadcast", 0):
        context.far = 6
        second = aligned(context, placed_within(context, second, first), first)
        second = repeated(context, second, [first])
        context.replace(inputs=[first, second], drop=("axis", "broadcast"))
    elif op_type == "Div":
        context.far = 6
        _quotient(context, elem_type)
    else:
        if op_type == "Sub":
            second = _negative(context, second, elem_type)
        stack = stacked(context, [first, second], elem_type)
        reduction = "ReduceProd" if op_type == "Mul" else "ReduceSum"
        context.replace(reduction, [stack], keep=(), axes=[0], keepdims=0)


@down(("Abs", "Neg"), 6, "integers: a reduction over a dimension of 1, or a product with -1")
def size_or_negative(context: Context) -> None:
    """``Abs(x)`` of int32 becomes ``ReduceL1<axes=[0]>(Unsqueeze(x))``, and ``Neg(x)`` ReduceProd
    over x and -1; of 8 and 16 bits in int32, cut off again.
    """
    data, output = context.input(0), context.node.output[0]
    elem_type = context.elem_type(data)
    if elem_type is None or elem_type not in INTEGERS:
        return
    if elem_type in _UNSIGNED:
        context.replace("Identity", keep=())
        return
    working = TensorProto.INT64 if elem_type == TensorProto.INT64 else TensorProto.INT32
    wide = data if working == elem_type else cast(context, data, working)
    if context.node.op_type == "Abs":
        stack, reduction = unsqueezed(context, wide, [0]), "ReduceL1"
    else:
        stack, reduction = _with_minus_ones(context, wide, working), "ReduceProd"
    outputs = [output if working == elem_type else context.fresh("wide")]
    context.replace(reduction, [stack], outputs, keep=(), axes=[0], keepdims=0)
    if working != elem_type:
        cast(context, outputs[0], elem_type, [output])


_UNSIGNED = frozenset(
    {TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64}
)


def _negative(context: Context, name: str, elem_type: int) -> str:
    """The integer times -1, or times what wraps as that does."""
    constant = context.constant(name)
    if constant is not None:
        return context.array(-constant, "negative")
    if elem_type == TensorProto.UINT64:  # No double is the highest one.
        signed = _negative(context, cast(context, name, TensorProto.INT64), TensorProto.INT64)
        return cast(context, signed, elem_type)
    stack = _with_minus_ones(context, name, elem_type)
    return context.emit("ReduceProd", [stack], "negative", axes=[0], keepdims=0)


def _with_minus_ones(context: Context, name: str, elem_type: int) -> str:
    """A stack of the integer and as many -1, or for uint32 what wraps as that does."""
    zeros = with_number(context, "Mul", cast(context, name, TensorProto.DOUBLE), 0.0, "zeros")
    unsigned = elem_type == TensorProto.UINT32
    minus_ones = with_number(context, "Add", zeros, 2.0**32 - 1 if unsigned else -1.0)
    return stacked(context, [name, cast(context, minus_ones, elem_type)], elem_type)


# 64 bits


def _quotient(context: Context, elem_type: int) -> None:
    """The quotient of two 64-bit integers, cut towards zero.

    Of int64 it is that of their sizes in uint64, and the signs' product.
    """
    first, second = context.input(0), context.input(1)
    if elem_type == TensorProto.UINT64:
        context.replace("Identity", [_unsigned_quotient(context, first, second)], keep=())
        return
    signs = [_sign(context, name) for name in (first, second)]
    sizes = [
        cast(context, context.emit("Mul", [name, sign], "size"), TensorProto.UINT64)
        for name, sign in zip((first, second), signs, strict=True)
    ]
    size = cast(context, _unsigned_quotient(context, *sizes), TensorProto.INT64)
    context.replace("Mul", [size, context.emit("Mul", signs, "sign")], keep=())


def _sign(context: Context, name: str) -> str:
    """-1 where an int64 is negative, else 1."""
    wide = cast(context, name, TensorProto.DOUBLE)
    negative = cast(context, with_number(context, "Less", wide, 0.0), TensorProto.DOUBLE)
    sign = with_number(context, "Add", with_number(context, "Mul", negative, -2.0), 1.0, "sign")
    return cast(context, sign, TensorProto.INT64)


def _unsigned_quotient(context: Context, first: str, second: str) -> str:
    """``q = a / b`` of uint64 in two estimates by double, neither too high, and a last unit.

    The first is up to 2**15 too low; the second divides what is left, and is up to 1 too low.
    """
    guess = _estimate(context, first, second)
    left = _left(context, first, guess, second)
    more = _estimate(context, left, second)
    rest = _left(context, left, more, second)
    smaller = with_number(context, "Less", difference(context, rest, second), 0.0, "is_less")
    last = cast(context, context.emit("Not", [smaller], "one_more"), TensorProto.UINT64)
    return context.emit("Add", [context.emit("Add", [guess, more], "sum"), last], "quotient")


def _estimate(context: Context, first: str, second: str) -> str:
    wide = [cast(context, name, TensorProto.DOUBLE) for name in (first, second)]
    ratio = context.emit("Div", wide, "ratio")
    lowered = with_number(context, "Mul", ratio, 1 - 2.0**-50, "lowered")
    return cast(context, context.emit("Floor", [lowered], "whole"), TensorProto.UINT64)


def _left(context: Context, first: str, quotient: str, second: str) -> str:
    return context.emit("Sub", [first, context.emit("Mul", [quotient, second], "taken")], "left")
