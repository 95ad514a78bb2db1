"""Tile: 6 made one count for each dimension of what was one count along one axis."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.model.values import tensor_type
from onnxreduce_cli.steps.context import Blocked, Context
from onnxreduce_cli.steps.registry import down, up


@up(
    "Tile", 6, "tiles and axis: one count for each dimension", blocks="they or the rank are unknown"
)
def repeats(context: Context) -> None:
    """``Tile(x, 3.0, 1.0)`` with x of rank 2 becomes ``Tile(x, [1, 3])``."""
    found = [context.constant(context.input(index)) for index in (1, 2)]
    if found[0] is None or found[1] is None:
        raise Blocked(
            "its tiles or its axis are only known at run time, and from opset 6 on there is one "
            "count for each dimension",
            "make them constants",
        )
    tiles, axis = (int(array.reshape(-1)[0]) for array in found if array is not None)
    rank = context.need_rank(context.input(0), "from opset 6 on there is a count for each axis")
    counts = [tiles if index == axis else 1 for index in range(rank)]
    context.replace(inputs=[context.input(0), context.array(counts, "repeats")])


@down("Tile", 6, "one Tile for each axis that repeats", blocks="repeats is only known at run time")
def one_axis(context: Context) -> None:
    """``Tile(x, [2, 1, 3])`` becomes ``Tile(Tile(x, 2.0, 0.0), 3.0, 2.0)``."""
    counts = context.constant(context.input(1))
    if counts is None:
        raise Blocked(
            f"its repeats {context.input(1)!r} are only known at run time, and before opset 6 they "
            "are for one axis",
            "make them a constant",
        )
    data = context.input(0)
    elem_type = context.need_elem_type(data, "before opset 6 tiles and axis have the same")
    if elem_type not in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16):
        raise Blocked("it repeats no floats, which alone it takes before opset 6", "cast them")
    like = tensor_type(elem_type, (None,) * len(counts))
    steps = [(axis, count) for axis, count in enumerate(counts.tolist()) if count != 1]
    if not steps:
        context.replace("Identity", [data])
    for done, (axis, count) in enumerate(steps, 1):
        inputs = [data, *(context.scalar(v, "tile", elem_type) for v in (count, axis))]
        if done < len(steps):
            data = context.emit("Tile", inputs, "tiled", like=like)
        else:
            context.replace(inputs=inputs)
