"""Gather, Scatter, ScatterElements and OneHot: 11 let indices count from the back.

Scatter is called ScatterElements from 11 on.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.indices import from_front, never_negative, size_along
from onnxreduce_cli.emit.reversed_dims import mirrored_axes, replace_mirrored
from onnxreduce_cli.steps.registry import down, impossible, up


def _non_negative(context: Context) -> Value:
    """The node's indices, its second input, counted from the front of its axis."""
    data, indices = context.input(0), context.input(1)
    if never_negative(context, indices):
        return indices
    axis = context.value("axis", 0)
    known = context.type(data)
    dim = known.dims[axis] if known is not None and known.dims is not None else None
    constant = context.constant(indices)
    if constant is not None and isinstance(dim, int):
        return context.array(np.where(constant < 0, constant + dim, constant), "indices")
    elem_type = context.need_elem_type(indices, "the size of the axis is added in that dtype")
    return from_front(context, indices, size_along(context, data, axis, elem_type), elem_type)


@down("Gather", 11, "indices counted from the front", blocks="their dtype is not known")
def gather_from_front(context: Context) -> None:
    """``Gather(x, [-1])`` with x of shape [3] becomes ``Gather(x, [2])``.

    Where the indices are only known at run time the size of the axis is added to those below 0.
    """
    indices = _non_negative(context)
    if indices != context.input(1):
        context.replace(inputs=[context.input(0), indices])


@up("Scatter", 11, "its successor ScatterElements")
def scatter_elements(context: Context) -> None:
    """``Scatter(x, indices, updates)`` becomes ``ScatterElements(x, indices, updates)``."""
    context.replace("ScatterElements")


impossible(
    "Scatter",
    11,
    "down",
    "Scatter is deprecated from opset 11 on: no valid model from there has one to bring down",
)


@down("ScatterElements", 11, "its predecessor Scatter", blocks="the dtype of the indices unknown")
def scatter(context: Context) -> None:
    """``ScatterElements(x, [[-1]], y)`` becomes ``Scatter(x, [[2]], y)``, x of shape [3, 1]."""
    context.replace("Scatter", [context.input(0), _non_negative(context), context.input(2)])


@up(
    "OneHot", 11, "negative indices, which gave no hot element, made so large that they still don't"
)
def none_from_back(context: Context) -> None:
    """``OneHot(indices, depth, values)`` gets ``Where(indices < 0, depth, indices)``."""
    op = context.op
    indices = context.input(0)
    if never_negative(context, indices):
        return
    # Other dtypes are cast to int64 by the operator itself.
    whole = cast(context, indices, TensorProto.INT64)
    depth = _depth(context)
    below = op.Less(whole, context.scalar(0, "zero"))
    inputs = [op.Where(below, depth, whole), *context.node.input[1:]]
    context.replace(inputs=inputs)


@down("OneHot", 11, "indices and axis counted from the front")
def hot_from_front(context: Context) -> None:
    """``OneHot([-1], 3, values)`` becomes ``OneHot([2], 3, values)``.

    What is still negative then is out of range on both sides. Of unknown rank the axis is that of
    the mirrored indices.
    """
    indices, axis = context.input(0), context.value("axis", -1)
    rank = context.settled_rank(indices) if axis < -1 else None
    if axis < -1 and rank is None:
        context = context.at(11)  # It comes here again, with its mirrored axis.
        replace_mirrored(context, axis=mirrored_axes([axis])[0])
        return
    if not never_negative(context, indices):
        whole = cast(context, indices, TensorProto.INT64)
        indices = from_front(context, whole, _depth(context), TensorProto.INT64)
    if axis < -1:
        assert rank is not None
        axis += rank + 1
    if indices != context.input(0) or axis != context.value("axis", -1):
        context.replace(inputs=[indices, *context.node.input[1:]], axis=axis)


def _depth(context: Context) -> Value:
    """The number of classes as an int64 of rank 0: the input may have rank 1 and any dtype."""
    constant = context.constant(context.input(1))
    if constant is not None:
        return context.scalar(int(constant.reshape(-1)[0]), "depth")
    whole = cast(context, context.input(1), TensorProto.INT64)
    return context.op.Reshape(whole, context.array([], "scalar"))


@down(("ArgMax", "ArgMin"), 12, "select_last_index: the first of the reversed elements")
def last_index(context: Context) -> None:
    """``ArgMax<select_last_index=1>(x)`` becomes ``size - 1 - ArgMax(Slice<step -1>(x))``."""
    op = context.op
    if not context.value("select_last_index", 0):
        if context.attribute("select_last_index") is not None:
            context.replace(drop=("select_last_index",))
        return
    axis = context.value("axis", 0)
    ends = context.array([-(2**63) + 1], "ends")
    step = context.array([-1], "last")
    inputs = [context.input(0), step, ends, context.array([axis], "axes"), step]
    backwards = op.Slice(*inputs)
    found = context.replace(
        inputs=[backwards], outputs=[context.fresh("index")], drop=("select_last_index",)
    ).output[0]
    size = size_along(context, context.input(0), axis, TensorProto.INT64)
    last = op.Sub(size, context.scalar(1, "one"))
    op.Sub(last, found, outputs=[context.node.output[0]])
