"""MelWeightMatrix below opset 17, which introduced it."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import Array
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.model.values import numpy_dtype
from onnxreduce_cli.steps.linear_algebra.emulated_mel_weight_matrix import (
    HERTZ,
    MELS,
    mel_weight_matrix_at_run_time,
)
from onnxreduce_cli.steps.registry import introduced


@introduced(
    "MelWeightMatrix", 17, "a constant, or written out with Log and Exp", blocks=NO_COUNTING
)
def mel_weight_matrix(context: Context) -> None:
    """``MelWeightMatrix(bins, length, rate, low, high)`` of constants becomes a constant."""
    to = context.value("output_datatype", TensorProto.FLOAT)
    known = [context.constant(name) for name in context.node.input]
    given = [float(value.reshape(-1)[0]) for value in known if value is not None]
    if len(given) == len(known) and given[0] * (given[1] // 2 + 1) <= LARGEST_CONSTANT:
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
