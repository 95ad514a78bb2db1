"""Expand below 8 where sizes or ranks are only known at run time."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context


def tile_at_run_time(context: Context, data: str, shape: str) -> None:
    """``Expand(x, shape)`` becomes ``Tile(x, (Shape(x) == 1) * (shape - 1) + 1)``.

    Args:
        context: the node's.
        data: the tensor x, of any dtype.
        shape: the shape, int64 of shape [rank of x].
    """
    op = context.op
    one = context.array([1], "one")
    sizes = op.Shape(data)
    repeated = cast(context, op.Equal(sizes, one), TensorProto.INT64)
    extra = op.Mul(repeated, op.Sub(shape, one))
    context.replace("Tile", [data, op.Add(extra, one)], keep=())
