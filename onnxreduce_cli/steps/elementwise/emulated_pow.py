"""Pow of int64 and constant whole exponents below opset 12, exactly: squares and products."""

from __future__ import annotations

import numpy as np

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import Array


def constant_power(context: Context, base: str, exponent: Array) -> str:
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
