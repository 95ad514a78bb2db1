"""Unique below opset 11, with which it was introduced."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import reduced, squeezed
from onnxreduce_cli.emit.builder import Operators, Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES, INTEGERS
from onnxreduce_cli.emit.loops import LoopBody, LoopValue, loop
from onnxreduce_cli.emit.numbers import as_name
from onnxreduce_cli.emit.refusals import NO_COUNTING, refuse
from onnxreduce_cli.emit.shapes import OPSET, around
from onnxreduce_cli.emit.sizes import arange, dims_of, size_of
from onnxreduce_cli.model.values import dtype_name, tensor_type
from onnxreduce_cli.steps.registry import introduced

_ORDERED = INTEGERS | HALVES | {TensorProto.BOOL, TensorProto.FLOAT, TensorProto.DOUBLE}


@introduced(
    "Unique",
    11,
    "sorted by TopK, and taken where it differs from what is before",
    blocks=f"it is of strings or complex numbers, or {NO_COUNTING}",
)
def unique(context: Context) -> None:
    """``Unique(x)`` becomes ``Gather(x, Gather(order, starts))`` with ``order = TopK<largest=0>(x,
    Size(x))`` and ``starts`` the indices in it at which a new element begins.

    Slices along an axis are sorted by one column after the other, from the last, in a Loop. NaN is
    one element, the last; slices with NaN all differ.
    """
    elem_type = context.need_elem_type(context.input(0), "it is ordered")
    if elem_type not in _ORDERED:
        raise refuse(context, f"orders elements of {dtype_name(elem_type)}")
    context = context.at(OPSET)
    op = context.op
    data, axis = context.input(0), _axis(context)
    items = _items(context)
    count = size_of(context, items, 0)
    numbers = arange(context, count)
    keys = _keys(context, items, elem_type)
    names = [*context.node.output, "", "", ""][:4]
    order = _order(context, keys, numbers, as_name(context, count), axis)
    differ = _differ(context, [_gather(context, key, order) for key in keys], axis)
    # An empty input has no first element.
    head = _part(context, numbers, 0, 1)
    head = op.Add(head, context.array([1], "one"))
    is_new = op.Concat(head, differ, axis=0)
    starts = squeezed(context, op.NonZero(is_new), [0])
    first: str = _gather(context, order, starts)
    inverse = counts = ""
    if names[2]:
        inverse = _scattered(context, numbers, order, _numbered(context, is_new))
    if names[3]:
        following = op.Concat(_part(context, starts, 1, None), as_name(context, count), axis=0)
        counts = op.Sub(following, starts)
    if not context.value("sorted", 1):
        nothing = op.Sub(numbers, numbers)
        ones = op.Add(_gather(context, nothing, first), context.array([1], "one"))
        is_first = _scattered(context, nothing, first, ones)
        old, first = first, squeezed(context, op.NonZero(is_first), [0])
        if inverse:
            inverse = _gather(context, _numbered(context, is_first), _gather(context, old, inverse))
        if counts:
            counts = _gather(context, _scattered(context, nothing, old, counts), first)
    for name, output in ((first, names[1]), (inverse, names[2]), (counts, names[3])):
        if output:
            op.Identity(name, outputs=[output])
    if names[0]:
        inputs = [items if axis is None else data, first]
        context.replace("Gather", inputs, names[:1], keep=(), axis=axis or 0)


def _axis(context: Context) -> int | None:
    """Return the node's axis, if any: counted from the front where the rank is known."""
    axis: int | None = context.value("axis")
    rank = context.input(0).rank
    return axis if axis is None or rank is None else axis % rank


def _items(context: Context) -> Value:
    """Return the elements, of shape [count], or the slices along the axis, of [count, size]."""
    op = context.op
    data, axis = context.input(0), _axis(context)
    if axis is None:
        return op.Reshape(data, context.array([-1], "flat"))
    rank = context.specialised_rank(data)
    if rank is None:
        view = around(context, data, axis).name
        data = op.Transpose(view, perm=[1, 0, 2])
        return op.Flatten(data, axis=1)
    if axis:
        perm = [axis, *(other for other in range(rank) if other != axis)]
        data = op.Transpose(data, perm=perm)
    return op.Flatten(data, axis=1)


def _keys(context: Context, items: str, elem_type: int) -> list[str]:
    """Return the sort keys of the items, in their shape, the least important first.

    Their dtypes are such that TopK and comparisons take them.
    """
    op = context.op
    if elem_type in INTEGERS:
        return [items]
    if elem_type == TensorProto.BOOL:
        return [cast(context, items, TensorProto.INT32)]
    if elem_type in HALVES:
        elem_type = TensorProto.FLOAT
        items = cast(context, items, elem_type)
    nan = op.IsNaN(items)
    zero = context.scalar(0, "zero", elem_type)
    numbers = op.Where(nan, zero, items)
    return [numbers, cast(context, nan, TensorProto.FLOAT)]


def _order(context: Context, keys: list[str], numbers: str, count: str, axis: int | None) -> str:
    """Return the indices of the items in ascending order, int64 of shape [count]; it is stable."""
    op = context.op
    if axis is None:
        return _sorted(op, keys, numbers, count)
    columns = [op.Transpose(key, perm=[1, 0]) for key in keys]
    width = size_of(context, keys[0], 1)
    last = op.Sub(as_name(context, width), context.array([1], "one"))
    flat = context.array([-1], "flat")

    def write(body: LoopBody) -> tuple[list[str], list[LoopValue]]:
        (order,) = body.values
        column = body.Sub(last, body.round)
        current = [body.Gather(name, column, axis=0) for name in columns]
        current = [body.Reshape(name, flat) for name in current]
        return [_sorted(body, current, order, count)], []

    dims = dims_of(context, numbers) or (None,)
    carried = LoopValue(numbers, TensorProto.INT64, dims)
    inputs, body = loop(
        context, as_name(context, width), [carried], write, "over the columns that it sorts by"
    )
    like = tensor_type(TensorProto.INT64, dims)
    return op.Loop(*inputs, like=like, body=body)


def _sorted(op: Operators, keys: Sequence[str], order: str, count: str) -> str:
    """Return `order`, int64 of shape [count], sorted stably by keys of that shape."""
    for key in keys:
        now = op.Gather(key, order, axis=0)
        _, indices = op.TopK(now, count, outputs=2, axis=0, largest=0)
        order = op.Gather(order, indices, axis=0)
    return order


def _differ(context: Context, keys: list[str], axis: int | None) -> Value:
    """Return 1 for each item that differs from the one before, else 0: int64, of [count - 1]."""
    op = context.op
    parts = []
    for key in keys:
        before, after = _part(context, key, 0, -1), _part(context, key, 1, None)
        parts += [op.emit(op_type, before, after) for op_type in ("Less", "Greater")]
    if axis is not None and len(keys) > 1:
        parts.append(cast(context, _part(context, keys[1], 1, None), TensorProto.BOOL))
    differ = parts[0]
    for part in parts[1:]:
        differ = op.Or(differ, part)
    number = cast(context, differ, TensorProto.INT64)
    if axis is None:
        return number
    total = reduced(context, "ReduceSum", number, [1], keep=False)
    return cast(context, cast(context, total, TensorProto.BOOL), TensorProto.INT64)


def _part(context: Context, name: str, start: int, end: int | None) -> Value:
    """Return the elements along axis 0 from `start` to before `end`, by default through the last.

    The tensor is of any dtype, with at least one dimension, and keeps its rank.
    """
    bounds = [context.array([n], "bound") for n in (start, 2**63 - 1 if end is None else end)]
    return context.op.Slice(name, *bounds, context.array([0], "axis"))


def _gather(context: Context, name: str, indices: str) -> Value:
    """Return the elements of a tensor of any dtype at int64 indices of its axis 0."""
    return context.op.Gather(name, indices, axis=0)


def _scattered(context: Context, name: str, indices: str, values: str) -> Value:
    """Return an int64 tensor of [n] with `values` in the places `indices`, both int64 of [k]."""
    return context.op.ScatterElements(name, indices, values, axis=0)


def _numbered(context: Context, flags: str) -> Value:
    """Return ``CumSum(flags) - 1``: the number, from 0 on, of each element that has a flag.

    Flags and results are int64 of shape [count].
    """
    op = context.op
    axis = context.array(np.array(0, np.int64), "axis")
    total = op.CumSum(flags, axis)
    return op.Sub(total, context.array([1], "one"))
