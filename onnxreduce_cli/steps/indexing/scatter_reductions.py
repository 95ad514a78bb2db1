"""ScatterElements and ScatterND: 16 let them add and multiply, 18 take the larger or smaller."""

from __future__ import annotations

import numpy as np

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.loops import Body, Carried, loop
from onnxreduce_cli.emit.numbers import (
    END,
    NO_LOOP,
    Number,
    as_name,
    dims_of,
    part,
    size_of,
    static,
)
from onnxreduce_cli.steps.registry import down

_SCATTERS = ("ScatterElements", "ScatterND")
_BLOCKS = "the dtype of the data is not known"
_REDUCTIONS = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}
_NEW_IN = {16: ("add", "mul"), 18: ("max", "min")}


@down(
    _SCATTERS,
    18,
    "max and min: Gather, Max or Min, and scatter, in a Loop",
    blocks=f"{_BLOCKS}, or {NO_LOOP}",
)
def extremes(context: Context) -> None:
    """``ScatterND<reduction="max">(x, indices, updates)`` becomes a Loop; see `_reduced`."""
    _reduced(context, 18)


@down(
    _SCATTERS,
    16,
    "reduction: Gather, the reduction, and scatter, in a Loop",
    blocks=f"{_BLOCKS}, or {NO_LOOP}",
)
def sums_and_products(context: Context) -> None:
    """``ScatterND<reduction="add">(x, indices, updates)`` becomes a Loop; see `_reduced`."""
    _reduced(context, 16)


def _reduced(context: Context, boundary: int) -> None:
    """Update the data by parts of the indices within which none comes twice, one after the other.

    ``ScatterND<reduction="add">(x, indices, updates)`` becomes, for each index i with its u,
    ``x = ScatterND(x, i, Add(GatherND(x, i), u))``, and ScatterElements the same for each step
    along its axis. Without a Loop where the indices are constants that differ.
    """
    reduction = context.value("reduction", "none")
    if reduction not in _NEW_IN[boundary]:
        if reduction == "none" and context.attribute("reduction") is not None:
            context.replace(drop=("reduction",))
        return
    if context.node.op_type == "ScatterND":
        _reduced_slices(context, _REDUCTIONS[reduction])
    else:
        _reduced_elements(context, _REDUCTIONS[reduction])


def _data(context: Context) -> Carried:
    name = context.input(0)
    elem_type = context.need_elem_type(name, "it goes through a Loop")
    return Carried(name, elem_type, dims_of(context, name))


def _reduced_elements(context: Context, op_type: str) -> None:
    data = _data(context)
    indices, updates = context.input(1), context.input(2)
    axis = context.value("axis", 0)
    if data.dims is not None:
        axis %= max(len(data.dims), 1)

    def write(body: Body) -> tuple[list[str], list[Carried]]:
        (now,) = body.values
        where = body.this(indices, axis)
        old = body.GatherElements(now, where, axis=axis)
        new = body.emit(op_type, old, body.this(updates, axis))
        return [body.ScatterElements(now, where, new, axis=axis)], []

    length = as_name(context, size_of(context, indices, axis))
    inputs, graph = loop(context, length, [data], write)
    context.replace("Loop", inputs, keep=(), body=graph)


def _reduced_slices(context: Context, op_type: str) -> None:
    op = context.op
    data = _data(context)
    indices, updates = context.input(1), context.input(2)
    depth = size_of(context, indices, -1)
    if isinstance(depth, int) and data.dims and _differ(context, indices, data.dims[:depth]):
        old = op.GatherND(data.name, indices)
        new = op.emit(op_type, old, updates)
        context.replace(inputs=[data.name, indices, new], drop=("reduction",))
        return
    rows = op.Reshape(indices, _row_shape(context, [depth]))
    values = op.Reshape(updates, _row_shape(context, _rest(context, depth)))

    def write(body: Body) -> tuple[list[str], list[Carried]]:
        (now,) = body.values
        where = body.this(rows, 0)
        old = body.GatherND(now, where)
        new = body.emit(op_type, old, body.this(values, 0))
        return [body.ScatterND(now, where, new)], []

    inputs, graph = loop(context, as_name(context, size_of(context, rows, 0)), [data], write)
    context.replace("Loop", inputs, keep=(), body=graph)


def _rest(context: Context, depth: Number) -> list[Number]:
    """The shape of the data behind the indexed dimensions, the last of them maybe several."""
    data = context.input(0)
    dims = dims_of(context, data)
    if dims is not None and isinstance(depth, int):
        return [size_of(context, data, axis) for axis in range(depth, len(dims))]
    return [part(context, context.op.Shape(data), depth, END)]


def _row_shape(context: Context, sizes: list[Number]) -> Value:
    """``[-1, *sizes]``."""
    known = [size for size in sizes if isinstance(size, int)]
    if len(known) == len(sizes):
        return context.array([-1, *known], "row_shape")
    parts = [as_name(context, size) for size in sizes]
    return context.op.Concat(context.array([-1], "open"), *parts, axis=0)


def _differ(context: Context, indices: str, dims: tuple[int | str | None, ...]) -> bool:
    """Whether the indices are constants of which no two are the same."""
    known, sizes = context.constant(indices), static(dims)
    if known is None or sizes is None:
        return False
    rows = known.reshape(-1, known.shape[-1])
    rows = np.where(rows < 0, rows + np.array(sizes, np.int64), rows)
    return len(np.unique(rows, axis=0)) == len(rows)
