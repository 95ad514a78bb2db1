"""MelWeightMatrix below opset 17, which it came with."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Array, Context
from onnxreduce_cli.emit.curves import number
from onnxreduce_cli.emit.numbers import (
    MOST_WRITTEN,
    NO_COUNTING,
    Number,
    arange,
    as_name,
    plus,
    quotient,
    unsqueezed,
)
from onnxreduce_cli.emit.shapes import scalar_input
from onnxreduce_cli.model.values import numpy_dtype
from onnxreduce_cli.steps.registry import introduced

# The mel scale: mel(f) = 2595 * log10(1 + f / 700)

_MELS, _HERTZ = 2595 / math.log(10), 700.0


@introduced(
    "MelWeightMatrix", 17, "a constant, or written out with Log and Exp", blocks=NO_COUNTING
)
def mel_weight_matrix(context: Context) -> None:
    """``MelWeightMatrix(bins, length, rate, low, high)`` of constants becomes a constant.

    Else it is what is chosen for each row r and column by ``l = lower[column]``, ``c`` and ``h``,
    the bins of three neighbouring frequencies: ``(r - l) / (c - l)`` from l to c,
    ``(h - r) / (h - c)`` from c to h, 1 at c and 0 elsewhere.
    """
    op = context.op
    to = context.value("output_datatype", TensorProto.FLOAT)
    known = [context.constant(name) for name in context.node.input]
    if all(value is not None for value in known):
        matrix = _written(*(float(value.reshape(-1)[0]) for value in known if value is not None))
        if matrix.size <= MOST_WRITTEN:
            constant = context.array(matrix.astype(numpy_dtype(to)), "matrix")
            context.replace("Identity", [constant], keep=())
            return
    bins, length = (scalar_input(context, context.input(index)) for index in range(2))
    frequencies = _frequency_bins(context, bins, length)
    count = as_name(context, bins)
    lower, centre, higher = (
        op.Gather(frequencies, _shifted(context, count, index), axis=0) for index in range(3)
    )
    rows = plus(context, quotient(context, length, 2), 1)
    row = unsqueezed(context, cast(context, arange(context, rows), TensorProto.DOUBLE), [1])
    zero, one = (number(context, value, TensorProto.DOUBLE) for value in (0, 1))
    slopes = []
    for end, sides in ((lower, (row, lower)), (higher, (higher, row))):
        apart = op.Sub(*[centre, end] if end is lower else [end, centre])
        least = op.Max(apart, one)
        slopes.append(op.Div(op.Sub(*sides), least))
    value = zero
    # What is nearer to the centre comes later.
    before, after = (op.emit(op_type, row, centre) for op_type in ("Less", "Greater"))
    outside = [op.Less(row, lower), op.Less(higher, row)]
    value = op.Where(before, slopes[0], one)
    value = op.Where(after, slopes[1], value)
    none = op.Or(*outside)
    value = op.Where(none, zero, value)
    context.replace("Cast", [value], keep=(), to=to)


def _shifted(context: Context, count: str, by: int) -> str:
    """The numbers from `by` on, as many as there are columns."""
    places = arange(context, count)
    return context.op.Add(places, context.array([by], "by")) if by else places


def _written(bins: float, length: float, rate: float, low: float, high: float) -> Array:
    """The matrix, computed at conversion."""
    count = int(bins)
    ends = [_MELS * math.log1p(edge / _HERTZ) for edge in (low, high)]
    mels = np.arange(count + 2) * ((ends[1] - ends[0]) / (count + 2)) + ends[0]
    places = np.floor((length + 1) * _HERTZ * np.expm1(mels / _MELS) / rate)
    lower, centre, higher = (places[index : index + count] for index in range(3))
    row = np.arange(int(length) // 2 + 1)[:, None]
    rising = (row - lower) / np.maximum(centre - lower, 1)
    falling = (higher - row) / np.maximum(higher - centre, 1)
    value = np.where(row < centre, rising, np.where(row > centre, falling, 1.0))
    weights: Array = np.where((row < lower) | (row > higher), 0.0, value)
    return weights


def _frequency_bins(context: Context, bins: Number, length: Number) -> Value:
    """The rows at which the filters begin, have their peak and end; whole numbers in double."""
    op = context.op
    double = TensorProto.DOUBLE
    rate, low, high = (
        name if context.elem_type(name) == double else cast(context, name, double)
        for name in (context.input(index) for index in range(2, 5))
    )
    one, hertz, mels = (number(context, value, double) for value in (1, _HERTZ, _MELS))
    ends = []
    for edge in (low, high):
        scaled = op.Div(edge, hertz)
        log = op.Log(op.Add(scaled, one))
        ends.append(op.Mul(log, mels))
    count = plus(context, bins, 2)
    width = op.Sub(*ends[::-1])
    divisor = cast(context, as_name(context, count), double)
    step = op.Div(width, divisor)
    numbers = cast(context, arange(context, count), double)
    apart = op.Mul(numbers, step)
    mel = op.Add(apart, ends[0])
    raised = op.Exp(op.Div(mel, mels))
    frequencies = op.Mul(op.Sub(raised, one), hertz)
    more = cast(context, as_name(context, plus(context, length, 1)), double)
    scaled = op.Mul(frequencies, more)
    return op.Floor(op.Div(scaled, rate))
