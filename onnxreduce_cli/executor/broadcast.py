"""The broadcasting rules of the different opsets."""

from __future__ import annotations

import numpy as np

from onnxreduce_cli.executor.dtypes import Array
from onnxreduce_cli.executor.errors import Invalid
from onnxreduce_cli.executor.registry import Call


def legacy(call: Call, left: Array, right: Array) -> Array:
    """Return `right` in a shape that fits `left`, by the attributes `broadcast` and `axis`.

    Source: Add 1 and 6 and similar operators before opset 7. Without `broadcast` the shapes are
    equal; with it, `right` has one element, or its shape is a contiguous part of `left`'s:
    the last dimensions, or those from `axis` on.
    """
    if not call.attrs.get("broadcast", 0):
        if left.shape != right.shape:
            raise Invalid(f"shapes {left.shape} and {right.shape} differ and broadcast is not set")
        return right
    if right.size == 1 and right.ndim <= left.ndim:
        return right.reshape((1,) * left.ndim)
    axis = call.attrs.get("axis")
    start = left.ndim - right.ndim if axis is None else int(axis)
    if start < 0 and axis is not None:
        start += left.ndim
    if start < 0 or left.shape[start : start + right.ndim] != right.shape:
        raise Invalid(f"shape {right.shape} is no contiguous part of {left.shape} at axis {start}")
    return right.reshape(right.shape + (1,) * (left.ndim - start - right.ndim))


def one_way(array: Array, shape: tuple[int, ...]) -> Array:
    """Broadcast `array` to exactly `shape`; raise Invalid if it does not fit."""
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise Invalid(f"shape {array.shape} does not broadcast to {shape}") from None


def same_shapes(arrays: tuple[Array, ...]) -> None:
    """Raise Invalid unless all shapes are equal, as variadic operators before opset 8 require."""
    if any(array.shape != arrays[0].shape for array in arrays):
        raise Invalid(f"shapes differ: {[array.shape for array in arrays]}")
