"""MelWeightMatrix below opset 17, which introduced it."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import unsqueezed
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import Array
from onnxreduce_cli.emit.numbers import Number, as_name, is_small, sizes
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.shapes import scalar_input
from onnxreduce_cli.emit.sizes import arange
from onnxreduce_cli.model.graph.values import numpy_dtype
from onnxreduce_cli.steps.registry import introduced


@introduced(
    "MelWeightMatrix", 17, "a constant, or written out with Log and Exp", blocks=NO_COUNTING
)
def mel_weight_matrix(context: Context) -> None:
    """``MelWeightMatrix(bins, length, rate, low, high)`` of constants becomes a constant."""
    to = context.value("output_datatype", TensorProto.FLOAT)
    known = [context.constant(name) for name in context.node.input]
    given = [float(value.reshape(-1)[0]) for value in known if value is not None]
    if len(given) == len(known) and is_small(given[0], given[1] // 2 + 1):
        constant = context.array(_constant_matrix(*given).astype(numpy_dtype(to)), "matrix")
        context.replace("Identity", [constant], keep=())
        return
    mel_weight_matrix_at_run_time(context)


def _constant_matrix(bins: float, length: float, rate: float, low: float, high: float) -> Array:
    """Return the matrix for constant inputs, double of shape [length // 2 + 1, bins].

    Args:
        bins: the number of filters.
        length: the length of the DFT.
        rate: the sample rate in hertz.
        low: the lowest frequency in hertz.
        high: the highest frequency in hertz.
    """
    count = int(bins)
    ends = [MELS * math.log1p(edge / HERTZ) for edge in (low, high)]
    mels = np.arange(count + 2) * ((ends[1] - ends[0]) / (count + 2)) + ends[0]
    bin_rows = np.floor((length + 1) * HERTZ * np.expm1(mels / MELS) / rate)
    lower, centre, higher = (bin_rows[index : index + count] for index in range(3))
    row = np.arange(int(length) // 2 + 1)[:, None]
    rising = (row - lower) / np.maximum(centre - lower, 1)
    falling = (higher - row) / np.maximum(higher - centre, 1)
    value = np.where(row < centre, rising, np.where(row > centre, falling, 1.0))
    weights: Array = np.where((row < lower) | (row > higher), 0.0, value)
    return weights


# The mel scale: mel(f) = 2595 * log10(1 + f / 700)

MELS, HERTZ = 2595 / math.log(10), 700.0


def mel_weight_matrix_at_run_time(context: Context) -> None:
    """``MelWeightMatrix(bins, length, rate, low, high)`` becomes
    ``Cast(Where(outside, 0, Where(Greater(r, c), falling, Where(Less(r, c), rising, 1))))``.

    r is the index of the row; l, c and h are the rows at which each column's filter begins, has its
    peak and ends. ``rising`` is ``(r - l) / (c - l)``, ``falling`` is ``(h - r) / (h - c)``, and
    ``outside`` is true below l and above h. All is computed in double.
    """
    op = context.op
    to = context.value("output_datatype", TensorProto.FLOAT)
    bins, length = (scalar_input(context, context.input(index)) for index in range(2))
    frequencies = _frequency_bins(context, bins, length)
    count = as_name(context, bins)
    lower, centre, higher = (
        op.Gather(frequencies, _shifted(context, count, index), axis=0) for index in range(3)
    )
    rows = length // 2 + 1
    row = unsqueezed(context, cast(context, arange(context, rows), TensorProto.DOUBLE), [1])
    zero, one = (context.scalar(value, "number", TensorProto.DOUBLE) for value in (0, 1))
    slopes = []
    for end, sides in ((lower, (row, lower)), (higher, (higher, row))):
        distance = op.Sub(*[centre, end] if end is lower else [end, centre])
        least = op.Max(distance, one)
        slopes.append(op.Div(op.Sub(*sides), least))
    value = zero
    before, after = (op.emit(op_type, row, centre) for op_type in ("Less", "Greater"))
    outside = [op.Less(row, lower), op.Less(higher, row)]
    value = op.Where(before, slopes[0], one)
    value = op.Where(after, slopes[1], value)
    none = op.Or(*outside)
    value = op.Where(none, zero, value)
    context.replace("Cast", [value], keep=(), to=to)


def _shifted(context: Context, count: str, by: int) -> str:
    """Return the `count` numbers from `by` on, int64 of shape [count]; `count` is int64 of [1]."""
    places = arange(context, sizes(context, count))
    return context.op.Add(places, context.array([by], "by")) if by else places


def _frequency_bins(context: Context, bins: Number, length: Number) -> Value:
    """Return the rows at which the filters begin, have their peak and end.

    Args:
        context: the context of the node.
        bins: the number of filters.
        length: the length of the DFT.

    Returns:
        whole numbers, double of shape [bins + 2]; the three of a filter follow each other.
    """
    op = context.op
    double = TensorProto.DOUBLE
    rate, low, high = (
        name if context.elem_type(name) == double else cast(context, name, double)
        for name in (context.input(index) for index in range(2, 5))
    )
    one, hertz, mels = (context.scalar(value, "number", double) for value in (1, HERTZ, MELS))
    ends = []
    for edge in (low, high):
        scaled = op.Div(edge, hertz)
        log = op.Log(op.Add(scaled, one))
        ends.append(op.Mul(log, mels))
    count = bins + 2
    width = op.Sub(*ends[::-1])
    divisor = cast(context, as_name(context, count), double)
    step = op.Div(width, divisor)
    numbers = cast(context, arange(context, count), double)
    offsets = op.Mul(numbers, step)
    mel = op.Add(offsets, ends[0])
    raised = op.Exp(op.Div(mel, mels))
    frequencies = op.Mul(op.Sub(raised, one), hertz)
    more = cast(context, as_name(context, length + 1), double)
    scaled = op.Mul(frequencies, more)
    return op.Floor(op.Div(scaled, rate))
