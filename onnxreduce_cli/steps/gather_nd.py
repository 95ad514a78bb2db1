"""GatherElements, GatherND and ScatterND below opset 11, by places in the flattened data."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.model.values import Dims
from onnxreduce_cli.steps.axes import normalised
from onnxreduce_cli.steps.births import (
    Number,
    arange,
    as_name,
    born,
    need_dims,
    refuse,
    size_of,
    static,
    times,
    unsqueezed,
)
from onnxreduce_cli.steps.casts import cast
from onnxreduce_cli.steps.context import Blocked, Context
from onnxreduce_cli.steps.indices import from_front, never_negative

_PLACES = "places are counted in the flattened data"


@born("GatherElements", 11, "Gather from the flattened data", blocks="a rank is not known")
def gather_elements(context: Context) -> None:
    """``GatherElements<axis=1>(x, indices)`` with x of shape [2, 3] becomes
    ``Gather(Reshape(x, [-1]), 3 * [[0], [1]] + indices)``.
    """
    place = element_places(context)
    flat = context.input(0)
    if context.rank(flat) != 1:
        flat = context.emit("Reshape", [flat, context.array([-1], "flat")], "flat")
    context.replace("Gather", [flat, place], keep=(), axis=0)


def element_places(context: Context) -> str:
    """Where the node's indices along its axis point in the flattened data, in their own shape."""
    data = context.input(0)
    rank = context.need_rank(data, _PLACES)
    axis = normalised((context.value("axis", 0),), rank)[0] if rank else 0
    indices = _counted_from_front(context, context.input(1), size_of(context, data, axis))
    need_dims(context, context.input(1), _PLACES)
    place: str | None = None
    stride: Number = 1
    for dimension in reversed(range(rank)):
        if dimension == axis:
            part = _scaled(context, indices, stride)
        else:
            numbers = arange(context, size_of(context, context.input(1), dimension))
            behind = list(range(1, rank - dimension))
            part = unsqueezed(context, _scaled(context, numbers, stride), behind)
        place = part if place is None else context.emit("Add", [place, part], "places")
        if dimension:
            stride = times(context, stride, size_of(context, data, dimension))
    assert place is not None
    return place


def _counted_from_front(context: Context, indices: str, size: Number) -> str:
    """Indices as int64, those below 0 raised by the size of their dimension."""
    if context.elem_type(indices) != TensorProto.INT64:
        indices = cast(context, indices, TensorProto.INT64)
    if never_negative(context, context.input(1)):
        return indices
    return from_front(context, indices, as_name(context, size), TensorProto.INT64)


def _scaled(context: Context, name: str, stride: Number) -> str:
    return name if stride == 1 else context.emit("Mul", [name, as_name(context, stride)], "part")


@born(
    "GatherND",
    11,
    "Gather from the data with the indexed dimensions made one",
    blocks="a rank or the number of indices is not known",
)
def gather_nd(context: Context) -> None:
    """``GatherND(x, indices)`` with x of shape [2, 3, 4] and indices of [5, 2] becomes
    ``Gather(Reshape(x, [-1, 4]), 3 * indices[:, 0] + indices[:, 1])``.
    """
    data = context.input(0)
    dims = need_dims(context, data, _PLACES)
    place, depth = _flat_places(context, dims)
    if depth > 1:
        rest = static(dims[depth:])
        if rest is not None and 0 in rest:
            raise refuse(context, "gathers slices without elements")
        if rest is not None:
            shape = context.array([-1, *rest], "merged")
        else:
            rows: Number = 1
            sizes = [size_of(context, data, axis) for axis in range(len(dims))]
            for size in sizes[:depth]:
                rows = times(context, rows, size)
            parts = [as_name(context, number) for number in (rows, *sizes[depth:])]
            shape = context.emit("Concat", parts, "merged", axis=0)
        data = context.emit("Reshape", [data, shape], "merged")
    context.replace("Gather", [data, place], keep=(), axis=0)


def _flat_places(context: Context, dims: Dims) -> tuple[str, int]:
    """Where the indices point in the data with the indexed dimensions made one, and how many."""
    indices = context.input(1)
    shape = need_dims(context, indices, _PLACES)
    depth = shape[-1]
    if not isinstance(depth, int) or not 0 < depth <= len(dims):
        raise Blocked(
            f"the size of the last dimension of {indices!r} is not known, and it says how many "
            "dimensions are indexed",
            "state its shape in the model's value_info or inputs",
        )
    known = context.constant(indices)
    sizes = static(dims[:depth])
    if known is not None and sizes is not None:
        positive = np.where(known < 0, known + np.array(sizes), known)
        strides = [math.prod(sizes[index + 1 :]) for index in range(depth)]
        return context.array((positive * strides).sum(-1).astype(np.int64), "places"), depth
    place: str | None = None
    stride: Number = 1
    for dimension in reversed(range(depth)):
        size = size_of(context, context.input(0), dimension)
        column = context.scalar(dimension, "column")
        part = context.emit("Gather", [indices, column], "column", axis=len(shape) - 1)
        if not never_negative(context, indices):
            length = context.emit("Squeeze", [as_name(context, size)], "length", axes=[0])
            part = from_front(context, part, length, TensorProto.INT64)
        part = _scaled_scalar(context, part, stride)
        place = part if place is None else context.emit("Add", [place, part], "places")
        stride = times(context, stride, size)
    assert place is not None
    return place, depth


def _scaled_scalar(context: Context, name: str, stride: Number) -> str:
    """The product with a stride, which does not add a dimension to a scalar."""
    if stride == 1:
        return name
    if isinstance(stride, int):
        factor = context.scalar(stride, "stride")
    else:
        factor = context.emit("Squeeze", [stride], "stride", axes=[0])
    return context.emit("Mul", [name, factor], "part")


@born(
    "ScatterND",
    11,
    "Scatter into the flattened data",
    blocks="a rank, or the number of indices, is not known",
)
def scatter_nd(context: Context) -> None:
    """``ScatterND(x, indices, updates)`` with x of shape [2, 3] and indices of [5, 1] becomes
    ``Reshape(Scatter(Reshape(x, [-1]), places, Reshape(updates, [-1])), [2, 3])``.
    """
    data, indices, updates = (context.input(index) for index in range(3))
    dims, counts = need_dims(context, data, _PLACES), need_dims(context, indices, _PLACES)
    place, depth = _flat_places(context, dims)
    if 0 in dims or 0 in counts:
        context.replace("Identity", [data], keep=())
        return
    size: Number = 1
    for axis in range(depth, len(dims)):
        size = times(context, size, size_of(context, data, axis))
    # One row for each index, with the places of all its elements.
    rows = context.emit("Reshape", [place, context.array([-1, 1], "rows")], "rows")
    if size != 1:
        first = context.emit("Mul", [rows, as_name(context, size)], "first_places")
        rows = context.emit("Add", [first, arange(context, size)], "all_places")
    flat = context.array([-1], "flat")
    places, values, changed = (
        context.emit("Reshape", [name, flat], "flat") for name in (rows, updates, data)
    )
    result = context.emit("Scatter", [changed, places, values], "scattered", axis=0)
    known = static(dims)
    if known is None:
        shape = context.emit("Shape", [data], "shape")
    else:
        shape = context.array(known, "shape")
    context.replace("Reshape", [result, shape], keep=())
