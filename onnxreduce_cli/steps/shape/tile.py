"""Tile: 6 made one count for each dimension of what was one count along one axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.broadcast import ones, rank_of
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import Number, as_name, sizes
from onnxreduce_cli.emit.refusals import need_few
from onnxreduce_cli.emit.sizes import size_of
from onnxreduce_cli.model.graph.values import tensor_type
from onnxreduce_cli.steps.registry import down, up

#: For each dtype that Tile takes before opset 6 the highest count up to which it holds each.
_HIGHEST_COUNT: dict[int, int] = {
    TensorProto.FLOAT16: 1 << 11,
    TensorProto.FLOAT: 1 << 24,
    TensorProto.DOUBLE: 1 << 53,
}


@up("Tile", 6, "tiles and axis: one count for each dimension")
def tile_with_repeats(context: Context) -> None:
    """``Tile(x, 3.0, 1.0)`` with x of rank 2 becomes ``Tile(x, [1, 3])``.

    Where tiles, axis or rank are only known at run time the counts are
    ``Concat([1, ..., 1], tiles, [1, ..., 1])``.
    """
    op = context.op
    data = context.input(0)
    tiles, axis = (_scalar_number(context, context.input(index)) for index in (1, 2))
    rank = context.specialised_rank(data)
    if isinstance(tiles, int) and isinstance(axis, int) and rank is not None:
        counts = [tiles if index == axis else 1 for index in range(rank)]
        context.replace(inputs=[data, context.array(counts, "repeats")])
        return
    behind: Number
    if isinstance(axis, int) and rank is not None:
        behind = rank - axis - 1
    else:
        others = op.Sub(rank_of(context, data), as_name(context, axis))
        behind = sizes(context, op.Sub(others, context.array([1], "one")))
    context.replace(
        inputs=[
            data,
            op.Concat(ones(context, axis), as_name(context, tiles), ones(context, behind), axis=0),
        ]
    )


def _scalar_number(context: Context, name: str) -> Number:
    """Return an input of one element, a float, as an integer: known, or int64 of shape [1]."""
    known = context.constant(name)
    if known is not None:
        return int(known.reshape(-1)[0])
    whole = cast(context, name, TensorProto.INT64)
    return sizes(context, context.op.Reshape(whole, context.array([1], "list")))


@down(
    "Tile",
    6,
    "one Tile for each axis that repeats, of what is no float a Gather",
    blocks="the rank is not known",
)
def tile_one_axis(context: Context) -> None:
    """``Tile(x, [2, 1, 3])`` becomes ``Tile(Tile(x, 2.0, 0.0), 3.0, 2.0)``, of integers
    ``Gather<axis=2>(Gather<axis=0>(x, [0, 1, 0, 1]), ...)``.

    Counts that are only known at run time are gathered from the repeats.
    """
    data = context.input(0)
    elem_type = context.need_elem_type(data, "before opset 6 tiles and axis have the same")
    counts = context.elements(context.input(1))
    rank = context.specialised_rank(data)
    if counts is None and rank is not None:
        counts = (None,) * rank
    if counts is None:
        raise Blocked(
            f"the rank of {data!r} is not known, and before opset 6 a Tile repeats along one axis",
            "choose opset 6 or later, or state its shape in the model's value_info or inputs",
            rank_of=data,
        )
    if None in counts:
        context.require_specialised(f"how often {data!r} is repeated")
    if elem_type in _HIGHEST_COUNT:
        _tiles(context, elem_type, counts)
    else:
        _gathers(context, counts)


def _tiles(context: Context, elem_type: int, counts: Sequence[int | None]) -> None:
    """Emit one Tile for each axis, in double where the dtype may not hold a count.

    Args:
        context: the context of the node.
        elem_type: the dtype of the data, which is a float.
        counts: how often each axis is repeated, None where that is only known at run time.
    """
    data, working = context.input(0), elem_type
    repeated = [(axis, count) for axis, count in enumerate(counts) if count != 1]
    if any(count is None or count > _HIGHEST_COUNT[elem_type] for _, count in repeated):
        working = TensorProto.DOUBLE
    if working != elem_type:
        data = cast(context, data, working)
    like = tensor_type(working, (None,) * len(counts))
    for axis, count in repeated[:-1]:
        data = context.op.Tile(*_inputs(context, data, axis, count, working), like=like)
    if not repeated:
        context.replace("Identity", [data])
        return
    inputs = _inputs(context, data, *repeated[-1], working)
    if working == elem_type:
        context.replace(inputs=inputs)
        return
    wide = context.replace(inputs=inputs, outputs=[context.fresh("tiled")]).output[0]
    cast(context, wide, elem_type, [context.node.output[0]])


def _inputs(context: Context, data: str, axis: int, count: int | None, elem_type: int) -> list[str]:
    """Return the inputs of a Tile along one axis: data, count and axis, of dtype `elem_type`."""
    return [data, _count(context, axis, count, elem_type), context.scalar(axis, "axis", elem_type)]


def _count(context: Context, axis: int, count: int | None, elem_type: int) -> Value:
    """Return how often an axis is repeated, in dtype `elem_type`: a scalar if known, else [1]."""
    if count is not None:
        return context.scalar(count, "tile", elem_type)
    index = context.array([axis], "index")
    return cast(context, context.op.Gather(context.input(1), index), elem_type)


def _gathers(context: Context, counts: Sequence[int | None]) -> None:
    """Emit one Gather for each axis that is repeated, of data of any dtype.

    Args:
        context: the context of the node.
        counts: how often each axis is repeated, None where that is only known at run time.
    """
    data = context.input(0)
    repeated = [(axis, count) for axis, count in enumerate(counts) if count != 1]
    for axis, count in repeated:
        size = size_of(context, context.input(0), axis)
        if not isinstance(size, int) or count is None:
            raise Blocked(
                f"which elements of {data!r} are repeated along axis {axis} is only known at run "
                "time, and before opset 6 Tile takes floats only",
                "choose opset 6 or later",
            )
        need_few(size * max(count, 1), f"axis {axis} of its result has", "choose opset 6 or later")
        indices = context.array(np.tile(np.arange(size), count), "indices")
        if axis != repeated[-1][0]:
            data = context.op.Gather(data, indices, axis=axis)
        else:
            context.replace("Gather", [data, indices], keep=(), axis=axis)
    if not repeated:
        context.replace("Identity", [data])
