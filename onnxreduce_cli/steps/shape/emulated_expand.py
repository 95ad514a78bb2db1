"""Expand below 8 where sizes or ranks are only known at run time."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.loops import LoopBody, LoopValue, loop
from onnxreduce_cli.model.values import tensor_type


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


def with_equal_ranks(context: Context) -> tuple[str, str]:
    """Return an Expand's data and shape, the shorter one with dimensions of 1 added in front.

    The number of these is only known at run time, so a Loop adds one after the other.

    Returns:
        the data, of its dtype, and the shape, int64 of shape [rank].
    """
    op = context.op
    data, shape = context.input(0), context.input(1)
    elem_type = context.need_elem_type(data, "it is carried through a Loop")
    rank = op.Shape(op.Shape(data))
    length = op.Shape(shape)

    def unsqueeze(body: LoopBody) -> tuple[list[str], list[LoopValue]]:
        """Add a first dimension of 1 to the data."""
        return [body.Unsqueeze(*body.values, axes=[0])], []

    def lengthen(body: LoopBody) -> tuple[list[str], list[LoopValue]]:
        """Add a first element of 1 to the shape, int64 of shape [rank]."""
        ones = context.array([1], "one")
        return [body.Concat(ones, *body.values, axis=0)], []

    results = []
    for count, name, carried_type, dims, write in (
        ([length, rank], data, elem_type, None, unsqueeze),
        ([rank, length], shape, TensorProto.INT64, (None,), lengthen),
    ):
        missing = op.Sub(*count)
        carried = LoopValue(name, carried_type, dims)
        inputs, graph = loop(context, missing, [carried], write, "over the missing dimensions")
        like = tensor_type(carried_type, dims)
        results.append(op.Loop(*inputs, like=like, body=graph))
    return results[0], results[1]
