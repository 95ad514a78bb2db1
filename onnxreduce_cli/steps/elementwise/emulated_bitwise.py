"""BitwiseAnd, BitwiseOr and BitwiseXor below opset 18, by arithmetic on each bit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import reduced, unsqueezed
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.reversed_dims import with_reversed_dims
from onnxreduce_cli.model.values import numpy_dtype
from onnxreduce_cli.steps.registry import introduced

_BITWISE = ("BitwiseAnd", "BitwiseOr", "BitwiseXor")


@introduced(_BITWISE, 18, "the bits divided out, combined and summed again")
def bitwise(context: Context) -> None:
    """``BitwiseAnd(x, y)`` becomes ``ReduceSum(a * b * powers)`` over a last dimension that has one
    index for each bit, with ``a = x / powers - x / powers / 2 * 2`` and b the same of y.

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
        # Added to a negative number, this gives the unsigned one of the same bits; subtracted from
        # one of 64 bits, it gives the bits without the sign.
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
    """Replace a node of uint64, combining the higher and the lower 32 bits apart, each in int64."""
    op = context.op
    unit = context.scalar(2**32, "unit", TensorProto.UINT64)
    high, low = [], []
    for name in context.node.input:
        quotient = op.Div(name, unit)
        rest = op.Sub(name, op.Mul(quotient, unit))
        high.append(cast(context, quotient, TensorProto.INT64))
        low.append(cast(context, rest, TensorProto.INT64))
    upper, lower = (
        cast(context, _bitwise(context, half, 32), TensorProto.UINT64) for half in (high, low)
    )
    context.replace("Add", [op.Mul(upper, unit), lower], keep=())


def _bitwise(context: Context, numbers: Sequence[str], count: int) -> str:
    """Return the numbers whose bits are combined from those of two tensors, int64.

    Args:
        context: the node's.
        numbers: the two tensors, int64, none of their elements negative.
        count: the number of bits.
    """
    op = context.op
    powers = context.array([2**bit for bit in range(count)], "powers")
    two = context.scalar(2, "two")
    bits = []
    for number in numbers:
        quotient = op.Div(unsqueezed(context, number, [-1]), powers)
        double = op.Mul(op.Div(quotient, two), two)
        bits.append(op.Sub(quotient, double))
    return _number_of_bits(context, _combined(context, bits), count)


def _number_of_bits(context: Context, bits: str, count: int) -> str:
    """Return the numbers that have given bits, int64 without the last dimension of `bits`.

    The bits from 32 on are summed apart: ONNX Runtime sums in double, which represents 53 of them.

    Args:
        context: the node's.
        bits: zeros and ones, int64 of shape [..., count], the lowest bit first.
        count: the number of bits.
    """
    op = context.op
    exponents = np.arange(count)
    low = np.where(exponents < 32, 2 ** np.minimum(exponents, 31), 0)
    total = _summed_last(context, op.Mul(bits, context.array(low, "low_powers")))
    if count <= 32:
        return total
    high = np.where(exponents < 32, 0, 2 ** np.maximum(exponents - 32, 0))
    rest = _summed_last(context, op.Mul(bits, context.array(high, "high_powers")))
    raised = op.Mul(rest, context.scalar(2**32, "unit"))
    return op.Add(total, raised)


def _summed_last(context: Context, numbers: Value) -> str:
    """Return the sums along the last axis, int64 without that dimension.

    The axis is counted from the front, for ONNX Runtime takes no notice of a negative one where a
    tensor is empty.
    """
    rank = context.rank(numbers)
    if rank is not None:
        return reduced(context, "ReduceSum", numbers, [rank - 1], keep=False)
    turned = with_reversed_dims(context, numbers)
    return with_reversed_dims(context, reduced(context, "ReduceSum", turned, [0], keep=False))


def _combined(context: Context, bits: Sequence[str]) -> Value:
    """Return two tensors of zeros and ones combined by the And, Or or Xor of the node, int64."""
    op = context.op
    both = op.Mul(*bits)
    if context.node.op_type == "BitwiseAnd":
        return both
    if context.node.op_type == "BitwiseXor":
        both = op.Add(both, both)
    return op.Sub(op.Add(*bits), both)
