"""TopK: 10 made K an input, 11 added `largest` and `sorted` and allowed the integers."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.casts import INTEGERS, cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import (
    END,
    NO_COUNTING,
    arange,
    as_name,
    constant,
    part,
    reduced,
    size_of,
    unsqueezed,
)
from onnxreduce_cli.emit.reversed_dims import mirrored_axes, replace_mirrored
from onnxreduce_cli.emit.shapes import OPSET, around, reshaped
from onnxreduce_cli.steps.registry import down, up


@up("TopK", 10, "k: attribute to input")
def number_to_input(context: Context) -> None:
    """``TopK<k=3>(x)`` becomes ``TopK(x, [3])``."""
    number = context.array([context.value("k")], "k")
    context.replace(inputs=[context.input(0), number], drop=("k",))


@down(
    "TopK",
    10,
    "K: input to attribute; one only known at run time: the first K of all, in order",
    blocks=NO_COUNTING,
)
def number_to_attribute(context: Context) -> None:
    """``TopK(x, [3])`` becomes ``TopK<k=3>(x)``.

    With a K that is only known at run time and n elements along the axis it becomes
    ``Gather(TopK<k=n>(x), [0, ..., K - 1])``. Where n is not known either, what comes before each
    element is counted.
    """
    op = context.op
    data, number = context.input(0), context.input(1)
    known = context.constant(number)
    if known is not None:
        k = int(known.reshape(-1)[0])
        if k:
            context.replace(inputs=[data], k=k)
        else:
            _none(context)
        return
    context.settle(f"its K {number!r}")
    rank = context.settled_rank(data)
    if rank is None:
        _of_rank_3(context)
        return
    axis = context.value("axis", -1) % rank
    length = size_of(context, data, axis)
    if length == 0:
        _none(context)
        return
    if context.rank(number) != 1:
        number = op.Reshape(number, context.array([1], "one"))
    context = context.at(13)
    op = context.op
    first = arange(context, number)
    outputs = list(context.node.output)
    if isinstance(length, int):
        whole = [context.fresh(hint) for hint in ("values", "indices")]
        context.replace(inputs=[data, context.array([length], "k")], outputs=whole, axis=axis)
        for name, output in zip(whole, outputs, strict=False):
            if output:
                op.Gather(name, first, outputs=[output], axis=axis)
        return
    order = _counted_order(context, arange(context, length), first, axis, rank)
    _gathered(context, order, axis)


def _of_rank_3(context: Context) -> None:
    """The same, with the dimensions before the axis made one, and those behind it."""
    context = context.at(OPSET)
    op = context.op
    axis = context.value("axis", -1)
    view = around(context, context.input(0), axis)
    number = op.Reshape(context.input(1), context.array([1], "one"))
    outputs = [context.fresh("found") if name else "" for name in context.node.output]
    context.replace(inputs=[view.name, number], outputs=outputs, axis=1)
    sizes = [part(context, view.shape, 0, axis), number]
    if axis != -1:
        sizes.append(part(context, view.shape, axis + 1, END))
    shape = op.Concat(*sizes, axis=0)
    for name, output in zip(outputs, context.node.output, strict=True):
        if output:
            reshaped(context, name, shape, output=output)


def _none(context: Context) -> None:
    """Give no elements, and as many places: before opset 10 at least one must be asked for."""
    values, *indices = context.node.output
    nothing = context.array(np.zeros(0, np.int64), "nothing")
    values = values or context.fresh("values")
    context.replace(
        "Gather", [context.input(0), nothing], [values], keep=(), axis=context.value("axis", -1)
    )
    if indices and indices[0]:
        cast(context, values, TensorProto.INT64, indices)


def _gathered(context: Context, order: str, axis: int) -> None:
    """Give the elements at the places, and the places, as the node's outputs."""
    values, *indices = context.node.output
    if values:
        inputs = [context.input(0), order]
        context.replace("GatherElements", inputs, [values], keep=(), axis=axis)
    if indices and indices[0]:
        context.op.Identity(order, outputs=indices)


def _counted_order(context: Context, numbers: str, first: str, axis: int, rank: int) -> str:
    """The places along the axis of the largest elements, as many as `first` counts from 0 on.

    Each element is compared with each: those that are larger come before it, and of those that are
    equal the ones with a lower index. NaN comes before all numbers.
    """
    op = context.op
    data = context.input(0)
    behind = list(range(2, rank - axis + 1))
    one, other = (unsqueezed(context, data, [at]) for at in (axis + 1, axis))
    nan = op.IsNaN(data)
    one_nan, other_nan = (unsqueezed(context, nan, [at]) for at in (axis + 1, axis))
    more, less = (
        op.Or(op.emit(op_type, other, one), op.And(nans[0], op.Not(nans[1])))
        for op_type, nans in (
            ("Greater", (other_nan, one_nan)),
            ("Less", (one_nan, other_nan)),
        )
    )
    rows, columns = (unsqueezed(context, numbers, [at, *behind]) for at in (1, 0))
    earlier = op.Less(columns, rows)
    earlier_equal = op.And(op.Not(less), earlier)
    before = cast(context, op.Or(more, earlier_equal), TensorProto.INT64)
    place = reduced(context, "ReduceSum", before, [axis + 1], keep=False)
    wanted = unsqueezed(context, first, [1, *behind])
    hits = op.Equal(unsqueezed(context, place, [axis]), wanted)
    found = op.Mul(cast(context, hits, TensorProto.INT64), columns)
    return reduced(context, "ReduceSum", found, [axis + 1], keep=False)


@down(
    "TopK",
    11,
    "largest=0: the largest of the negated; integers in a float type that holds them, those of 64 "
    "bits by their halves",
    blocks="the dtype is not known",
)
def largest_of_floats(context: Context) -> None:
    """``TopK<largest=0>(x, k)`` becomes ``Neg(TopK(Neg(x), k))`` for the values.

    ``sorted=0`` leaves the order open, so it is dropped. The integers that came with opset 11 are
    computed in float or double, which order them alike; so is what is negated.
    """
    op = context.op
    data = context.input(0)
    drop = ("largest", "sorted")
    smallest = not context.value("largest", 1)
    given = context.need_elem_type(data, "before opset 11 it takes floats only")
    if given in _HALVED:
        _ordered_by_halves(context)
        return
    working = _holding(given)
    axis = context.value("axis", -1)
    if axis < -1:
        rank = context.settled_rank(data)
        if rank is None:
            context = context.at(11)  # It comes here again, with its mirrored axis.
            op = context.op
            replace_mirrored(context, axis=mirrored_axes([axis])[0])
            return
        axis %= rank
    attributes = {"axis": axis} if context.attribute("axis") is not None else {}
    if not smallest and working == given:
        if any(context.attribute(name) is not None for name in drop) or axis != context.value(
            "axis", -1
        ):
            context.replace(drop=drop, **attributes)
        return
    inputs = [data, context.input(1)]
    if working != given:
        inputs[0] = cast(context, data, working)
    if smallest:
        inputs[0] = op.Neg(inputs[0])
    values, *others = context.node.output
    found = context.fresh("values")
    context.replace(inputs=inputs, outputs=[found, *others], drop=drop, **attributes)
    if smallest and working != given:
        found = op.Neg(found)
    if not values:
        return
    if working != given:
        cast(context, found, given, [values])
    else:
        op.Neg(found, outputs=[values])


_HALVED = (TensorProto.INT64, TensorProto.UINT64)


def _holding(elem_type: int) -> int:
    """The float type that TopK is computed in: it holds every number of the dtype."""
    if elem_type not in INTEGERS:
        return elem_type
    if elem_type in (TensorProto.INT32, TensorProto.UINT32):
        return TensorProto.DOUBLE
    return TensorProto.FLOAT


def _ordered_by_halves(context: Context) -> None:
    """Order 64-bit integers by their lower halves, and what comes of that by the upper ones.

    The order of equal elements is kept each time. A double holds each half: the lower one is
    ``x mod 2**32``, the upper one what is left of x, rounded to a multiple of ``2**32`` again.
    """
    data, number = context.input(0), context.input(1)
    rank = context.settled_rank(data)
    if rank is None:
        _of_rank_3(context)
        return
    axis = context.value("axis", -1) % rank
    given = context.need_elem_type(data, "it is taken apart")
    length = as_name(context, size_of(context, data, axis))
    context = context.at(13)
    op = context.op
    base = constant(context, 2**32, given, "base")
    rest = cast(context, op.Mod(data, base), TensorProto.DOUBLE)
    apart = op.Sub(cast(context, data, TensorProto.DOUBLE), rest)
    inverse, half = (constant(context, n, TensorProto.DOUBLE, "part") for n in (2.0**-32, 0.5))
    scaled = op.Mul(apart, inverse)
    upper = op.Floor(op.Add(scaled, half))
    values = {"axis": axis, "largest": context.attribute("largest")}
    names = [context.fresh("values"), context.fresh("order")]
    order = [context.fresh("values"), context.fresh("places")]
    op.TopK(rest, length, outputs=names, **values)
    upper = op.GatherElements(upper, names[1], axis=axis)
    op.TopK(upper, number, outputs=order, **values)
    chosen = op.GatherElements(names[1], order[1], axis=axis)
    _gathered(context, chosen, axis)
