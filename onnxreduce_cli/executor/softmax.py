"""Softmax, LogSoftmax and Hardmax, in every version.

Source: definitions 1 and 11 coerce the input to 2-D at `axis` (default 1; counted from the
back since 11) and normalise over all dimensions from there on; definition 13 normalises
over one axis (default -1) and coerces nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TypeAlias

import numpy as np

from onnxreduce_cli.executor.axes import one_axis
from onnxreduce_cli.executor.dtypes import FLOAT64, Array, to_dtype
from onnxreduce_cli.executor.registry import Call, Kernel, kernel

# (float64 data, axis) to float64, same shape.
Normaliser: TypeAlias = Callable[[Array, int], Array]


def _softmax(data: Array, axis: int) -> Array:
    powers = np.exp(data - np.max(data, axis=axis, keepdims=True))
    return powers / np.sum(powers, axis=axis, keepdims=True)


def _log_softmax(data: Array, axis: int) -> Array:
    shifted = data - np.max(data, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def _hardmax(data: Array, axis: int) -> Array:
    first = np.expand_dims(np.argmax(data, axis=axis), axis)
    result = np.zeros_like(data)
    np.put_along_axis(result, first, 1.0, axis=axis)
    return result


def _coercing(normalise: Normaliser) -> Kernel:
    def run(call: Call, data: Array) -> Array:
        # Definition 1 gives no range for axis; at the rank, every element is a row.
        axis = one_axis(call.attrs["axis"], data.ndim, end=call.since == 1)
        if not data.size:
            return data.copy()
        rows = data.astype(FLOAT64).reshape(prod(data.shape[:axis]), -1)
        return to_dtype(normalise(rows, 1).reshape(data.shape), data.dtype)

    return run


def _along_axis(normalise: Normaliser) -> Kernel:
    def run(call: Call, data: Array) -> Array:
        axis = one_axis(call.attrs["axis"], data.ndim)
        if not data.size:
            return data.copy()
        return to_dtype(normalise(data.astype(FLOAT64), axis), data.dtype)

    return run


for _name, _normalise in (
    ("Softmax", _softmax),
    ("LogSoftmax", _log_softmax),
    ("Hardmax", _hardmax),
):
    kernel(_name, 1, 11)(_coercing(_normalise))
    kernel(_name, 13)(_along_axis(_normalise))
