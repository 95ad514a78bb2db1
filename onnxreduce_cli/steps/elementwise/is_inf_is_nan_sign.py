"""IsInf below opset 10, IsNaN and Sign below opset 9, by comparisons."""

from __future__ import annotations

import numpy as np

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import INTEGERS
from onnxreduce_cli.model.graph.values import finfo, numpy_dtype
from onnxreduce_cli.steps.registry import introduced


def _limit(context: Context, value: float) -> Value:
    """Return a number as a scalar of the dtype of the first input."""
    elem_type = context.need_elem_type(context.input(0), "it is compared with a number of it")
    return context.scalar(value, "limit", elem_type)


@introduced("IsNaN", 9, "neither less than infinity nor greater than minus infinity")
def is_nan(context: Context) -> None:
    """``IsNaN(x)`` becomes ``Not(Or(Less(x, inf), Greater(x, -inf)))``."""
    context.replace("Not", [_is_ordered(context)], keep=())


def _is_ordered(context: Context) -> Value:
    """Return whether each element of the first input is no NaN, bool in its shape."""
    op = context.op
    data = context.input(0)
    dtype = numpy_dtype(context.need_elem_type(data, "it is compared with the ends of its range"))
    # Some floats of 8 bits have no infinity.
    highest = np.inf if np.isinf(np.array(np.inf).astype(dtype)) else float(finfo(dtype).max)
    less, greater = (_limit(context, end) for end in (highest, -highest))
    return op.Or(op.Less(data, less), op.Greater(data, greater))


@introduced("IsInf", 10, "beyond the highest or the lowest finite number")
def is_inf(context: Context) -> None:
    """``IsInf(x)`` becomes ``Or(Less(x, lowest), Greater(x, highest))``, or one of the two."""
    data = context.input(0)
    elem_type = context.need_elem_type(data, "it is compared with its limits")
    limit = float(finfo(numpy_dtype(elem_type)).max)
    comparisons = [
        (op_type, bound)
        for name, op_type, bound in (
            ("detect_negative", "Less", -limit),
            ("detect_positive", "Greater", limit),
        )
        if context.value(name, 1)
    ]
    if not comparisons:
        # Nothing is less than minus infinity.
        context.replace("Less", [data, _limit(context, -np.inf)], keep=())
    elif len(comparisons) == 1:
        op_type, bound = comparisons[0]
        context.replace(op_type, [data, _limit(context, bound)], keep=())
    else:
        parts = [
            context.op.emit(op_type, data, _limit(context, bound)) for op_type, bound in comparisons
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
    zero = context.scalar(0, "zero", elem_type)
    parts = [
        cast(context, op.emit(op_type, data, zero), elem_type) for op_type in ("Greater", "Less")
    ]
    if elem_type in INTEGERS:
        context.replace("Sub", parts, keep=())
        return
    difference = op.Sub(*parts)
    divisor = cast(context, _is_ordered(context), elem_type)
    context.replace("Div", [difference, divisor], keep=())
