"""TopK: 10 made K an input, 11 added `largest` and `sorted` and allowed the integers."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import reduced, unsqueezed
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import INTEGERS, INTEGERS_OF_64_BITS
from onnxreduce_cli.emit.numbers import as_name, sizes
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.reversed_dims import replace_with_reversed_dims, reversed_axes
from onnxreduce_cli.emit.shapes import OPSET, around, reshaped
from onnxreduce_cli.emit.sizes import END, arange, size_of, sliced
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
            _give_nothing(context)
        return
    context.require_specialised(f"its K {number!r}")
    rank = context.specialised_rank(data)
    if rank is None:
        top_k_of_unknown_rank(context)
        return
    axis = context.value("axis", -1) % rank
    length = size_of(context, data, axis)
    if length == 0:
        _give_nothing(context)
        return
    if context.rank(number) != 1:
        number = op.Reshape(number, context.array([1], "one"))
    context = context.at(13)
    op = context.op
    first = arange(context, sizes(context, number))
    outputs = list(context.node.output)
    if isinstance(length, int):
        whole = [context.fresh(hint) for hint in ("values", "indices")]
        context.replace(inputs=[data, context.array([length], "k")], outputs=whole, axis=axis)
        for name, output in zip(whole, outputs, strict=False):
            if output:
                op.Gather(name, first, outputs=[output], axis=axis)
        return
    order = order_by_counting(context, arange(context, length), first, axis, rank)
    gather_at(context, order, axis)


def _give_nothing(context: Context) -> None:
    """Emit outputs without elements: before opset 10 TopK takes a K of at least 1."""
    values, *indices = context.node.output
    nothing = context.array(np.zeros(0, np.int64), "nothing")
    values = values or context.fresh("values")
    context.replace(
        "Gather", [context.input(0), nothing], [values], keep=(), axis=context.value("axis", -1)
    )
    if indices and indices[0]:
        cast(context, values, TensorProto.INT64, indices)


@down(
    "TopK",
    11,
    "largest=0: the largest of the negated; integers in a float type that holds them, those of 64 "
    "bits by their halves",
    blocks="the dtype is not known",
)
def largest_of_floats(context: Context) -> None:
    """``TopK<largest=0>(x, k)`` becomes ``Neg(TopK(Neg(x), k))`` for the values.

    ``sorted=0`` leaves the order open, so it is dropped. The integers that opset 11 introduced are
    computed in float or double, which keep their order; so is what is negated.
    """
    op = context.op
    data = context.input(0)
    drop = ("largest", "sorted")
    smallest = not context.value("largest", 1)
    elem_type = context.need_elem_type(data, "before opset 11 it takes floats only")
    if elem_type in INTEGERS_OF_64_BITS:
        of_64_bits(context)
        return
    working = _float_type_for(elem_type)
    axis = context.value("axis", -1)
    if axis < -1:
        rank = context.specialised_rank(data)
        if rank is None:
            context = context.at(11)  # The step is taken again, with an axis of the reversed dims.
            op = context.op
            replace_with_reversed_dims(context, axis=reversed_axes([axis])[0])
            return
        axis %= rank
    attributes = {"axis": axis} if context.attribute("axis") is not None else {}
    if not smallest and working == elem_type:
        if any(context.attribute(name) is not None for name in drop) or axis != context.value(
            "axis", -1
        ):
            context.replace(drop=drop, **attributes)
        return
    inputs = [data, context.input(1)]
    if working != elem_type:
        inputs[0] = cast(context, data, working)
    if smallest:
        inputs[0] = op.Neg(inputs[0])
    values, *others = context.node.output
    result = context.fresh("values")
    context.replace(inputs=inputs, outputs=[result, *others], drop=drop, **attributes)
    if smallest and working != elem_type:
        result = op.Neg(result)
    if not values:
        return
    if working != elem_type:
        cast(context, result, elem_type, [values])
    else:
        op.Neg(result, outputs=[values])


def _float_type_for(elem_type: int) -> int:
    """Return the float dtype to compute TopK of a dtype in: it represents all of its numbers."""
    if elem_type not in INTEGERS:
        return elem_type
    if elem_type in (TensorProto.INT32, TensorProto.UINT32):
        return TensorProto.DOUBLE
    return TensorProto.FLOAT


def top_k_of_unknown_rank(context: Context) -> None:
    """Replace a TopK of unknown rank by one of rank 3, with the dims on both sides merged."""
    context = context.at(OPSET)
    op = context.op
    axis = context.value("axis", -1)
    view = around(context, context.input(0), axis)
    number = op.Reshape(context.input(1), context.array([1], "one"))
    outputs = [context.fresh("found") if name else "" for name in context.node.output]
    context.replace(inputs=[view.name, number], outputs=outputs, axis=1)
    sizes = [sliced(context, view.shape, 0, axis), number]
    if axis != -1:
        sizes.append(sliced(context, view.shape, axis + 1, END))
    shape = op.Concat(*sizes, axis=0)
    for name, output in zip(outputs, context.node.output, strict=True):
        if output:
            reshaped(context, name, shape, output=output)


def order_by_counting(context: Context, numbers: str, first: str, axis: int, rank: int) -> str:
    """Return the indices along the axis of the K largest elements: int64, shaped as the values.

    Each element is compared with each: the larger ones precede it, and of equal ones those with a
    lower index. NaN precedes all numbers.

    Args:
        context: the context of the node.
        numbers: [0, ..., length - 1], an int64 vector of the indices along the axis.
        first: [0, ..., K - 1], an int64 vector.
        axis: the axis, counted from the front.
        rank: the rank of the data.
    """
    op = context.op
    context.warn("along its axis each element is compared with each: memory for all those pairs")
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
    own, others = (unsqueezed(context, numbers, [at, *behind]) for at in (1, 0))
    earlier = op.Less(others, own)
    earlier_equal = op.And(op.Not(less), earlier)
    before = cast(context, op.Or(more, earlier_equal), TensorProto.INT64)
    order = reduced(context, "ReduceSum", before, [axis + 1], keep=False)
    wanted = unsqueezed(context, first, [1, *behind])
    hits = op.Equal(unsqueezed(context, order, [axis]), wanted)
    indices = op.Mul(cast(context, hits, TensorProto.INT64), others)
    return reduced(context, "ReduceSum", indices, [axis + 1], keep=False)


def of_64_bits(context: Context) -> None:
    """Replace a TopK of int64 or uint64 by two of double, by the lower and then the upper halves.

    Both keep the order of equal elements. A double represents each half exactly: the lower one is
    ``x mod 2**32``, the upper one what is left of x, rounded to a multiple of ``2**32`` again.
    """
    data, number = context.input(0), context.input(1)
    rank = context.specialised_rank(data)
    if rank is None:
        top_k_of_unknown_rank(context)
        return
    axis = context.value("axis", -1) % rank
    elem_type = context.need_elem_type(data, "it is taken apart")
    length = as_name(context, size_of(context, data, axis))
    context = context.at(13)
    op = context.op
    base = context.scalar(2**32, "base", elem_type)
    rest = cast(context, op.Mod(data, base), TensorProto.DOUBLE)
    apart = op.Sub(cast(context, data, TensorProto.DOUBLE), rest)
    inverse, half = (context.scalar(n, "part", TensorProto.DOUBLE) for n in (2.0**-32, 0.5))
    scaled = op.Mul(apart, inverse)
    upper = op.Floor(op.Add(scaled, half))
    values = {"axis": axis, "largest": context.attribute("largest")}
    _, order = op.TopK(rest, length, outputs=2, **values)
    upper = op.GatherElements(upper, order, axis=axis)
    _, places = op.TopK(upper, number, outputs=2, **values)
    chosen = op.GatherElements(order, places, axis=axis)
    gather_at(context, chosen, axis)


def gather_at(context: Context, order: str, axis: int) -> None:
    """Emit the elements at the int64 indices `order` along the axis, and these, as the outputs."""
    values, *indices = context.node.output
    if values:
        inputs = [context.input(0), order]
        context.replace("GatherElements", inputs, [values], keep=(), axis=axis)
    if indices and indices[0]:
        context.op.Identity(order, outputs=indices)
