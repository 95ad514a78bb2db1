"""Comparisons, tests for special values and choices, below the opset they came with."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import INTEGERS, cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import (
    NO_COUNTING,
    Later,
    Number,
    arange,
    as_name,
    constant,
    dims_of,
    size_of,
    squeezed,
    static,
    times,
)
from onnxreduce_cli.model import folding
from onnxreduce_cli.model.values import numpy_dtype
from onnxreduce_cli.steps.registry import introduced

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


def _limit(context: Context, value: float) -> Value:
    elem_type = context.need_elem_type(context.input(0), "it is compared with a number of it")
    return constant(context, value, elem_type, "limit")


@introduced("IsNaN", 9, "neither less than infinity nor greater than minus infinity")
def is_nan(context: Context) -> None:
    """``IsNaN(x)`` becomes ``Not(Or(Less(x, inf), Greater(x, -inf)))``."""
    context.replace("Not", [_is_ordered(context)], keep=())


def _is_ordered(context: Context) -> Value:
    """Where the input is no NaN."""
    op = context.op
    data = context.input(0)
    return op.Or(op.Less(data, _limit(context, np.inf)), op.Greater(data, _limit(context, -np.inf)))


@introduced("IsInf", 10, "beyond the highest or the lowest finite number")
def is_inf(context: Context) -> None:
    """``IsInf(x)`` becomes ``Or(Less(x, lowest), Greater(x, highest))``, or one of the two."""
    data = context.input(0)
    elem_type = context.need_elem_type(data, "it is compared with its limits")
    limit = float(np.finfo(numpy_dtype(elem_type)).max)
    chosen = [
        (op_type, bound)
        for name, op_type, bound in (
            ("detect_negative", "Less", -limit),
            ("detect_positive", "Greater", limit),
        )
        if context.value(name, 1)
    ]
    if not chosen:
        # Nothing is less than minus infinity.
        context.replace("Less", [data, _limit(context, -np.inf)], keep=())
    elif len(chosen) == 1:
        op_type, bound = chosen[0]
        context.replace(op_type, [data, _limit(context, bound)], keep=())
    else:
        parts = [
            context.op.emit(op_type, data, _limit(context, bound)) for op_type, bound in chosen
        ]
        context.replace("Or", parts, keep=())


@introduced("Sign", 9, "Cast(x > 0) - Cast(x < 0), NaN where x is")
def sign(context: Context) -> None:
    """``Sign(x)`` becomes ``Sub(Cast(Greater(x, 0)), Cast(Less(x, 0)))``.

    Of floats that is divided by 1, or by 0 where x is NaN: that gives NaN again.
    """
    op = context.op
    data = context.input(0)
    elem_type = context.need_elem_type(data, "the result is cast to it")
    zero = constant(context, 0, elem_type, "zero")
    parts = [
        cast(context, op.emit(op_type, data, zero), elem_type) for op_type in ("Greater", "Less")
    ]
    if elem_type in INTEGERS:
        context.replace("Sub", parts, keep=())
        return
    apart = op.Sub(*parts)
    number = cast(context, _is_ordered(context), elem_type)
    context.replace("Div", [apart, number], keep=())


@introduced(
    "Where",
    9,
    "a Gather from both inputs, or arithmetic on integers",
    blocks=NO_COUNTING,
)
def where(context: Context) -> None:
    """``Where(c, x, y)`` becomes
    ``Gather(Concat(Reshape(x, [-1]), Reshape(y, [-1])), places)`` with ``places`` those of y, and
    where c holds those of x.

    Blending ``c * x + (1 - c) * y`` would be wrong where what is not chosen is NaN or infinite;
    of integers it is exact, and needs no shapes.
    """
    op = context.op
    condition, first, second = (context.input(index) for index in range(3))
    elem_type = context.need_elem_type(first, "how to choose depends on it")
    if elem_type in (TensorProto.INT32, TensorProto.INT64):
        chosen = cast(context, condition, elem_type)
        apart = op.Sub(first, second)
        part = op.Mul(apart, chosen)
        context.replace("Add", [part, second], keep=())
        return
    if None in [context.settled_rank(name) for name in (first, second)]:
        context = context.at(shapes.OPSET)
        op = context.op
    here, there = _places(context, first), _places(context, second)
    size = _size(context, first)
    if isinstance(size, int):
        behind: str = context.scalar(size, "size")
    else:
        behind = squeezed(context, size.name, [0])
    there = op.Add(there, behind)
    flat = [op.Reshape(name, context.array([-1], "flat")) for name in (first, second)]
    both = op.Concat(*flat, axis=0)
    chosen = cast(context, condition, TensorProto.INT64)
    apart = op.Sub(here, there)
    part = op.Mul(apart, chosen)
    places = op.Add(part, there)
    context.replace("Gather", [both, places], keep=(), axis=0)


def _size(context: Context, name: str) -> int | Later:
    """How many elements a tensor has."""
    op = context.op
    dims = static(dims_of(context, name))
    if dims is not None:
        return math.prod(dims)
    one = context.array([1], "one")
    return Later(lambda: op.Reshape(op.Size(name), one))


def _places(context: Context, name: str) -> str:
    """In a tensor's shape the place of each element in the flat tensor, int64."""
    op = context.op
    dims = static(dims_of(context, name))
    if dims is not None and math.prod(dims) <= folding.LIMIT:
        places = np.arange(math.prod(dims), dtype=np.int64).reshape(dims)
        return context.array(places, "places")
    rank = context.rank(name)
    if rank is None:
        shape = op.Shape(name)
        return shapes.reshaped(context, arange(context, _size(context, name)), shape)
    step: Number = 1
    found = ""
    for axis in reversed(range(rank)):
        length = size_of(context, name, axis)
        shape = context.array([-1] + [1] * (rank - 1 - axis), "along_axis")
        along = op.Reshape(arange(context, length), shape)
        if step != 1:
            along = op.Mul(along, as_name(context, step))
        found = op.Add(found, along) if found else along
        if axis:
            step = times(context, step, length)
    return found
