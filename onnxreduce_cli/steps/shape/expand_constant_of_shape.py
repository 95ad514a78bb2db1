"""ConstantOfShape below opset 9 and Expand below opset 8, which introduced them."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, numpy_helper

from onnxreduce_cli.emit.axes import unsqueezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.loops import LoopBody, LoopValue, loop
from onnxreduce_cli.emit.refusals import OR_STATE_SHAPES, need_loops
from onnxreduce_cli.emit.sizes import dims_of
from onnxreduce_cli.model.graph.values import tensor_type
from onnxreduce_cli.steps.registry import introduced

#: What any dimension is written out for; no runtime takes nearly as many.
_MOST_DIMS = 10_000


@introduced("ConstantOfShape", 9, "Expand of a constant")
def constant_of_shape(context: Context) -> None:
    """``ConstantOfShape<value=[2]>(shape)`` becomes ``Expand(2, shape)``."""
    value = context.value("value")
    array = np.zeros((), np.float32) if value is None else numpy_helper.to_array(value)
    scalar = context.array(array.reshape(()), "value")
    context.replace("Expand", [scalar, context.input(0)], keep=())


@introduced("Expand", 8, "Tile", blocks="a rank is not known")
def expand(context: Context) -> None:
    """``Expand(x, [4, 3])`` with x of shape [3] becomes ``Tile(Unsqueeze<axes=[0]>(x), [4, 1])``.

    Where the sizes are not known, a dimension is repeated as often as the shape says if it is 1.
    """
    data: str
    data, shape = context.input(0), context.input(1)
    dims, lengths = dims_of(context, data), dims_of(context, shape)
    known = context.constant(shape)
    rank = lengths[0] if known is None and lengths is not None else None
    rank = rank if known is None else known.size
    if dims is None or not isinstance(rank, int):
        context.specialised_rank(data)
        tile_at_run_time(context, *_with_equal_ranks(context))
        return
    if rank > _MOST_DIMS:
        raise Blocked(f"its shape is said to have {rank:,} elements, and no tensor has that rank")
    dims = (1,) * (rank - len(dims)) + dims
    data = unsqueezed(context, data, list(range(rank - len(dims_of(context, data) or ()))))
    target = (1,) * (len(dims) - rank)
    if known is not None:
        target += tuple(int(length) for length in known.reshape(-1))
        if all(
            length == 1 or isinstance(dim, int) for dim, length in zip(dims, target, strict=True)
        ):
            repeats = [length if dim == 1 else 1 for dim, length in zip(dims, target, strict=True)]
            context.replace("Tile", [data, context.array(repeats, "repeats")], keep=())
            return
    if len(dims) > rank:
        ones = context.array([1] * (len(dims) - rank), "ones")
        shape = context.op.Concat(ones, shape, axis=0)
    tile_at_run_time(context, data, shape)


def tile_at_run_time(context: Context, data: str, shape: str) -> None:
    """``Expand(x, shape)`` becomes ``Tile(x, (Shape(x) == 1) * (shape - 1) + 1)``.

    Args:
        context: the context of the node.
        data: the tensor x, of any dtype.
        shape: the shape, int64 of shape [rank of x].
    """
    op = context.op
    one = context.array([1], "one")
    sizes = op.Shape(data)
    repeated = cast(context, op.Equal(sizes, one), TensorProto.INT64)
    extra = op.Mul(repeated, op.Sub(shape, one))
    context.replace("Tile", [data, op.Add(extra, one)], keep=())


def _with_equal_ranks(context: Context) -> tuple[str, str]:
    """Return an Expand's data and shape, the shorter one with dimensions of 1 added in front.

    The number of these is only known at run time, so a Loop adds one after the other. Only what
    stands for the Reduce and Softmax family below opset 8 needs it.

    Returns:
        the data, of its dtype, and the shape, int64 of shape [rank].

    Raises:
        Blocked: the node stands for an operator for which no Loop is written.
    """
    op = context.op
    data, shape = context.input(0), context.input(1)
    unknown = f"the rank of {data!r}" if data.rank is None else f"the length of {shape!r}"
    need_loops(
        context,
        f"{unknown} is not known, and before opset 8 only a Loop gives both one rank",
        8,
        OR_STATE_SHAPES,
        rank_of=data if data.rank is None else "",
    )
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
