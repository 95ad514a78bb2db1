"""Pooling over windows and over all spatial dimensions.

Source: AveragePool 1 to 22, MaxPool 1 to 22, LpPool 1 to 22, and the Global ones.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from onnxreduce_cli.executor.dtypes import FLOAT64, INT64, Array, is_float, to_dtype, wider
from onnxreduce_cli.executor.errors import Invalid
from onnxreduce_cli.executor.registry import Call, kernel
from onnxreduce_cli.executor.windows import WindowGeometry, flat_windows, geometry


def _place(call: Call, x: Array) -> WindowGeometry:
    if x.ndim < 3:
        raise Invalid(f"rank is {x.ndim}, it must be at least 3")
    if "kernel_shape" not in call.attrs:
        raise Invalid("attribute 'kernel_shape' is missing")
    return geometry(call, x.shape[2:], tuple(call.attrs["kernel_shape"]))


@kernel("AveragePool", 1, 7, 10, 11, 19, 22)
def average_pool(call: Call, x: Array) -> Array:
    """Average over windows; `count_include_pad` counts pads, but not what ceil_mode adds."""
    place = _place(call, x)
    total = flat_windows(x.astype(FLOAT64), place, 0.0).sum(axis=-1)
    if call.attrs.get("count_include_pad", 0):
        # Pads count as elements: the counts are padded with ones first.
        widths = list(zip(place.before, place.after, strict=True))
        ones = np.pad(np.ones(x.shape[2:]), widths, constant_values=1.0)[None, None]
        bare = WindowGeometry(
            place.kernel,
            place.strides,
            place.dilations,
            (0,) * len(widths),
            (0,) * len(widths),
            place.extra,
            place.output,
        )
        count = flat_windows(ones, bare, 0.0).sum(axis=-1)
    else:
        count = flat_windows(np.ones((1, 1, *x.shape[2:])), place, 0.0).sum(axis=-1)
    return to_dtype(total / count, x.dtype)


@kernel("MaxPool", 1, 8, 10, 11, 12, 22)
def max_pool(call: Call, x: Array) -> Any:
    """Take the maximum over windows; from 8 also its index in the flattened input.

    `storage_order` = 1 counts the index in column-major order within a channel.
    """
    place = _place(call, x)
    lowest: Any = -np.inf if is_float(x.dtype) else np.iinfo(x.dtype).min
    wide = wider(x)
    view = flat_windows(wide, place, lowest)
    if not call.wants(1):
        return to_dtype(view.max(axis=-1), x.dtype)
    size = prod(x.shape[2:])
    inner = np.arange(size, dtype=INT64)
    if call.attrs.get("storage_order", 0):
        inner = inner.reshape(x.shape[:1:-1]).T
    else:
        inner = inner.reshape(x.shape[2:])
    places = flat_windows(inner[None, None], place, -1)
    # A pad has the lowest value, so an equal element of the input must win.
    is_inside = np.broadcast_to(places >= 0, view.shape)
    begin = np.argmax(is_inside, axis=-1)[..., None]
    # As in ONNX Runtime's kernels: start with the first element and replace it by larger ones, so
    # that NaN stays only if it is the first.
    starts_with_nan = np.isnan(np.take_along_axis(view, begin, axis=-1))
    ordered = np.where(np.isnan(view), lowest, view)
    largest = ordered.max(axis=-1, keepdims=True)
    candidates = is_inside & np.equal(ordered, largest)
    first = np.where(starts_with_nan, begin, np.argmax(candidates, axis=-1)[..., None])
    result = np.take_along_axis(view, first, axis=-1)[..., 0]
    within = np.take_along_axis(np.broadcast_to(places, view.shape), first, axis=-1)[..., 0]
    channel = np.arange(x.shape[0] * x.shape[1], dtype=INT64) * size
    index = within + channel.reshape(x.shape[:2] + (1,) * (x.ndim - 2))
    return to_dtype(result, x.dtype), index


@kernel("LpPool", 1, 2, 11, 18, 22)
def lp_pool(call: Call, x: Array) -> Array:
    """Take the Lp norm over windows (1: a float p)."""
    place = _place(call, x)
    p = float(call.attrs["p"])
    powers = np.absolute(x.astype(FLOAT64)) ** p
    return to_dtype(flat_windows(powers, place, 0.0).sum(axis=-1) ** (1.0 / p), x.dtype)


def _spatial(x: Array) -> tuple[int, ...]:
    if x.ndim < 2:
        raise Invalid(f"rank is {x.ndim}, it must be at least 2")
    return tuple(range(2, x.ndim))


@kernel("GlobalAveragePool", 1, 22)
def global_average_pool(call: Call, x: Array) -> Array:
    """Average over all spatial dimensions, which stay with size 1."""
    return to_dtype(np.mean(x, axis=_spatial(x), keepdims=True, dtype=FLOAT64), x.dtype)


@kernel("GlobalMaxPool", 1, 22)
def global_max_pool(call: Call, x: Array) -> Array:
    """Take the maximum over all spatial dimensions, which stay with size 1."""
    return to_dtype(np.max(wider(x), axis=_spatial(x), keepdims=True), x.dtype)


@kernel("GlobalLpPool", 1, 2, 22)
def global_lp_pool(call: Call, x: Array) -> Array:
    """Take the Lp norm over all spatial dimensions, which stay with size 1."""
    p = float(call.attrs["p"])
    powers = np.absolute(x.astype(FLOAT64)) ** p
    total = np.sum(powers, axis=_spatial(x), keepdims=True)
    return to_dtype(total ** (1.0 / p), x.dtype)
