"""GatherElements, GatherND and ScatterND below opset 11, by places in the flattened data."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import normalised
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.indices import from_front, never_negative
from onnxreduce_cli.emit.numbers import (
    END,
    NO_COUNTING,
    Number,
    arange,
    as_name,
    known_size,
    need_dims,
    part,
    reduced,
    size_of,
    static,
    times,
    unsqueezed,
)
from onnxreduce_cli.emit.shapes import (
    OPSET,
    among,
    axes_from_front,
    element,
    flat,
    places,
    product,
    rank_at_run_time,
    reshaped,
    restored,
    strides,
)
from onnxreduce_cli.model.values import Dims
from onnxreduce_cli.steps.registry import down, introduced

_PLACES = "places are counted in the flattened data"


@introduced("GatherElements", 11, "Gather from the flattened data", blocks=NO_COUNTING)
def gather_elements(context: Context) -> None:
    """``GatherElements<axis=1>(x, indices)`` with x of shape [2, 3] becomes
    ``Gather(Reshape(x, [-1]), 3 * [[0], [1]] + indices)``.
    """
    place = element_places(context)
    data = context.input(0)
    if context.rank(data) != 1:
        data = flat(context, data)
    context.replace("Gather", [data, place], keep=(), axis=0)


def element_places(context: Context) -> str:
    """Where the node's indices along its axis point in the flattened data, in their own shape."""
    data = context.input(0)
    rank = context.settled_rank(data)
    if rank is None or context.settled_rank(context.input(1)) is None:
        return _element_places_of_any_rank(context)
    axis = normalised((context.value("axis", 0),), rank)[0] if rank else 0
    indices = _counted_from_front(context, context.input(1), size_of(context, data, axis))
    place: str | None = None
    stride: Number = 1
    for dimension in reversed(range(rank)):
        if dimension == axis:
            part = _scaled(context, indices, stride)
        else:
            numbers = arange(context, size_of(context, context.input(1), dimension))
            behind = list(range(1, rank - dimension))
            part = unsqueezed(context, _scaled(context, numbers, stride), behind)
        place = part if place is None else context.op.Add(place, part)
        if dimension:
            stride = times(context, stride, size_of(context, data, dimension))
    assert place is not None
    return place


def _element_places_of_any_rank(context: Context) -> Value:
    """The same where a rank is only known at run time."""
    context = context.at(OPSET)
    op = context.op
    data, indices, axis = context.input(0), context.input(1), context.value("axis", 0)
    sizes = op.Shape(data)
    apart = strides(context, sizes)
    rank = rank_at_run_time(context, data)
    number = context.array([axis], "axis")
    is_axis = among(context, rank, axes_from_front(context, number, rank) if axis < 0 else number)
    others = op.Where(is_axis, context.array([0], "zero"), apart)
    if context.elem_type(indices) != TensorProto.INT64:
        indices = cast(context, indices, TensorProto.INT64)
    shape = op.Shape(indices)
    along = flat(context, indices)
    if not never_negative(context, context.input(1)):
        length = element(context, sizes, axis)
        along = from_front(context, along, length, TensorProto.INT64)
    along = op.Mul(along, element(context, apart, axis))
    place = op.Add(places(context, shape, others), along)
    shaped = context.fresh("places")
    restored(context, place, indices, shape, shaped)
    return shaped


def _counted_from_front(context: Context, indices: str, size: Number) -> str:
    """Indices as int64, those below 0 raised by the size of their dimension."""
    if context.elem_type(indices) != TensorProto.INT64:
        indices = cast(context, indices, TensorProto.INT64)
    if never_negative(context, context.input(1)):
        return indices
    return from_front(context, indices, as_name(context, size), TensorProto.INT64)


def _scaled(context: Context, name: str, stride: Number) -> str:
    return name if stride == 1 else context.op.Mul(name, as_name(context, stride))


@introduced(
    "GatherND", 11, "Gather from the data with the indexed dimensions made one", blocks=NO_COUNTING
)
def gather_nd(context: Context) -> None:
    """``GatherND(x, indices)`` with x of shape [2, 3, 4] and indices of [5, 2] becomes
    ``Gather(Reshape(x, [-1, 4]), 3 * indices[:, 0] + indices[:, 1])``.
    """
    op = context.op
    data = context.input(0)
    if not _ranks_are_known(context):
        _gather_slices_of_any_rank(context)
        return
    dims = need_dims(context, data, _PLACES)
    depth = known_size(context, context.input(1), -1) or 0
    rest = static(dims[depth:])
    if depth > 1 and rest is not None and 0 in rest:
        _gather_nothing(context, rest)
        return
    place, depth = _flat_places(context, dims)
    if depth > 1:
        if rest is not None:
            shape = context.array([-1, *rest], "merged")
        else:
            rows: Number = 1
            sizes = [size_of(context, data, axis) for axis in range(len(dims))]
            for size in sizes[:depth]:
                rows = times(context, rows, size)
            parts = [as_name(context, number) for number in (rows, *sizes[depth:])]
            shape = op.Concat(*parts, axis=0)
        data = op.Reshape(data, shape)
    context.replace("Gather", [data, place], keep=(), axis=0)


def _flat_places(context: Context, dims: Dims) -> tuple[str, int]:
    """Where the indices point in the data with the indexed dimensions made one, and how many."""
    op = context.op
    indices = context.input(1)
    shape = need_dims(context, indices, _PLACES)
    depth = shape[-1]
    assert isinstance(depth, int)
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
        part: str = op.Gather(indices, column, axis=len(shape) - 1)
        if not never_negative(context, indices):
            length = op.Squeeze(as_name(context, size), axes=[0])
            part = from_front(context, part, length, TensorProto.INT64)
        part = _scaled_scalar(context, part, stride)
        place = part if place is None else op.Add(place, part)
        stride = times(context, stride, size)
    assert place is not None
    return place, depth


def _ranks_are_known(context: Context) -> bool:
    """Whether the ranks are known, and how many dimensions are indexed."""
    data, indices = context.input(0), context.input(1)
    ranks = context.settled_rank(data), context.settled_rank(indices)
    return None not in ranks and known_size(context, indices, -1) is not None


@down(
    "GatherND",
    12,
    "batch_dims: Gather from the data with all but the slices made one",
    blocks=NO_COUNTING,
)
def without_batch_dims(context: Context) -> None:
    """``GatherND<batch_dims=1>(x, indices)`` becomes ``Reshape(Gather(Reshape(x), places), shape)``
    with the places of each batch behind those of the one before.
    """
    batch_dims = context.value("batch_dims", 0)
    if batch_dims:
        _gather_slices_of_any_rank(context, batch_dims)
    elif context.attribute("batch_dims") is not None:
        context.replace(drop=("batch_dims",))


def _slices_of_any_rank(context: Context, batch_dims: int = 0) -> tuple[str, str, str, str]:
    """What indexes slices where a rank, or how many dimensions are indexed, is not known.

    For a context that is bound to `OPSET`.

    Returns:
        the number of each slice that is pointed to, in one dimension; the sizes of the batch and
        the indexed dimensions; those of a slice; and those of the indices but for the last.
    """
    op = context.op
    data, indices = context.input(0), context.input(1)
    sizes, shape = (op.Shape(name) for name in (data, indices))
    depth = element(context, shape, -1)
    end = depth
    if batch_dims:
        end = op.Add(depth, context.array([batch_dims], "batch_dims"))
    before, behind = part(context, sizes, 0, end), part(context, sizes, end, END)
    indexed = part(context, before, batch_dims, END) if batch_dims else before
    lead = part(context, shape, 0, -1)
    rows = op.Concat(product(context, lead), depth, axis=0)
    indices = reshaped(context, indices, rows, (None, None))
    if not never_negative(context, context.input(1)):
        indices = from_front(context, indices, indexed, TensorProto.INT64)
    parts = op.Mul(indices, strides(context, indexed))
    number = reduced(context, "ReduceSum", parts, [1], keep=False)
    if batch_dims:
        batch = part(context, lead, 0, batch_dims)
        counted = arange(context, product(context, batch))
        first = op.Mul(counted, product(context, indexed))
        each = product(context, part(context, lead, batch_dims, END))
        by_batch = op.Concat(product(context, batch), each, axis=0)
        number = reshaped(context, number, by_batch, (None, None))
        number = op.Add(number, unsqueezed(context, first, [1]))
        number = flat(context, number)
    return number, before, behind, lead


def _gather_slices_of_any_rank(context: Context, batch_dims: int = 0) -> None:
    context = context.at(OPSET)
    op = context.op
    number, before, behind, lead = _slices_of_any_rank(context, batch_dims)
    data = context.input(0)
    slices = [product(context, sizes) for sizes in (before, behind)]
    matrix = reshaped(context, data, op.Concat(*slices, axis=0), (None, None))
    gathered = op.Gather(matrix, number, axis=0)
    shape = op.Concat(lead, behind, axis=0)
    # What is empty is made in its shape; all else is reshaped to it.
    nothing = _of_shape(context, shape)
    restored(context, gathered, nothing, shape, context.node.output[0])


def _gather_nothing(context: Context, slices: tuple[int, ...]) -> None:
    """Slices without elements, of which Reshape cannot make one dimension of the indexed ones."""
    context = context.at(OPSET)
    op = context.op
    lead = part(context, op.Shape(context.input(1)), 0, -1)
    shape = op.Concat(lead, context.array(slices, "slice"), axis=0)
    context.replace("Identity", [_of_shape(context, shape)], keep=())


def _of_shape(context: Context, shape: str) -> Value:
    """Some tensor of the data's dtype, of a shape known at run time."""
    elem_type = context.need_elem_type(context.input(0), "what has no elements is made in it")
    found = context.op.ConstantOfShape(shape)
    return found if elem_type == TensorProto.FLOAT else cast(context, found, elem_type)


def _scatter_slices_of_any_rank(context: Context) -> None:
    context = context.at(OPSET)
    op = context.op
    number, _, behind, _ = _slices_of_any_rank(context)
    data, updates = context.input(0), context.input(2)
    size = product(context, behind)
    first = op.Mul(unsqueezed(context, number, [1]), size)
    at = op.Add(first, arange(context, size))
    inputs = [flat(context, name) for name in (data, at, updates)]
    changed = op.ScatterElements(*inputs, axis=0)
    shape = op.Shape(data)
    restored(context, changed, data, shape, context.node.output[0])


def _scaled_scalar(context: Context, name: str, stride: Number) -> str:
    """The product with a stride, which does not add a dimension to a scalar."""
    op = context.op
    if stride == 1:
        return name
    if isinstance(stride, int):
        factor = context.scalar(stride, "stride")
    else:
        factor = op.Squeeze(as_name(context, stride), axes=[0])
    return op.Mul(name, factor)


@introduced("ScatterND", 11, "Scatter into the flattened data", blocks=NO_COUNTING)
def scatter_nd(context: Context) -> None:
    """``ScatterND(x, indices, updates)`` with x of shape [2, 3] and indices of [5, 1] becomes
    ``Reshape(Scatter(Reshape(x, [-1]), places, Reshape(updates, [-1])), [2, 3])``.
    """
    op = context.op
    data, indices, updates = (context.input(index) for index in range(3))
    if not _ranks_are_known(context):
        _scatter_slices_of_any_rank(context)
        return
    dims, counts = need_dims(context, data, _PLACES), need_dims(context, indices, _PLACES)
    place, depth = _flat_places(context, dims)
    if 0 in dims or 0 in counts:
        context.replace("Identity", [data], keep=())
        return
    size: Number = 1
    for axis in range(depth, len(dims)):
        size = times(context, size, size_of(context, data, axis))
    # One row for each index, with the places of all its elements.
    rows = op.Reshape(place, context.array([-1, 1], "rows"))
    if size != 1:
        first = op.Mul(rows, as_name(context, size))
        rows = op.Add(first, arange(context, size))
    at, values, changed = (flat(context, name) for name in (rows, updates, data))
    result = op.Scatter(changed, at, values, axis=0)
    known = static(dims)
    shape = op.Shape(data) if known is None else context.array(known, "shape")
    context.replace("Reshape", [result, shape], keep=())
