"""TopK: 10 made K an input, 11 added `largest` and `sorted` and allowed the integers."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import INTEGERS, INTEGERS_OF_64_BITS
from onnxreduce_cli.emit.numbers import sizes
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.reversed_dims import replace_with_reversed_dims, reversed_axes
from onnxreduce_cli.emit.sizes import arange, size_of
from onnxreduce_cli.steps.indexing.emulated_top_k import (
    gather_at,
    of_64_bits,
    of_unknown_rank,
    order_by_counting,
)
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
        of_unknown_rank(context)
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
    computed in float or double, which order them alike; so is what is negated.
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
