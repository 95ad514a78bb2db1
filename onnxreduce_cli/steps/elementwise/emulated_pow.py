"""Pow of int64 and whole exponents below opset 12, exactly: by squaring and multiplying."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.loops import LoopBody, LoopValue, loop
from onnxreduce_cli.emit.node_facts import Array
from onnxreduce_cli.emit.sizes import dims_of
from onnxreduce_cli.model.values import numpy_dtype


def integer_power(context: Context, exponent_type: int, constant: Array | None) -> None:
    """Replace a Pow of int64 by squares and products, which wrap where they overflow.

    Where an exponent is negative the power is -1, 0 or 1, which double represents; a power of 0 is
    what the cast of infinity gives then.

    Args:
        context: the node's.
        exponent_type: the dtype of the exponents, an integer.
        constant: the exponents where they are constant, else None.
    """
    op = context.op
    base, exponent = context.input(0), context.input(1)
    if constant is not None and np.all(constant >= 0):
        name = _constant_power(context, base, constant)
        context.replace("Identity", [name], keep=())
        return
    context.require_specialised("what is known of its exponent")
    if numpy_dtype(exponent_type).kind == "u":
        context.replace(
            "Identity", [_run_time_power(context, base, exponent, exponent_type)], keep=()
        )
        return
    if exponent_type != TensorProto.INT64:
        exponent = cast(context, exponent, TensorProto.INT64)
    zero, one = context.scalar(0, "zero"), context.scalar(1, "one")
    negative = cast(context, op.Less(exponent, zero), TensorProto.INT64)
    others = op.Sub(one, negative)
    above, below = (op.Mul(exponent, mask) for mask in (others, negative))
    whole = _run_time_power(
        context, base, above, TensorProto.INT64, numpy_dtype(exponent_type).itemsize * 8 - 1
    )
    inputs = [cast(context, name, TensorProto.DOUBLE) for name in (base, below)]
    small = cast(context, op.Pow(*inputs), TensorProto.INT64)
    parts = [op.Mul(power, mask) for power, mask in ((whole, others), (small, negative))]
    context.replace("Add", parts, keep=())


def _constant_power(context: Context, base: str, exponent: Array) -> str:
    """Return powers of int64 by constant exponents: products of the squares at the exponents' bits.

    Args:
        context: the node's.
        base: the bases, int64.
        exponent: the exponents, none negative, of a shape that broadcasts with the bases'.
    """
    op = context.op
    one = context.scalar(1, "one")
    bits = int(exponent.max(initial=0)).bit_length()
    result, square = "", base
    for bit in range(max(bits, 1)):
        if bit:
            square = op.Mul(square, square)
        has_bit = exponent.astype(np.uint64) & np.uint64(1 << bit) != 0
        mask = context.array(has_bit.astype(np.int64), "bit")
        more = op.Sub(square, one)
        factor = op.Add(op.Mul(more, mask), one)
        result = op.Mul(result, factor) if result else factor
    return result


def _run_time_power(
    context: Context, base: str, exponent: str, elem_type: int, bits: int = 0
) -> Value:
    """Return powers of int64 by exponents known at run time: a Loop with a round for each bit.

    Args:
        context: the node.
        base: the bases, int64.
        exponent: the exponents, none negative, of a shape that broadcasts with the bases'.
        elem_type: the exponents' dtype, int64 or an unsigned one.
        bits: how many bits an exponent may have; 0 for all of its dtype.

    Returns:
        the powers, int64, in the shape of the result.
    """
    op = context.op
    one, two = context.scalar(1, "one"), context.scalar(2, "two", elem_type)
    bits = bits or numpy_dtype(elem_type).itemsize * 8
    zero = context.scalar(0, "zero")
    flat = (
        exponent if elem_type == TensorProto.INT64 else cast(context, exponent, TensorProto.INT64)
    )
    zeros = [op.Mul(name, zero) for name in (base, flat)]
    ones = op.Add(op.Add(*zeros), one)

    def write(body: LoopBody) -> tuple[list[str], list[LoopValue]]:
        """Multiply the powers by the squares where the lowest bit is set, and shift the bits."""
        square, power, left = body.values
        half = body.Div(left, two)
        bit = body.Sub(left, body.Mul(half, two))
        if elem_type != TensorProto.INT64:
            bit = body.Cast(bit, to=int(TensorProto.INT64))
        more = body.Sub(square, one)
        factor = body.Add(body.Mul(more, bit), one)
        return [
            body.Mul(square, square),
            body.Mul(power, factor),
            half,
        ], []

    values = ((base, TensorProto.INT64), (ones, TensorProto.INT64), (exponent, elem_type))
    carried = [LoopValue(name, dtype, dims_of(context, name)) for name, dtype in values]
    inputs, graph = loop(
        context, context.scalar(bits, "bits"), carried, write, "over the exponent's bits"
    )
    _, power, _ = op.Loop(*inputs, outputs=3, body=graph)
    return power
