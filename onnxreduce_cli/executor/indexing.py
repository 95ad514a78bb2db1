"""Operators that select, write or sort elements by index.

Source: the definitions named at each kernel; negative indices and axes count from the back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxreduce_cli.executor.axes import many_axes, one_axis, vector
from onnxreduce_cli.executor.dtypes import FLOAT32, INT64, Array, is_float
from onnxreduce_cli.executor.errors import Invalid
from onnxreduce_cli.executor.registry import Call, kernel


def _sliced(
    data: Array, starts: list[int], ends: list[int], axes: tuple[int, ...], steps: list[int]
) -> Array:
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise Invalid("starts, ends, axes and steps differ in length")
    picks = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        dim = data.shape[axis]
        if step == 0:
            raise Invalid("a step is 0")
        first = start + dim if start < 0 else start
        stop = end + dim if end < 0 else end
        if step > 0:
            picks[axis] = slice(min(max(first, 0), dim), min(max(stop, 0), dim), step)
        else:
            first, stop = min(max(first, 0), dim - 1), min(max(stop, -1), dim - 1)
            picks[axis] = slice(first, None if stop < 0 else stop, step) if dim else slice(0, 0)
    return data[tuple(picks)]


@kernel("Slice", 1)
def slice_1(call: Call, data: Array) -> Array:
    """Slice by the attributes `starts`, `ends` and `axes`."""
    starts, ends = list(call.attrs["starts"]), list(call.attrs["ends"])
    axes = many_axes(call.attrs.get("axes", range(len(starts))), data.ndim)
    return _sliced(data, starts, ends, axes, [1] * len(starts))


@kernel("Slice", 10, 11, 13)
def slice_10(
    call: Call,
    data: Array,
    starts: Array,
    ends: Array,
    axes: Array | None = None,
    steps: Array | None = None,
) -> Array:
    """Slice by inputs, with steps that may be negative."""
    first = vector("starts", starts)
    along = range(len(first)) if axes is None else vector("axes", axes)
    return _sliced(
        data,
        first,
        vector("ends", ends),
        many_axes(along, data.ndim),
        [1] * len(first) if steps is None else vector("steps", steps),
    )


def _indices(indices: Array, size: int) -> Array:
    """Return indices as non-negative integers; raise Invalid if one is out of range."""
    wide = indices.astype(INT64)
    if wide.size and (wide.min() < -size or wide.max() >= size):
        raise Invalid(f"an index is out of range for {size} elements")
    return np.where(wide < 0, wide + size, wide)


@kernel("Gather", 1, 11, 13)
def gather(call: Call, data: Array, indices: Array) -> Array:
    """Take slices along `axis`.

    Indices may be negative before 11 too: exporters wrote such, and ONNX Runtime takes them.
    """
    axis = one_axis(call.attrs["axis"], data.ndim)
    return np.take(data, _indices(indices, data.shape[axis]), axis=axis)


@kernel("GatherElements", 11, 13)
def gather_elements(call: Call, data: Array, indices: Array) -> Array:
    """Take single elements along `axis`; the other coordinates are those of the index."""
    if data.ndim != indices.ndim:
        raise Invalid(f"ranks {data.ndim} and {indices.ndim} differ")
    axis = one_axis(call.attrs["axis"], data.ndim)
    return data[_element_coordinates(data, indices, axis)]


def _element_coordinates(data: Array, indices: Array, axis: int) -> tuple[Array, ...]:
    places: list[Array] = list(np.indices(indices.shape, sparse=True))
    places[axis] = _indices(indices, data.shape[axis])
    return tuple(places)


@kernel("GatherND", 11, 12, 13)
def gather_nd(call: Call, data: Array, indices: Array) -> Array:
    """Take slices by tuples of indices; from 12 after `batch_dims` shared dimensions."""
    batch = int(call.attrs.get("batch_dims", 0))
    depth = indices.shape[-1]
    if data.shape[:batch] != indices.shape[:batch] or not (
        batch < indices.ndim and batch + depth <= data.ndim
    ):
        raise Invalid(f"indices of shape {indices.shape} do not fit data of {data.shape}")
    grid = np.indices((*indices.shape[:batch], *(1,) * (indices.ndim - 1 - batch)), sparse=True)
    picks: list[Any] = [grid[i] for i in range(batch)]
    picks += [_indices(indices[..., i], data.shape[batch + i]) for i in range(depth)]
    if not picks:
        return np.broadcast_to(data, indices.shape[:-1] + data.shape).copy()
    return data[tuple(np.broadcast_arrays(*picks))]


def _combine(target: Array, places: tuple[Array, ...], updates: Array, reduction: str) -> None:
    if reduction == "none":
        target[places] = updates
    elif reduction == "add":
        np.add.at(target, places, updates)
    elif reduction == "mul":
        np.multiply.at(target, places, updates)
    elif reduction == "max":
        np.maximum.at(target, places, updates)
    elif reduction == "min":
        np.minimum.at(target, places, updates)
    else:
        raise Invalid(f"reduction {reduction!r} is unknown")


def _scattered(data: Array, places: tuple[Array, ...], updates: Array, reduction: str) -> Array:
    if is_float(data.dtype) and reduction != "none":
        wide = data.astype(np.float64)
        _combine(wide, places, updates.astype(np.float64), reduction)
        return wide.astype(data.dtype)
    target = data.copy()
    _combine(target, places, updates, reduction)
    return target


@kernel("Scatter", 9)
@kernel("ScatterElements", 11, 13, 16, 18)
def scatter_elements(call: Call, data: Array, indices: Array, updates: Array) -> Array:
    """Write single elements along `axis`; from 16 on combined by `reduction`."""
    if data.ndim != indices.ndim or indices.shape != updates.shape:
        raise Invalid(
            f"shapes {data.shape}, {indices.shape} and {updates.shape} do not fit together"
        )
    axis = one_axis(call.attrs["axis"], data.ndim)
    places = np.broadcast_arrays(*_element_coordinates(data, indices, axis))
    return _scattered(data, tuple(places), updates, call.attrs.get("reduction", "none"))


@kernel("ScatterND", 11, 13, 16, 18)
def scatter_nd(call: Call, data: Array, indices: Array, updates: Array) -> Array:
    """Write slices at tuples of indices; from 16 on combined by `reduction`."""
    depth = indices.shape[-1]
    if updates.shape != indices.shape[:-1] + data.shape[depth:]:
        raise Invalid(f"updates of shape {updates.shape} do not fit indices {indices.shape}")
    places = tuple(_indices(indices[..., i], data.shape[i]) for i in range(depth))
    if not places:
        raise Invalid("indices name no dimension")
    return _scattered(data, places, updates, call.attrs.get("reduction", "none"))


def _top_k(data: Array, k: int, axis: int, *, largest: bool) -> tuple[Array, Array]:
    if not 0 <= k <= data.shape[axis]:
        raise Invalid(f"k is {k}, the axis has {data.shape[axis]} elements")
    # A stable ascending sort of the reversed data, reversed again, is a descending sort that
    # has the lower index first among equal elements.
    keys = data.astype(FLOAT32) if data.dtype.kind == "V" else data
    if largest:
        order = np.flip(np.argsort(np.flip(keys, axis), axis=axis, kind="stable"), axis)
        order = data.shape[axis] - 1 - order
    else:
        order = np.argsort(keys, axis=axis, kind="stable")
    picks = np.take(order, range(k), axis=axis).astype(INT64)
    return np.take_along_axis(data, picks, axis=axis), picks


def _one_k(k: Array) -> int:
    if k.size != 1:
        raise Invalid(f"K has shape {k.shape}, it must hold one value")
    return int(k.reshape(()))


@kernel("TopK", 1)
def top_k_1(call: Call, data: Array) -> tuple[Array, Array]:
    """Return the `k` largest along `axis`, in order, and their indices."""
    axis = one_axis(call.attrs["axis"], data.ndim)
    return _top_k(data, call.attrs["k"], axis, largest=True)


@kernel("TopK", 10, 11, 24)
def top_k_10(call: Call, data: Array, k: Array) -> tuple[Array, Array]:
    """Return the K largest (from 11: or smallest) along `axis`; of equal ones the first.

    Results are sorted even with `sorted` = 0, which allows any order.
    """
    axis = one_axis(call.attrs["axis"], data.ndim)
    return _top_k(data, _one_k(k), axis, largest=bool(call.attrs.get("largest", 1)))


def _arg_extreme(call: Call, data: Array, function: Any) -> Array:
    axis = one_axis(call.attrs["axis"], data.ndim)
    if not data.shape[axis]:
        raise Invalid(f"axis {axis} has no elements")
    keys = data if data.dtype.kind in "iuf" else data.astype(FLOAT32)
    if call.attrs.get("select_last_index", 0):
        found = data.shape[axis] - 1 - function(np.flip(keys, axis), axis=axis)
    else:
        found = function(keys, axis=axis)
    result: Array = np.asarray(found).astype(INT64)
    return np.expand_dims(result, axis) if call.attrs["keepdims"] else result


@kernel("ArgMax", 1, 11, 12, 13)
def arg_max(call: Call, data: Array) -> Array:
    """Return the index of the first (12: or last) maximum along `axis`."""
    return _arg_extreme(call, data, np.argmax)


@kernel("ArgMin", 1, 11, 12, 13)
def arg_min(call: Call, data: Array) -> Array:
    """Return the index of the first (12: or last) minimum along `axis`."""
    return _arg_extreme(call, data, np.argmin)


@kernel("NonZero", 9, 13)
def non_zero(call: Call, data: Array) -> Array:
    """Return the coordinates of the elements that are not zero, with a row for each axis."""
    if not data.ndim:
        return np.zeros((0, int(bool(data))), dtype=INT64)
    return np.array(np.nonzero(data), dtype=INT64).reshape(data.ndim, -1)


@kernel("Compress", 9, 11, 28)
def compress(call: Call, data: Array, condition: Array) -> Array:
    """Keep the slices along `axis` (or the elements, flattened) where `condition` is true."""
    axis = call.attrs.get("axis")
    if axis is None:
        return np.compress(condition, data.reshape(-1))
    return np.compress(condition, data, axis=one_axis(axis, data.ndim))


@kernel("OneHot", 9, 11, 28)
def one_hot(call: Call, indices: Array, depth: Array, values: Array) -> Array:
    """Return `values[1]` at the index along a new `axis` of size `depth`, `values[0]` elsewhere.

    Indices outside [-depth, depth-1] give `values[0]` only.
    """
    if depth.size != 1 or values.shape != (2,):
        raise Invalid("depth must hold one value and values two")
    size = int(depth.reshape(()))
    axis = one_axis(call.attrs["axis"], indices.ndim + 1)
    wide = np.asarray(indices.astype(INT64))
    lowest = 0 if call.since < 11 else -size
    inside = (wide >= lowest) & (wide < size)
    places = np.where(inside, np.where(wide < 0, wide + size, wide), size)
    line = np.arange(size).reshape((size,) + (1,) * (indices.ndim - axis))
    hit = np.expand_dims(places, axis) == line
    return np.where(hit, values[1], values[0]).astype(values.dtype)


@kernel("ReverseSequence", 10, 28)
def reverse_sequence(call: Call, data: Array, lengths: Array) -> Array:
    """Reverse the first `lengths[i]` elements along `time_axis` of each batch entry."""
    batch, time = call.attrs["batch_axis"], call.attrs["time_axis"]
    if {batch, time} != {0, 1} or data.ndim < 2:
        raise Invalid("batch_axis and time_axis must be 0 and 1, of at least two dimensions")
    counts = vector("sequence_lens", lengths)
    if len(counts) != data.shape[batch]:
        raise Invalid(f"{len(counts)} lengths are given for {data.shape[batch]} sequences")
    moved = np.moveaxis(data, (batch, time), (0, 1))
    result = moved.copy()
    for index, count in enumerate(counts):
        if not 0 <= count <= moved.shape[1]:
            raise Invalid(f"a length of {count} is out of range")
        result[index, :count] = moved[index, :count][::-1]
    return np.moveaxis(result, (0, 1), (batch, time))


@kernel("Unique", 11, 28)
def unique(call: Call, x: Array) -> tuple[Array, ...]:
    """Return the distinct elements (or slices along `axis`), first indices, inverse and counts.

    They are sorted or, with `sorted` = 0, in the order of their first appearance.
    """
    axis = call.attrs.get("axis")
    if axis is not None:
        axis = one_axis(axis, x.ndim)
    values, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not call.attrs["sorted"]:
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        values = np.take(values, order, axis=0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], rank[inverse]
    return values, first.astype(INT64), inverse.astype(INT64), counts.astype(INT64)
