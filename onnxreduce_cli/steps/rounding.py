"""Remainders, rounding and running sums, below the opset they came with."""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from onnxreduce_cli.model.values import numpy_dtype
from onnxreduce_cli.steps.axes import normalised
from onnxreduce_cli.steps.births import born, constant, refuse
from onnxreduce_cli.steps.casts import INTEGERS, cast
from onnxreduce_cli.steps.context import Blocked, Context

_UNSIGNED = frozenset(
    {TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64}
)


@born("Mod", 10, "a - b * (a / b) of integers", blocks="its inputs are floats")
def mod(context: Context) -> None:
    """``Mod(a, b)`` of integers becomes ``r + b * Cast(r and b have different signs)`` with
    ``r = a - b * (a / b)``; with ``fmod=1`` it is r alone, and without negative numbers as well.
    """
    first, second = context.input(0), context.input(1)
    given = context.need_elem_type(first, "floats have no exact remainder before opset 10")
    if given not in INTEGERS:
        raise refuse(context, "gives the exact remainder of floats")
    working = given
    if given not in (TensorProto.INT64, TensorProto.UINT64):
        working = TensorProto.INT64
        first, second = (cast(context, name, working) for name in (first, second))
    divisor = second
    known = context.constant(context.input(1))
    if given == TensorProto.INT64 and (known is None or np.any(known == -1)):
        # The lowest number divided by -1 overflows, which may end the process; 1 leaves no rest
        # either.
        minus = context.emit("Equal", [second, constant(context, -1, working, "minus_one")])
        two = constant(context, 2, working, "two")
        more = context.emit("Mul", [cast(context, minus, working), two], "more")
        divisor = context.emit("Add", [second, more], "divisor")
    whole = context.emit("Div", [first, divisor], "whole")
    covered = context.emit("Mul", [whole, divisor], "covered")
    rest = context.emit("Sub", [first, covered], "rest")
    if not context.value("fmod", 0) and given not in _UNSIGNED:
        zero = constant(context, 0, working, "zero")
        rest_signs = [context.emit(op, [rest, zero]) for op in ("Less", "Greater")]
        divisor_signs = [context.emit(op, [divisor, zero]) for op in ("Greater", "Less")]
        pairs = [
            context.emit("And", [a, b], "apart")
            for a, b in zip(rest_signs, divisor_signs, strict=True)
        ]
        apart = cast(context, context.emit("Or", pairs, "signs_differ"), working)
        added = context.emit("Mul", [divisor, apart], "added")
        rest = context.emit("Add", [rest, added], "remainder")
    if working == given:
        context.replace("Identity", [rest], keep=())
    else:
        context.replace("Cast", [rest], keep=(), to=given)


@born("Round", 11, "Floor of the absolute value, and 1 more where that is nearer or even")
def round_(context: Context) -> None:
    """``Round(x)`` becomes ``Mul(Where(a < 2 ** 23, r, a), sign)`` with ``a = Abs(x)`` and r the
    one of ``Floor(a)`` and ``Floor(a) + 1`` that is nearer, or even.

    The sign is -1 where x or its reciprocal is negative: zeros keep theirs.
    """
    data = context.input(0)
    elem_type = context.need_elem_type(data, "it is compared with numbers of it")
    zero, half, one, two = (
        constant(context, value, elem_type, hint)
        for value, hint in ((0, "zero"), (0.5, "half"), (1, "one"), (2, "two"))
    )
    size = context.emit("Abs", [data], "size")
    # From here on numbers have no fraction, and infinity less infinity is NaN.
    most = 2.0 ** np.finfo(numpy_dtype(elem_type)).nmant
    limit = constant(context, most, elem_type, "without_fraction")
    small = context.emit("Less", [size, limit], "has_fraction")
    kept = context.emit("Where", [small, size, zero], "small_size")
    lower = context.emit("Floor", [kept], "lower")
    fraction = context.emit("Sub", [kept, lower], "fraction")
    halved = context.emit("Mul", [lower, half], "halved")
    rest = context.emit("Sub", [halved, context.emit("Floor", [halved])], "half_if_odd")
    odd = context.emit("Greater", [rest, zero], "is_odd")
    below_half = context.emit("Less", [fraction, half], "below_half")
    tie = context.emit("And", [odd, context.emit("Not", [below_half])], "half_and_odd")
    nearer = context.emit("Greater", [fraction, half], "above_half")
    more = cast(context, context.emit("Or", [tie, nearer], "is_raised"), elem_type)
    rounded = context.emit("Add", [lower, more], "rounded")
    magnitude = context.emit("Where", [small, rounded, size], "magnitude")
    sides = [data, context.emit("Reciprocal", [data])]
    negative = context.emit("Or", [context.emit("Less", [side, zero]) for side in sides])
    twice = context.emit("Mul", [cast(context, negative, elem_type), two], "two_if_negative")
    context.replace("Mul", [magnitude, context.emit("Sub", [one, twice], "sign")], keep=())


@born("CumProd", 26, "a Scan that multiplies", blocks="the axis or the rank is not known")
def cum_prod(context: Context) -> None:
    """``CumProd(x, axis)`` becomes ``Scan<num_scan_inputs=1>(ones, x)`` with a body that multiplies
    the product so far by a slice of x.
    """
    _running(context, "Mul", 1.0)


@born("CumSum", 11, "a Scan that adds", blocks="the axis or the rank is not known")
def cum_sum(context: Context) -> None:
    """``CumSum(x, axis)`` becomes ``Scan<num_scan_inputs=1>(zeros, x)`` with a body that adds a
    slice of x to the sum so far.
    """
    # From -0 on, so that a sum of nothing but -0 stays one; what is exclusive begins with 0.
    _running(context, "Add", 0.0 if context.value("exclusive", 0) else -0.0)


def _running(context: Context, op_type: str, first: float) -> None:
    """A Scan that combines what it has so far, at the beginning `first`, with the next slice."""
    data = context.input(0)
    rank = context.need_rank(data, "the sums have one dimension less")
    axis = np.zeros(()) if rank == 1 else context.constant(context.input(1))
    if axis is None:
        raise Blocked(
            f"its axis {context.input(1)!r} is only known at run time",
            "make it a constant",
        )
    elem_type = context.need_elem_type(data, "the sums begin with a zero of it")
    along = normalised((int(axis.reshape(-1)[0]),), rank)[0]
    reverse, exclusive = context.value("reverse", 0), context.value("exclusive", 0)
    shape = context.emit("Shape", [data], "shape")
    others = context.array([index for index in range(rank) if index != along], "others")
    slice_shape = context.emit("Gather", [shape, others], "slice_shape", axis=0)
    start = numpy_helper.from_array(np.array([first]).astype(numpy_dtype(elem_type)))
    initial = context.emit("ConstantOfShape", [slice_shape], "start", value=start)
    hints = ("sum", "slice", "next_sum", "given")
    before, item, after, given = (context.fresh(hint) for hint in hints)
    value = helper.make_tensor_value_info
    body = GraphProto(
        name=given,
        node=[
            NodeProto(op_type=op_type, name=after, input=[before, item], output=[after]),
            NodeProto(
                op_type="Identity",
                name=given,
                input=[before if exclusive else after],
                output=[given],
            ),
        ],
        input=[value(name, elem_type, [None] * (rank - 1)) for name in (before, item)],
        output=[value(name, elem_type, [None] * (rank - 1)) for name in (after, given)],
    )
    direction = [1 if reverse else 0]
    context.replace(
        "Scan",
        [initial, data],
        [context.fresh("total"), context.node.output[0]],
        keep=(),
        body=body,
        num_scan_inputs=1,
        scan_input_axes=[along],
        scan_input_directions=direction,
        scan_output_axes=[along],
        scan_output_directions=direction,
    )
