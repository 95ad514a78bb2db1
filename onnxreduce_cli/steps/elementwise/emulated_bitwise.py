"""Operators on bits below the opset they came with, where arithmetic can stand for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import reduced, unsqueezed
from onnxreduce_cli.model.values import numpy_dtype
from onnxreduce_cli.steps.registry import down, introduced


@introduced("BitwiseNot", 18, "-1 - x, of unsigned integers their highest number less x")
def bitwise_not(context: Context) -> None:
    """``BitwiseNot(x)`` becomes ``Sub(-1, x)``, of uint8 ``Sub(255, x)``."""
    data = context.input(0)
    elem_type = context.need_elem_type(data, "it decides what x is taken from")
    dtype = numpy_dtype(elem_type)
    highest = -1 if np.issubdtype(dtype, np.signedinteger) else np.iinfo(dtype).max
    context.replace("Sub", [context.array(np.array(highest, dtype), "all_bits"), data], keep=())


_BITWISE = ("BitwiseAnd", "BitwiseOr", "BitwiseXor")


@introduced(_BITWISE, 18, "the bits divided out, combined and summed again")
def bitwise(context: Context) -> None:
    """``BitwiseAnd(x, y)`` becomes ``ReduceSum(a * b * powers)`` over a last dimension that has one
    place for each bit, with ``a = x / powers - x / powers / 2 * 2`` and b the same of y.

    For BitwiseOr it is ``a + b - a * b``, for BitwiseXor ``a + b - 2 * a * b``. All is computed in
    int64, less the sign of those of 64 bits, which is combined by itself; of uint64 each half is.
    """
    op = context.op
    elem_type = context.need_elem_type(context.input(0), "it says how many bits there are")
    if elem_type == TensorProto.UINT64:
        _bitwise_in_halves(context)
        return
    width = np.iinfo(numpy_dtype(elem_type)).bits
    numbers, signs = [], []
    for name in context.node.input:
        whole = name if elem_type == TensorProto.INT64 else cast(context, name, TensorProto.INT64)
        below = op.Less(whole, context.scalar(0, "zero"))
        sign = cast(context, below, TensorProto.INT64)
        signs.append(sign)
        # What makes a negative number the unsigned one that its bits are, or leaves out the sign.
        missing = context.scalar(2**width if width < 64 else -(2**63), "missing")
        operator = "Add" if width < 64 else "Sub"
        added = op.Mul(sign, missing)
        numbers.append(op.emit(operator, whole, added))
    total = _bitwise(context, numbers, min(width, 63))
    if width == 64:
        lowest = context.scalar(-(2**63), "lowest")
        part = op.Mul(_combined(context, signs), lowest)
        context.replace("Add", [total, part], keep=())
    else:
        context.replace("Cast", [total], keep=(), to=elem_type)  # It cuts off what is too high.


def _bitwise_in_halves(context: Context) -> None:
    op = context.op
    unit = context.scalar(2**32, "unit", TensorProto.UINT64)
    high, low = [], []
    for name in context.node.input:
        cut = op.Div(name, unit)
        rest = op.Sub(name, op.Mul(cut, unit))
        high.append(cast(context, cut, TensorProto.INT64))
        low.append(cast(context, rest, TensorProto.INT64))
    upper, lower = (
        cast(context, _bitwise(context, half, 32), TensorProto.UINT64) for half in (high, low)
    )
    context.replace("Add", [op.Mul(upper, unit), lower], keep=())


def _bitwise(context: Context, numbers: Sequence[str], count: int) -> str:
    """What the bits of int64 numbers that are not negative make, combined as the node says."""
    op = context.op
    powers = context.array([2**bit for bit in range(count)], "powers")
    two = context.scalar(2, "two")
    bits = []
    for number in numbers:
        cut = op.Div(unsqueezed(context, number, [-1]), powers)
        double = op.Mul(op.Div(cut, two), two)
        bits.append(op.Sub(cut, double))
    return _sum(context, _combined(context, bits), count)


def _sum(context: Context, bits: str, count: int) -> str:
    """What bits along the last dimension make; each half by itself, as ONNX Runtime sums in double.

    For that a double holds too few digits of 64-bit integers.
    """
    op = context.op
    places = np.arange(count)
    low = np.where(places < 32, 2 ** np.minimum(places, 31), 0)
    total = reduced(
        context,
        "ReduceSum",
        op.Mul(bits, context.array(low, "low_powers")),
        [-1],
        keep=False,
    )
    if count <= 32:
        return total
    high = np.where(places < 32, 0, 2 ** np.maximum(places - 32, 0))
    parts = op.Mul(bits, context.array(high, "high_powers"))
    rest = reduced(context, "ReduceSum", parts, [-1], keep=False)
    raised = op.Mul(rest, context.scalar(2**32, "unit"))
    return op.Add(total, raised)


def _combined(context: Context, bits: Sequence[str]) -> Value:
    """Zeros and ones combined as the node says."""
    op = context.op
    both = op.Mul(*bits)
    if context.node.op_type == "BitwiseAnd":
        return both
    if context.node.op_type == "BitwiseXor":
        both = op.Add(both, both)
    return op.Sub(op.Add(*bits), both)


@down("BitShift", 28, "signed integers shifted as unsigned ones; amounts kept in range by Where")
def shifts_in_range(context: Context) -> None:
    """``BitShift(x, y)`` becomes ``Where(y < bits, BitShift(x, Where(y < bits, y, 0)), 0)``.

    A signed x is shifted to the left by way of the unsigned integer of the same bits. To the right
    a negative one is ``-1 - BitShift(-1 - x, y)``, which fills up with ones. Short ones are shifted
    in 32 bits, which ONNX Runtime can.
    """
    op = context.op
    data, amounts, output = context.input(0), context.input(1), context.node.output[0]
    elem_type = context.need_elem_type(data, "signed integers came with opset 28")
    dtype = numpy_dtype(elem_type)
    if dtype.kind == "u":
        _shift(context, data, amounts, elem_type, dtype.itemsize * 8, [output])
        return
    long = elem_type == TensorProto.INT64
    signed = TensorProto.INT64 if long else TensorProto.INT32
    unsigned = TensorProto.UINT64 if long else TensorProto.UINT32
    whole = data if elem_type == signed else cast(context, data, signed)
    negative, ones = "", context.scalar(-1, "ones", signed)
    if context.value("direction") == "RIGHT":
        negative = op.Less(whole, context.scalar(0, "zero", signed))
        inverted = op.Sub(ones, whole)
        whole = op.Where(negative, inverted, whole)
    whole, amounts = (cast(context, name, unsigned) for name in (whole, amounts))
    shifted = _shift(context, whole, amounts, unsigned, dtype.itemsize * 8)
    if not negative:
        cast(context, shifted, elem_type, [output])  # It cuts off what is too high.
        return
    shifted = cast(context, shifted, signed)
    inverted = op.Sub(ones, shifted)
    own = [output] if elem_type == signed else None
    result = op.Where(negative, inverted, shifted, outputs=own)
    if elem_type != signed:
        cast(context, result, elem_type, [output])


def _shift(
    context: Context,
    data: str,
    amounts: str,
    elem_type: int,
    bits: int,
    outputs: list[str] | None = None,
) -> str:
    """Shift unsigned integers by amounts that may be too large for `bits` bits, which gives 0."""
    op = context.op
    constant = context.constant(amounts)
    outputs = outputs or [context.fresh("shifted")]
    if constant is not None and (constant < bits).all():
        context.replace(inputs=[data, amounts], outputs=outputs)
        return outputs[0]
    zero = context.scalar(0, "zero", elem_type)
    inside = op.Less(amounts, context.scalar(bits, "bits", elem_type))
    safe = op.Where(inside, amounts, zero)
    shifted = context.replace(inputs=[data, safe], outputs=[context.fresh("in_range")]).output[0]
    return op.Where(inside, shifted, zero, outputs=outputs)


@introduced("BitShift", 11, "a product with, or a quotient by, a power of two")
def bit_shift(context: Context) -> None:
    """``BitShift<direction="LEFT">(x, y)`` becomes ``Mul(x, Gather([1, 2, 4, ...], y))``, computed
    in uint64; to the right it is a Div.
    """
    op = context.op
    elem_type = context.need_elem_type(context.input(0), "it says how many bits there are")
    width = np.iinfo(numpy_dtype(elem_type)).bits
    powers = context.array(2 ** np.arange(width, dtype=np.uint64), "powers")
    places = cast(context, context.input(1), TensorProto.INT64)
    data = context.input(0)
    if elem_type != TensorProto.UINT64:
        data = cast(context, data, TensorProto.UINT64)
    factors = op.Gather(powers, places, axis=0)
    op_type = "Mul" if context.value("direction") == "LEFT" else "Div"
    shifted = op.emit(op_type, data, factors)
    context.replace("Cast", [shifted], keep=(), to=elem_type)
