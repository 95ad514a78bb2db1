"""Gather, GatherND and ScatterND of constant indices in Slices and Concats.

That is for runtimes without these operators, or that take some indices wrong.

Indices are a *grid* where each of their columns follows one dimension of theirs alone, as those of
``x[:, 2:5] = y`` do. Each indexed dimension is then cut by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from onnxreduce_cli.emit.axes import squeezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import Array
from onnxreduce_cli.emit.numbers import LazyTensor
from onnxreduce_cli.emit.shapes import OPSET, reshaped
from onnxreduce_cli.emit.sizes import need_dims, sliced, static_dims
from onnxreduce_cli.model.graph.values import Dims
from onnxreduce_cli.steps.registry import instead

#: Into how many pieces data are cut at most.
_MOST_PIECES = 60

_COUNTED = "indices are counted along its dimensions"
_FIX = "fix it: --dim NAME=SIZE"

#: By reduction, what computes it of a slice and of the updates; none where these take its place.
_REDUCTIONS = {"none": "", "add": "Add", "mul": "Mul"}


@instead("GatherND", {"any"}, "written as Slices and Concat", last=True)
def gather_known(context: Context) -> None:
    """``GatherND(x, [[0, 1], [0, 2], [1, 0]])`` with x of shape [2, 3] becomes
    ``Squeeze<axes=[0]>(Concat<axis=1>(a, b))`` with ``a = Slice(x, [0, 1], [1, 3])`` and
    ``b = Slice(x, [1, 0], [2, 1])``. If the indices are a grid, each dimension becomes a Concat.
    """
    context = context.at(OPSET)
    data, dims = context.input(0), need_dims(context, context.input(0), _COUNTED)
    indices = _with_batches(_known_indices(context), context.value("batch_dims", 0))
    indices, sizes = _from_front(indices, dims)
    grid = _grid(indices)
    if grid is not None:
        cut: str = data
        for axis, places in enumerate(grid):
            if not _is_whole(places, sizes[axis]):
                cut = _taken(context, cut, axis, places)
        context.replace("Identity", [cut], keep=())
        return
    depth = indices.shape[-1]
    rows = indices.reshape(-1, depth)
    # A piece ends where the next index is not one further along the last indexed dimension.
    breaks = np.diff(rows, axis=0) != [*[0] * (depth - 1), 1]
    starts = [0, *np.flatnonzero(breaks.any(axis=1)) + 1]
    _check_pieces(len(starts))
    axes = context.array(list(range(depth)), "axes")
    parts = []
    for start, end in pairwise([*starts, len(rows)]):
        bounds = [rows[start], rows[end - 1] + 1]
        first, last = (context.array(bound.tolist(), "bound") for bound in bounds)
        parts.append(context.op.Slice(data, first, last, axes))
    joined = context.op.Concat(*parts, axis=depth - 1) if len(parts) > 1 else parts[0]
    outer = indices.shape[:-1]
    listed = squeezed(context, joined, list(range(depth - bool(outer))))
    if len(outer) > 1:
        rest = static_dims(dims[depth:])
        if rest is None:
            raise Blocked("not all sizes of its data are known", _FIX)
        shape = (*outer, *rest)
        listed = reshaped(context, listed, context.array([*shape], "shape"), shape)
    context.replace("Identity", [listed], keep=())


@instead("Gather", {"any"}, "written as Slices and Concat", last=True)
def gather_places(context: Context) -> None:
    """``Gather<axis=1>(x, [2, 0])`` becomes
    ``Concat<axis=1>(Slice(x, [2], [3], [1]), Slice(x, [0], [1], [1]))``.
    """
    context = context.at(OPSET)
    data, dims = context.input(0), need_dims(context, context.input(0), _COUNTED)
    axis = context.value("axis", 0) % len(dims)
    indices = _known_indices(context)
    positive, (size,) = _from_front(indices[..., None], dims[axis : axis + 1])
    places = positive.reshape(-1).tolist()
    cut = data if _is_whole(places, size) else _taken(context, data, axis, places)
    if indices.ndim == 0:
        cut = squeezed(context, cut, [axis])
    if indices.ndim > 1:
        rest = static_dims((*dims[:axis], *dims[axis + 1 :]))
        if rest is None:
            raise Blocked("not all sizes of its data are known", _FIX)
        cut = _shaped(context, cut, (*rest[:axis], *indices.shape, *rest[axis:]))
    context.replace("Identity", [cut], keep=())


@instead("ScatterND", {"any"}, "written as Slices and Concat", last=True)
def scatter_known(context: Context) -> None:
    """``ScatterND(x, [[1], [2]], u)`` with x of shape [5, 4] becomes
    ``Concat<axis=0>(Slice(x, [0], [1]), u, Slice(x, [3], [5]))``.

    With ``reduction="add"`` it is ``Add(Slice(x, [1], [3]), u)`` in place of u.
    """
    reduction = context.value("reduction", "none")
    if reduction not in _REDUCTIONS:
        raise Blocked(f"its reduction {reduction!r} is not written out")
    context = context.at(OPSET)
    data = context.input(0)
    updates: str = context.input(2)
    dims = need_dims(context, data, _COUNTED)
    indices, sizes = _from_front(_known_indices(context), dims)
    depth = indices.shape[-1]
    rows = indices.reshape(-1, depth)
    if len(np.unique(rows, axis=0)) < len(rows):
        raise Blocked("several of its indices point to one place")
    writer = _Writer(context, _REDUCTIONS[reduction])
    grid = _grid(indices)
    if grid is not None and _can_nest(grid, sizes):
        context.replace(
            "Identity", [writer.nested(LazyTensor(lambda: data), updates, grid, sizes, 0)], keep=()
        )
        return
    rest = static_dims(dims[depth:])
    if rest is None and (depth > 1 or indices.ndim != 2):
        raise Blocked("not all sizes of its data are known", _FIX)
    if indices.ndim != 2:
        updates = _shaped(context, updates, (len(rows), *(rest or ())))
    size = math.prod(sizes)

    def flat() -> str:
        return data if depth == 1 else _shaped(context, data, (size, *(rest or ())))

    places = [int(place) for place in np.ravel_multi_index([*rows.T], sizes).reshape(-1)]
    changed = writer.along(LazyTensor(flat), updates, 0, places, size)
    if depth > 1:
        changed = _shaped(context, changed, (*sizes, *(rest or ())))
    context.replace("Identity", [changed], keep=())


class _Writer:
    """What puts updates in the place of parts of data, or combines them by an operator."""

    def __init__(self, context: Context, op_type: str) -> None:
        self._context = context
        self._op_type = op_type

    def nested(
        self,
        data: LazyTensor,
        updates: str,
        grid: Sequence[list[int]],
        sizes: Sequence[int],
        axis: int,
    ) -> str:
        """Return data with the updates at a grid of places; nothing is cut before `axis`."""
        cut = [at for at in range(axis, len(grid)) if not _is_whole(grid[at], sizes[at])]
        if not cut:
            return self._combined(data, updates)
        axis, places, size = cut[0], grid[cut[0]], sizes[cut[0]]
        if len(cut) == 1:
            return self.along(data, updates, axis, places, size)
        start, end = places[0], places[-1] + 1
        inner = self.nested(self._part(data, start, end, axis), updates, grid, sizes, axis + 1)
        before = [self._part(data, 0, start, axis).name] if start else []
        behind = [self._part(data, end, size, axis).name] if end < size else []
        return self._joined([*before, inner, *behind], axis)

    def along(self, data: LazyTensor, updates: str, axis: int, places: list[int], size: int) -> str:
        """Return data with the updates at places along an axis, which has a size."""
        # By each place in order the update that is put there: of several the last.
        order, last = np.unique(places[::-1], return_index=True)
        source = len(places) - 1 - last
        # A piece ends where the next place, or its update, is not one further.
        breaks = (np.diff(order) != 1) | (np.diff(source) != 1)
        pieces: list[tuple[int, int, int | None]] = []
        at = 0
        for one, other in pairwise([0, *np.flatnonzero(breaks) + 1, len(order)]):
            start, end = int(order[one]), int(order[other - 1]) + 1
            pieces += [(at, start, None)] if at < start else []
            pieces.append((start, end, int(source[one])))
            at = end
        pieces += [(at, size, None)] if at < size else []
        _check_pieces(len(pieces))
        parts = []
        for start, end, first in pieces:
            own = data if end - start == size else self._part(data, start, end, axis)
            if first is None:
                parts.append(own.name)
                continue
            given = updates
            if end - start < len(places):
                given = sliced(self._context, updates, first, first + end - start, axis)
            parts.append(self._combined(own, given))
        return self._joined(parts, axis)

    def _part(self, data: LazyTensor, start: int, end: int, axis: int) -> LazyTensor:
        return LazyTensor(lambda: sliced(self._context, data.name, start, end, axis))

    def _combined(self, data: LazyTensor, updates: str) -> str:
        if not self._op_type:
            return updates
        return self._context.op.emit(self._op_type, data.name, updates)

    def _joined(self, parts: Sequence[str], axis: int) -> str:
        return self._context.op.Concat(*parts, axis=axis) if len(parts) > 1 else parts[0]


def _known_indices(context: Context) -> Array:
    """Return the node's indices.

    Raises:
        Blocked: they are not known, or there is none.
    """
    indices = context.constant(context.input(1))
    if indices is None:
        raise Blocked("its indices are only known at run time")
    if not indices.size:
        raise Blocked("it has no indices")
    return indices


def _with_batches(indices: Array, batch_dims: int) -> Array:
    """Return indices that name the batch dimensions too."""
    batches = np.indices(indices.shape[:-1])[:batch_dims]
    return np.concatenate([*batches[..., None], indices], -1)


def _from_front(indices: Array, dims: Dims) -> tuple[Array, tuple[int, ...]]:
    """Return indices with none negative, and the sizes of the dimensions that they index.

    Raises:
        Blocked: a dimension that they index is not known, or they are beyond it.
    """
    depth = indices.shape[-1]
    sizes = static_dims(dims[:depth])
    if sizes is None:
        raise Blocked("not all sizes of its data that are indexed are known", _FIX)
    positive = np.where(indices < 0, indices + np.array(sizes), indices)
    if len(sizes) < depth or (positive < 0).any() or (positive >= np.array(sizes)).any():
        raise Blocked(
            "its indices are beyond its data", "mend the model: give it indices within its data"
        )
    return positive, sizes


def _grid(indices: Array) -> list[list[int]] | None:
    """Return the places along each indexed dimension if the indices are a grid of them."""
    depth = indices.shape[-1]
    if indices.ndim != depth + 1:
        return None
    found = []
    for axis in range(depth):
        column = indices[..., axis]
        first = column[tuple(slice(None) if at == axis else slice(1) for at in range(depth))]
        if not np.array_equal(column, np.broadcast_to(first, column.shape)):
            return None
        found.append(first.reshape(-1).tolist())
    return found


def _can_nest(grid: Sequence[list[int]], sizes: Sequence[int]) -> bool:
    """Return whether all cut dimensions but the last are cut once, before and behind the places."""
    cut = [places for places, size in zip(grid, sizes, strict=True) if not _is_whole(places, size)]
    return all(_is_row(places) for places in cut[:-1])


def _is_whole(places: list[int], size: int) -> bool:
    return len(places) == size and places[0] == 0 and _is_row(places)


def _is_row(places: list[int]) -> bool:
    """Return whether each place is one further than that before it."""
    return places == list(range(places[0], places[0] + len(places)))


def _taken(context: Context, data: str, axis: int, places: list[int]) -> str:
    """Return the elements of data at places along an axis."""
    starts = [0]
    for index in range(1, len(places)):
        step = places[index] - places[index - 1]
        # Of a piece of two or more elements the step is that between them.
        usual = places[starts[-1] + 1] - places[starts[-1]] if index > starts[-1] + 1 else step
        if step < 1 or step != usual:
            starts.append(index)
    _check_pieces(len(starts))
    parts = []
    along = context.array([axis], "axis")
    for first, end in pairwise([*starts, len(places)]):
        step = places[first + 1] - places[first] if end - first > 1 else 1
        bounds = ([places[first]], [places[end - 1] + 1])
        ends = [context.array(bound, "bound") for bound in bounds]
        steps = [context.array([step], "step")] if step != 1 else []
        parts.append(context.op.Slice(data, *ends, along, *steps))
    return context.op.Concat(*parts, axis=axis) if len(parts) > 1 else parts[0]


def _check_pieces(count: int) -> None:
    if count > _MOST_PIECES:
        raise Blocked(
            f"its indices cut the data into {count:,} pieces, and no more than {_MOST_PIECES} are "
            "written out"
        )


def _shaped(context: Context, name: str, dims: tuple[int, ...]) -> str:
    """Return a tensor in another shape, which may have zeros."""
    return reshaped(context, name, context.array([*dims], "shape"), dims)
