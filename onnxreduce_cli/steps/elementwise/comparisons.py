"""Equal, Greater, Less, GreaterOrEqual and LessOrEqual: boundaries at opsets 9, 11, 12 and 19."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import FLOATS, INTEGERS, INTEGERS_OF_64_BITS
from onnxreduce_cli.steps.registry import down, introduced


@down("Equal", 11, "floats: neither less, nor greater, nor NaN")
def equal_of_floats(context: Context) -> None:
    """``Equal(x, y)`` of floats becomes ``Not(Or(Or(x < y, x > y), Or(x is NaN, y is NaN)))``."""
    op = context.op
    if context.elem_type(context.input(0)) not in FLOATS:
        return
    pair = [context.input(0), context.input(1)]
    ordered = [op.emit(op_type, *pair) for op_type in ("Less", "Greater")]
    differ = op.Or(*ordered)
    nans = [op.IsNaN(name) for name in pair]
    unordered = op.Or(*nans)
    context.replace("Not", [op.Or(differ, unordered)])


@down(
    "Equal",
    19,
    "strings by their places among the unique ones",
    blocks="strings are compared below opset 11",
)
def equal_of_strings(context: Context) -> None:
    """``Equal(x, y)`` of strings becomes ``Equal(indices of x, indices of y)`` into
    ``Unique(Concat(Reshape(x, [-1]), Reshape(y, [-1])))``.
    """
    op = context.op
    if context.elem_type(context.input(0)) != TensorProto.STRING:
        return
    if not context.reaches(11):
        raise Blocked(
            "nothing before opset 11 compares strings",
            "choose opset 11 or later, or give the model numbers in place of the strings",
        )
    flat, line = [], context.array([-1], "line")
    for name in context.node.input:
        flat.append(op.Reshape(name, line))
    # One extra string, as Unique may not be given an empty tensor.
    extra = context.array(np.array([""], object), "more")
    both = op.Concat(*flat, extra, axis=0)
    unique, inverse = context.fresh("unique"), context.fresh("inverse_indices")
    op.Unique(both, outputs=[unique, "", inverse])
    start, indices = context.array([0], "start"), []
    for name, part in zip(context.node.input, flat, strict=True):
        end = op.Add(start, op.Shape(part))
        part_indices = op.Slice(inverse, start, end)
        shape = op.Shape(name)
        indices.append(op.Reshape(part_indices, shape, allowzero=1))
        start = end
    context.replace("Equal", indices)


@down(("Less", "Greater"), 9, "64-bit integers compared in two parts, each of which double holds")
def compare_64_bit_integers(context: Context) -> None:
    """``Less(x, y)`` of int64 becomes ``Or(x1 < y1, And(Not(x1 > y1), x0 < y0))``.

    x1 is ``Div(x, 2**31)``, x0 the remainder; Div cuts towards zero, and both keep the order.
    """
    op = context.op
    elem_type = context.elem_type(context.input(0))
    if elem_type not in INTEGERS_OF_64_BITS:
        return
    unit = context.scalar(2**31, "unit", elem_type)
    parts = []
    for name in context.node.input:
        high = op.Div(name, unit)
        low = op.Sub(name, op.Mul(high, unit))
        parts.append([cast(context, part, TensorProto.DOUBLE) for part in (high, low)])
    (high, low), (other_high, other_low) = parts
    op_type = context.node.op_type
    opposite = "Greater" if op_type == "Less" else "Less"
    surely = op.emit(op_type, high, other_high)
    surely_not = op.emit(opposite, high, other_high)
    maybe = op.Not(surely_not)
    in_rest = op.emit(op_type, low, other_low)
    narrowly = op.And(maybe, in_rest)
    context.replace("Or", [surely, narrowly])


_STRICT = {"GreaterOrEqual": ("Greater", "Less"), "LessOrEqual": ("Less", "Greater")}


@introduced(
    tuple(_STRICT), 12, "Or of the strict comparison and Equal; of integers Not of the opposite one"
)
def or_equal(context: Context) -> None:
    """``GreaterOrEqual(a, b)`` becomes ``Or(Greater(a, b), Equal(a, b))``; of integers, which
    have no NaN, ``Not(Less(a, b))``.
    """
    op = context.op
    strict, opposite = _STRICT[context.node.op_type]
    inputs = [context.input(0), context.input(1)]
    if context.elem_type(inputs[0]) in INTEGERS:
        context.replace("Not", [op.emit(opposite, *inputs)], keep=())
        return
    parts = [op.emit(strict, *inputs), op.Equal(*inputs)]
    context.replace("Or", parts, keep=())
