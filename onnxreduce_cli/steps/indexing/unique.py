"""Unique: introduced with 11. Without an axis, and without its inverse indices."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto

from onnxreduce_cli.emit.axes import squeezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES, INTEGERS
from onnxreduce_cli.emit.numbers import as_name
from onnxreduce_cli.emit.refusals import NO_COUNTING, refuse
from onnxreduce_cli.emit.shapes import OPSET
from onnxreduce_cli.emit.sizes import arange, size_of
from onnxreduce_cli.model.values import dtype_name
from onnxreduce_cli.steps.registry import introduced

_ORDERED = INTEGERS | HALVES | {TensorProto.BOOL, TensorProto.FLOAT, TensorProto.DOUBLE}


@introduced(
    "Unique",
    11,
    "sorted by TopK, and taken where it differs from what is before",
    blocks=(
        "it is of strings or complex numbers, or has an axis, or its inverse indices are read, or "
        f"{NO_COUNTING}"
    ),
)
def unique(context: Context) -> None:
    """``Unique(x)`` becomes ``Gather(x, Gather(order, starts))`` with ``order = TopK<largest=0>(x,
    Size(x))`` and ``starts`` the indices in it at which a new element begins.

    NaN is one element, the last.
    """
    elem_type = context.need_elem_type(context.input(0), "it is ordered")
    if elem_type not in _ORDERED:
        raise refuse(context, f"orders elements of {dtype_name(elem_type)}")
    names = [*context.node.output, "", "", ""][:4]
    if context.value("axis") is not None or names[2]:
        what = "numbers the elements of its output inverse_indices" if names[2] else "sorts slices"
        raise Blocked(f"before opset 11 only a Loop or a Scan {what}", "choose opset 11 or later")
    context = context.at(OPSET)
    op = context.op
    items = op.Reshape(context.input(0), context.array([-1], "flat"))
    count = size_of(context, items, 0)
    numbers = arange(context, count)
    keys = _keys(context, items, elem_type)
    order = _sorted(context, keys, numbers, as_name(context, count))
    differ = _differ(context, [_gather(context, key, order) for key in keys])
    # An empty input has no first element.
    head = _rows(context, numbers, 0, 1)
    head = op.Add(head, context.array([1], "one"))
    is_new = op.Concat(head, differ, axis=0)
    starts = squeezed(context, op.NonZero(is_new), [0])
    first: str = _gather(context, order, starts)
    counts = ""
    if names[3]:
        following = op.Concat(_rows(context, starts, 1, None), as_name(context, count), axis=0)
        counts = op.Sub(following, starts)
    if not context.value("sorted", 1):
        nothing = op.Sub(numbers, numbers)
        ones = op.Add(_gather(context, nothing, first), context.array([1], "one"))
        is_first = _scattered(context, nothing, first, ones)
        old, first = first, squeezed(context, op.NonZero(is_first), [0])
        if counts:
            counts = _gather(context, _scattered(context, nothing, old, counts), first)
    for name, output in ((first, names[1]), (counts, names[3])):
        if output:
            op.Identity(name, outputs=[output])
    if names[0]:
        context.replace("Gather", [items, first], names[:1], keep=(), axis=0)


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


def _sorted(context: Context, keys: Sequence[str], order: str, count: str) -> str:
    """Return `order`, int64 of shape [count], sorted stably by keys of that shape."""
    op = context.op
    for key in keys:
        now = op.Gather(key, order, axis=0)
        _, indices = op.TopK(now, count, outputs=2, axis=0, largest=0)
        order = op.Gather(order, indices, axis=0)
    return order


def _differ(context: Context, keys: list[str]) -> Value:
    """Return 1 for each item that differs from the one before, else 0: int64, of [count - 1]."""
    op = context.op
    parts = []
    for key in keys:
        before, after = _rows(context, key, 0, -1), _rows(context, key, 1, None)
        parts += [op.emit(op_type, before, after) for op_type in ("Less", "Greater")]
    differ = parts[0]
    for part in parts[1:]:
        differ = op.Or(differ, part)
    return cast(context, differ, TensorProto.INT64)


def _rows(context: Context, name: str, start: int, end: int | None) -> Value:
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
