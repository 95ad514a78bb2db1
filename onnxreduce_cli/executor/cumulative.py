"""CumSum and CumProd."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxreduce_cli.executor.dtypes import FLOAT64, Array, is_float, to_dtype
from onnxreduce_cli.executor.errors import Invalid
from onnxreduce_cli.executor.registry import Call, kernel


@kernel("CumSum", 11, 14)
def cum_sum(call: Call, x: Array, axis: Array) -> Array:
    """Return the cumulative sums along an axis.

    With `reverse` they begin at the end; with `exclusive` an element is no part of its own sum.
    """
    return _cumulate(call, x, axis, np.cumsum, 0)


@kernel("CumProd", 26)
def cum_prod(call: Call, x: Array, axis: Array) -> Array:
    """Return the cumulative products along an axis; `reverse` and `exclusive` as for CumSum."""
    return _cumulate(call, x, axis, np.cumprod, 1)


def _cumulate(call: Call, x: Array, axis: Array, function: Any, start: int) -> Array:
    if axis.size != 1:
        raise Invalid(f"axis has shape {axis.shape}, it must hold one value")
    at = int(axis.reshape(()))
    if not -x.ndim <= at < x.ndim:
        raise Invalid(f"axis {at} is out of range for rank {x.ndim}")
    wide = x.astype(FLOAT64) if is_float(x.dtype) else x
    if call.attrs["reverse"]:
        wide = np.flip(wide, at)
    if call.attrs["exclusive"]:
        first = np.full_like(np.take(wide, [0], axis=at), start) if wide.shape[at] else wide
        wide = np.concatenate([first, np.delete(wide, -1, axis=at)], axis=at) if wide.size else wide
    total = function(wide, axis=at, dtype=wide.dtype)
    if call.attrs["reverse"]:
        total = np.flip(total, at)
    return to_dtype(total, x.dtype)
