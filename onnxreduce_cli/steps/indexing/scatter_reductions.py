"""ScatterElements and ScatterND: 16 let them add and multiply, 18 take the larger or smaller."""

from __future__ import annotations

import numpy as np

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.refusals import LOOPS_FROM
from onnxreduce_cli.emit.sizes import static_dims
from onnxreduce_cli.steps.indexing.emulated_scatter_reductions import (
    reduced_elements,
    reduced_slices,
)
from onnxreduce_cli.steps.registry import down

_SCATTERS = ("ScatterElements", "ScatterND")
_BLOCKS = f"the dtype of the data is not known, or it leads below opset {LOOPS_FROM}"
_REDUCTIONS = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}
_NEW_IN = {16: ("add", "mul"), 18: ("max", "min")}


@down(
    _SCATTERS,
    18,
    "max and min: Gather, Max or Min, and scatter, in a Loop",
    blocks=_BLOCKS,
)
def extremes(context: Context) -> None:
    """``ScatterND<reduction="max">(x, indices, updates)`` becomes a Loop; `_apply_reduction`."""
    _apply_reduction(context, 18)


@down(
    _SCATTERS,
    16,
    "reduction: Gather, the reduction, and scatter, in a Loop",
    blocks=_BLOCKS,
)
def sums_and_products(context: Context) -> None:
    """``ScatterND<reduction="add">(x, indices, updates)`` becomes a Loop; `_apply_reduction`."""
    _apply_reduction(context, 16)


def _apply_reduction(context: Context, boundary: int) -> None:
    """``ScatterND<reduction="add">(x, indices, updates)`` with constant indices that all differ
    becomes ``ScatterND(x, indices, Add(GatherND(x, indices), updates))``.

    Other indices, and ScatterElements, go through a Loop; see `reduced_slices` and
    `reduced_elements`.
    """
    known = [name for since, names in _NEW_IN.items() if since <= boundary for name in names]
    reduction = context.choice("reduction", "none", ("none", *known))
    if reduction not in _NEW_IN[boundary]:
        if reduction == "none" and context.attribute("reduction") is not None:
            context.replace(drop=("reduction",))
        return
    op_type, op = _REDUCTIONS[reduction], context.op
    data, indices, updates = (context.input(index) for index in range(3))
    context.need_elem_type(data, "its elements are reduced in it")
    if context.node.op_type != "ScatterND":
        reduced_elements(context, op_type)
    elif _all_differ(context, data, indices):
        old = op.GatherND(data, indices)
        new = op.emit(op_type, old, updates)
        context.replace(inputs=[data, indices, new], drop=("reduction",))
    else:
        reduced_slices(context, op_type)


def _all_differ(context: Context, data: Value, indices: Value) -> bool:
    """Return whether ScatterND's indices are constants that point to different slices each."""
    known = context.constant(indices)
    if known is None or not data.dims:
        return False
    sizes = static_dims(data.dims[: known.shape[-1]])
    if sizes is None:
        return False
    vectors = known.reshape(-1, known.shape[-1])
    vectors = np.where(vectors < 0, vectors + np.array(sizes, np.int64), vectors)
    return len(np.unique(vectors, axis=0)) == len(vectors)
