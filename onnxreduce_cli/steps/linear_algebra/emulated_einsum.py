"""Einsum below opset 12 of an operand's diagonal whose size is only known at run time."""

from __future__ import annotations

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import Number, as_name
from onnxreduce_cli.emit.sizes import arange


def diagonal_at_run_time(context: Context, length: Number, leading: int) -> tuple[str, str]:
    """Return the shape that merges the last two dimensions, and their diagonal's indices in that.

    Args:
        context: the node's.
        length: the size of each of the two dimensions.
        leading: how many dimensions come before them.

    Returns:
        the shape, int64 of shape [leading + 1], and the indices, int64 of shape [length].
    """
    op = context.op
    whole = as_name(context, length * length)
    copied = context.array([0] * leading, "copied")
    shape = op.Concat(copied, whole, axis=0)
    apart = as_name(context, length + 1)
    return shape, op.Mul(arange(context, length), apart)
