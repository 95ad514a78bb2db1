"""ScatterElements and ScatterND: 16 let them add and multiply, 18 take the larger or smaller."""

from __future__ import annotations

import numpy as np

from onnxreduce_cli.steps.births import as_name, dims_of, need_dims, size_of, static
from onnxreduce_cli.steps.context import Blocked, Context
from onnxreduce_cli.steps.loops import Body, Carried, loop
from onnxreduce_cli.steps.registry import down

_SCATTERS = ("ScatterElements", "ScatterND")
_BLOCKS = "the dtype or the rank of the data is not known"
_REDUCTIONS = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}
_NEW_IN = {16: ("add", "mul"), 18: ("max", "min")}


@down(_SCATTERS, 18, "max and min: Gather, Max or Min, and scatter, in a Loop", blocks=_BLOCKS)
def extremes(context: Context) -> None:
    """``ScatterND<reduction="max">(x, indices, updates)`` becomes a Loop; see `_reduced`."""
    _reduced(context, 18)


@down(_SCATTERS, 16, "reduction: Gather, the reduction, and scatter, in a Loop", blocks=_BLOCKS)
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
    return Carried(name, elem_type, need_dims(context, name, "it goes through a Loop"))


def _reduced_elements(context: Context, op_type: str) -> None:
    data = _data(context)
    assert data.dims is not None
    indices, updates = context.input(1), context.input(2)
    axis = context.value("axis", 0) % max(len(data.dims), 1)

    def write(body: Body) -> tuple[list[str], list[Carried]]:
        (now,) = body.values
        where = body.this(indices, axis)
        old = body.emit("GatherElements", [now, where], "old", axis=axis)
        new = body.emit(op_type, [old, body.this(updates, axis)], "new")
        return [body.emit("ScatterElements", [now, where, new], axis=axis)], []

    length = as_name(context, size_of(context, indices, axis))
    inputs, graph = loop(context, length, [data], write)
    context.replace("Loop", inputs, keep=(), body=graph)


def _reduced_slices(context: Context, op_type: str) -> None:
    data = _data(context)
    assert data.dims is not None
    indices, updates = context.input(1), context.input(2)
    shape = need_dims(context, indices, "its last dimension says how many are indexed")
    depth = shape[-1]
    if not isinstance(depth, int):
        raise Blocked(
            f"the size of the last dimension of {indices!r} is not known, and it says how many "
            "dimensions are indexed",
            "state its shape in the model's value_info or inputs",
        )
    if _differ(context, indices, data.dims[:depth]):
        old = context.emit("GatherND", [data.name, indices], "old")
        new = context.emit(op_type, [old, updates], "new")
        context.replace(inputs=[data.name, indices, new], drop=("reduction",))
        return
    rows = context.emit("Reshape", [indices, context.array([-1, depth], "rows")], "rows")
    sizes = _row_shape(context, depth)
    values = context.emit("Reshape", [updates, sizes], "values")

    def write(body: Body) -> tuple[list[str], list[Carried]]:
        (now,) = body.values
        where = body.this(rows, 0)
        old = body.emit("GatherND", [now, where], "old")
        new = body.emit(op_type, [old, body.this(values, 0)], "new")
        return [body.emit("ScatterND", [now, where, new])], []

    inputs, graph = loop(context, as_name(context, size_of(context, rows, 0)), [data], write)
    context.replace("Loop", inputs, keep=(), body=graph)


def _row_shape(context: Context, depth: int) -> str:
    """``[-1, *shape of the data behind the indexed dimensions]``."""
    dims = dims_of(context, context.input(0))
    assert dims is not None
    rest = static(dims[depth:])
    if rest is not None:
        return context.array([-1, *rest], "row_shape")
    parts = [context.array([-1], "open")]
    parts += [
        as_name(context, size_of(context, context.input(0), axis))
        for axis in range(depth, len(dims))
    ]
    return context.emit("Concat", parts, "row_shape", axis=0)


def _differ(context: Context, indices: str, dims: tuple[int | str | None, ...]) -> bool:
    """Whether the indices are constants of which no two are the same."""
    known, sizes = context.constant(indices), static(dims)
    if known is None or sizes is None:
        return False
    rows = known.reshape(-1, known.shape[-1])
    rows = np.where(rows < 0, rows + np.array(sizes, np.int64), rows)
    return len(np.unique(rows, axis=0)) == len(rows)
