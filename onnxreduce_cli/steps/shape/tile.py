"""Tile: 6 made one count for each dimension of what was one count along one axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Blocked, Context
from onnxreduce_cli.emit.numbers import MOST_WRITTEN, Number, as_name, size_of
from onnxreduce_cli.emit.repeat import ones, rank_of
from onnxreduce_cli.model.values import tensor_type
from onnxreduce_cli.steps.registry import down, up

#: For each float that Tile takes before opset 6 the highest count to which it holds every one.
_HIGHEST_COUNT: dict[int, int] = {
    TensorProto.FLOAT16: 1 << 11,
    TensorProto.FLOAT: 1 << 24,
    TensorProto.DOUBLE: 1 << 53,
}


@up("Tile", 6, "tiles and axis: one count for each dimension")
def repeats(context: Context) -> None:
    """``Tile(x, 3.0, 1.0)`` with x of rank 2 becomes ``Tile(x, [1, 3])``.

    What is not known is put together at run time: ``Concat([1, ..., 1], tiles, [1, ..., 1])``.
    """
    op = context.op
    data = context.input(0)
    tiles, axis = (_number(context, context.input(index)) for index in (1, 2))
    rank = context.settled_rank(data)
    if isinstance(tiles, int) and isinstance(axis, int) and rank is not None:
        counts = [tiles if place == axis else 1 for place in range(rank)]
        context.replace(inputs=[data, context.array(counts, "repeats")])
        return
    behind: Number
    if isinstance(axis, int) and rank is not None:
        behind = rank - axis - 1
    else:
        others = op.Sub(rank_of(context, data), as_name(context, axis))
        behind = op.Sub(others, context.array([1], "one"))
    context.replace(
        inputs=[
            data,
            op.Concat(ones(context, axis), as_name(context, tiles), ones(context, behind), axis=0),
        ]
    )


def _number(context: Context, name: str) -> Number:
    """What a float of one element holds, as an int64."""
    known = context.constant(name)
    if known is not None:
        return int(known.reshape(-1)[0])
    whole = cast(context, name, TensorProto.INT64)
    return context.op.Reshape(whole, context.array([1], "list"))


@down(
    "Tile",
    6,
    "one Tile for each axis that repeats, of what is no float a Gather",
    blocks="the rank is not known",
)
def one_axis(context: Context) -> None:
    """``Tile(x, [2, 1, 3])`` becomes ``Tile(Tile(x, 2.0, 0.0), 3.0, 2.0)``, of integers
    ``Gather<axis=2>(Gather<axis=0>(x, [0, 1, 0, 1]), ...)``.

    Counts that are only known at run time are gathered from the repeats.
    """
    data = context.input(0)
    elem_type = context.need_elem_type(data, "before opset 6 tiles and axis have the same")
    counts = context.elements(context.input(1))
    rank = context.settled_rank(data)
    if counts is None and rank is not None:
        counts = (None,) * rank
    if counts is None:
        raise Blocked(
            f"the rank of {data!r} is not known, and before opset 6 a Tile repeats along one axis",
            "choose opset 6 or later, or state its shape in the model's value_info or inputs",
        )
    if None in counts:
        context.settle(f"how often {data!r} is repeated")
    if elem_type in _HIGHEST_COUNT:
        _tiles(context, elem_type, counts)
    else:
        _gathers(context, counts)


def _tiles(context: Context, elem_type: int, counts: Sequence[int | None]) -> None:
    """One Tile for each axis, in double where the dtype does not hold a count or may not."""
    data, working = context.input(0), elem_type
    steps = [(axis, count) for axis, count in enumerate(counts) if count != 1]
    if any(count is None or count > _HIGHEST_COUNT[elem_type] for _, count in steps):
        working = TensorProto.DOUBLE
    if working != elem_type:
        data = cast(context, data, working)
    like = tensor_type(working, (None,) * len(counts))
    for axis, count in steps[:-1]:
        data = context.op.Tile(*_inputs(context, data, axis, count, working), like=like)
    if not steps:
        context.replace("Identity", [data])
        return
    inputs = _inputs(context, data, *steps[-1], working)
    if working == elem_type:
        context.replace(inputs=inputs)
        return
    wide = context.replace(inputs=inputs, outputs=[context.fresh("tiled")]).output[0]
    cast(context, wide, elem_type, [context.node.output[0]])


def _inputs(context: Context, data: str, axis: int, count: int | None, elem_type: int) -> list[str]:
    """The inputs of a Tile along one axis."""
    return [data, _count(context, axis, count, elem_type), context.scalar(axis, "axis", elem_type)]


def _count(context: Context, axis: int, count: int | None, elem_type: int) -> Value:
    """How often an axis is repeated, in the dtype of what a Tile repeats."""
    if count is not None:
        return context.scalar(count, "tile", elem_type)
    place = context.array([axis], "place")
    return cast(context, context.op.Gather(context.input(1), place), elem_type)


def _gathers(context: Context, counts: Sequence[int | None]) -> None:
    """One Gather for each axis, from the places of its elements, which repeat."""
    data = context.input(0)
    steps = [(axis, count) for axis, count in enumerate(counts) if count != 1]
    for axis, count in steps:
        size = size_of(context, context.input(0), axis)
        if not isinstance(size, int) or count is None or size * count > MOST_WRITTEN:
            raise Blocked(
                f"which elements of {data!r} are repeated along axis {axis} is only known at run "
                "time, and before opset 6 Tile takes floats only",
                "choose opset 6 or later",
            )
        places = context.array(np.tile(np.arange(size), count), "places")
        if axis != steps[-1][0]:
            data = context.op.Gather(data, places, axis=axis)
        else:
            context.replace("Gather", [data, places], keep=(), axis=axis)
    if not steps:
        context.replace("Identity", [data])
