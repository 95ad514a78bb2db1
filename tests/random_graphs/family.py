"""Draws nodes of the family: Reduce*, Softmax, LogSoftmax, Hardmax, in all their forms."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from onnx import helper

from tests.random_graphs.drawing import FLOATS, INTEGERS, Drawing, Known, UnsuitableError

REDUCTIONS = (
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
    "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare",
)  # fmt: skip
SOFTMAXES = ("Softmax", "LogSoftmax", "Hardmax")

#: The opset at which axes became an input.
_AXES_ARE_INPUT = {"ReduceSum": 13}
_EXACT = ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceSumSquare")


def reduction(drawing: Drawing) -> None:
    """A Reduce* node: axes absent, empty, constant or known at run time only; keepdims or not."""
    op_type = drawing.choose(REDUCTIONS)
    data = drawing.value(_dtypes(op_type, drawing.opset), ranks=range(6))
    integer = np.issubdtype(data.array.dtype, np.integer)
    if op_type == "ReduceLogSum" and integer and not (data.array.size and data.array.min() > 0):
        raise UnsuitableError  # No integer is NaN or infinite: what becomes of them is left open.
    axes = _axes(drawing, data.array.ndim)
    keepdims = drawing.choose((None, 0, 1))
    exact = op_type in _EXACT
    if drawing.opset < _AXES_ARE_INPUT.get(op_type, 18):
        drawing.node(op_type, [data], axes=axes or None, keepdims=keepdims, exact=exact)
        return
    noop = drawing.choose((None, 0, 1))
    inputs: list[Known | None] = [data]
    if axes is not None:
        inputs.append(drawing.ints(*axes))
    elif drawing.chance():
        inputs.append(None)
    drawing.node(
        op_type, inputs, keepdims=keepdims, noop_with_empty_axes=noop, exact=exact and not noop
    )


def _axes(drawing: Drawing, rank: int) -> list[int] | None:
    if drawing.number(0, 3) == 3:
        return None
    chosen = [axis for axis in range(rank) if drawing.chance()]
    if drawing.opset >= 11:
        chosen = [axis - rank if drawing.chance() else axis for axis in chosen]
    return chosen[::-1] if drawing.chance() else chosen


def _dtypes(op_type: str, opset: int) -> list[np.dtype]:
    found = list(FLOATS)
    if not (op_type.startswith("ReduceLog") and opset >= 28):
        found += INTEGERS
    if opset >= 13:
        found.append(np.dtype(ml_dtypes.bfloat16))
    if op_type in ("ReduceMax", "ReduceMin"):
        if opset >= 12:
            found += [np.dtype(np.uint8), np.dtype(np.int8)]
        if opset >= 20:
            found.append(np.dtype(bool))
    return found


def softmax(drawing: Drawing) -> None:
    """A Softmax, LogSoftmax or Hardmax node over any axis, or its default one."""
    op_type = drawing.choose(SOFTMAXES)
    data = drawing.value(ranks=range(1, 6), exact=op_type == "Hardmax")
    rank = data.array.ndim
    least = -rank if drawing.opset >= 11 else 0
    axis = drawing.choose([None, *range(least, rank)])
    drawing.node(op_type, [data], axis=axis, exact=op_type == "Hardmax")


def in_function(drawing: Drawing) -> None:
    """A call of a function whose body has a node of the family, its attributes references."""
    if drawing.ir_version < 8 or drawing.opset < 8 or drawing.depth:
        raise UnsuitableError
    data = drawing.value(FLOATS[:2], ranks=range(1, 5))
    reduces = drawing.chance()
    if reduces:
        op_type = drawing.choose(REDUCTIONS)
        by_input = drawing.opset >= _AXES_ARE_INPUT.get(op_type, 18)
        own, given = {"keepdims": "kept"}, {"kept": drawing.choose((0, 1))}
        if not by_input:
            own["axes"], given["over"] = "over", [drawing.number(0, data.array.ndim - 1)]
        body = helper.make_node(op_type, ["in"], ["inner"])
    else:
        op_type = drawing.choose(("Softmax", "LogSoftmax"))
        own, given = {"axis": "along"}, {"along": drawing.number(0, data.array.ndim - 1)}
        body = helper.make_node(op_type, ["in"], ["inner"])
    for name, reference in own.items():
        attribute = body.attribute.add()
        attribute.name, attribute.ref_attr_name = name, reference
        attribute.type = helper.make_attribute(name, given[reference]).type
    kind = f"{op_type}Function{len(drawing.functions)}"
    function = helper.make_function(
        "own",
        kind,
        ["in"],
        ["out"],
        [body, helper.make_node("Neg", ["inner"], ["out"])],
        [helper.make_opsetid("", drawing.opset)],
        list(given),
    )
    drawing.functions.append(function)
    try:
        drawing.node(kind, [data], domain="own", **given)
    except UnsuitableError:
        drawing.functions.remove(function)
        raise
