"""BitwiseAnd, BitwiseOr and BitwiseXor below opset 18, by arithmetic on each bit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import reduced, unsqueezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import UNSIGNED
from onnxreduce_cli.emit.reversed_dims import with_reversed_dims
from onnxreduce_cli.model.graph.values import iinfo, numpy_dtype
from onnxreduce_cli.steps.registry import introduced

_BITWISE = ("BitwiseAnd", "BitwiseOr", "BitwiseXor")


@introduced(_BITWISE, 18, "the bits divided out, combined and summed again")
def bitwise(context: Context) -> None:
    """``BitwiseAnd(x, y)`` becomes ``ReduceSum(a * b * powers)`` over a last dimension that has one
    index for each bit, with ``a = Mod(x, 2 * powers) / powers`` and b the same of y.

    For BitwiseOr it is ``a + b - a * b``, for BitwiseXor ``a + b - 2 * a * b``. Bits are int64. Of
    64 bits they are ``Mod(x / powers, 2)``; of int64 the sign is combined by itself.
    """
    op, names = context.op, context.node.input[:]
    elem_type = context.need_elem_type(context.input(0), "it says how many bits there are")
    if {context.elem_type(name) for name in names} - {elem_type, None}:
        raise Blocked("its inputs have two dtypes", "mend the model: put a Cast before one")
    width = iinfo(numpy_dtype(elem_type)).bits
    context.warn(f"each element is taken apart into {width} bits of int64: memory for all of them")
    if elem_type == TensorProto.INT64:
        _bitwise_of_int64(context, names)
        return
    taken = _bits_of_64 if elem_type == TensorProto.UINT64 else _bits
    bits = [taken(context, name, width) for name in names]
    low, high = _sums_of_bits(context, _combined(context, bits), width)
    if high:
        unit = context.scalar(2**32, "unit", elem_type)
        raised = op.Mul(cast(context, high, elem_type), unit)
        context.replace("Add", [raised, cast(context, low, elem_type)], keep=())
    else:
        context.replace("Cast", [low], keep=(), to=elem_type)  # It cuts off what is too high.


def _bitwise_of_int64(context: Context, names: Sequence[str]) -> None:
    """Replace a node of int64: the numbers less their signs, and the signs by themselves."""
    op = context.op
    lowest = context.scalar(-(2**63), "lowest")
    bits, signs = [], []
    for name in names:
        below = op.Less(name, context.scalar(0, "zero"))
        signs.append(cast(context, below, TensorProto.INT64))
        number = op.Sub(name, op.Mul(signs[-1], lowest))
        bits.append(_bits_of_64(context, number, 63))
    low, high = _sums_of_bits(context, _combined(context, bits), 63)
    total = op.Add(low, op.Mul(high, context.scalar(2**32, "unit")))
    part = op.Mul(_combined(context, signs), lowest)
    context.replace("Add", [total, part], keep=())


def _bits(context: Context, name: str, count: int) -> str:
    """Return the bits of integers of fewer than 64: int64 of shape [..., count], the lowest first.

    Before Mod, 2**n is added to a number of n bits, so that it is not negative; it changes none.
    """
    op = context.op
    powers = context.array([2**bit for bit in range(count)], "powers")
    twice = context.array([2 ** (bit + 1) for bit in range(count)], "twice")
    numbers = unsqueezed(context, cast(context, name, TensorProto.INT64), [-1])
    if context.elem_type(name) not in UNSIGNED and not _has_mod(context):
        numbers = op.Add(numbers, context.scalar(2**count, "above"))
    return op.Div(_remainder(context, numbers, twice), powers)


def _bits_of_64(context: Context, name: str, count: int) -> str:
    """Return the lowest bits of int64 or uint64 that are not negative: int64 of shape [..., count],
    the lowest first.
    """
    op = context.op
    elem_type = context.need_elem_type(name, "the powers of two have it")
    powers = [2**bit for bit in range(count)]
    column = unsqueezed(context, name, [-1])
    quotient = op.Div(column, context.array(np.array(powers, numpy_dtype(elem_type)), "powers"))
    bits = _remainder(context, quotient, context.scalar(2, "two", elem_type))
    return bits if elem_type == TensorProto.INT64 else cast(context, bits, TensorProto.INT64)


def _remainder(context: Context, numbers: str, divisor: str) -> Value:
    """Return what is left of integers by positive ones, in their dtype; before Mod they must not be
    negative.
    """
    op = context.op
    if _has_mod(context):
        return op.Mod(numbers, divisor)
    return op.Sub(numbers, op.Mul(op.Div(numbers, divisor), divisor))


def _has_mod(context: Context) -> bool:
    return context.op.opset >= 10 and context.reaches(10)


def _sums_of_bits(context: Context, bits: str, count: int) -> tuple[str, str]:
    """Return the numbers that have given bits, and the numbers that the bits from 32 on have by
    themselves, if there are any: int64 without the last dimension of `bits`.

    ONNX Runtime sums in double, which represents 53 bits.

    Args:
        context: the context of the node.
        bits: zeros and ones, int64 of shape [..., count], the lowest bit first.
        count: the number of bits.
    """
    op = context.op
    exponents = np.arange(count)
    low = np.where(exponents < 32, 2 ** np.minimum(exponents, 31), 0)
    total = _summed_last(context, op.Mul(bits, context.array(low, "low_powers")))
    if count <= 32:
        return total, ""
    high = np.where(exponents < 32, 0, 2 ** np.maximum(exponents - 32, 0))
    return total, _summed_last(context, op.Mul(bits, context.array(high, "high_powers")))


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
