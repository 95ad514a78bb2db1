"""Normalization with given or computed statistics.

Source: BatchNormalization 1 to 15, InstanceNormalization 1 to 22, LayerNormalization 17,
GroupNormalization 21, LRN 1 and 13, LpNormalization 1 and 22.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxreduce_cli.executor.axes import one_axis
from onnxreduce_cli.executor.dtypes import FLOAT64, Array, dtype_of_number, to_dtype
from onnxreduce_cli.executor.errors import Invalid, NotSupported
from onnxreduce_cli.executor.registry import Call, kernel


def _trains(call: Call) -> bool:
    """Return whether a BatchNormalization is in training mode; from 7 to 13 its outputs decide."""
    if call.since >= 14:
        return bool(call.attrs["training_mode"])
    if call.since < 7:
        return not call.attrs["is_test"]
    return any(call.wants(i) for i in range(1, 5))


def _no_statistics_in_test_mode(call: Call) -> None:
    if not _trains(call) and any(call.wants(i) for i in range(1, 5)):
        raise NotSupported("outside of training only the first output is defined")


@kernel("BatchNormalization", 1, 6, 7, 9, 14, 15, check=_no_statistics_in_test_mode)
def batch_normalization(
    call: Call, x: Array, scale: Array, bias: Array, mean: Array, var: Array
) -> tuple[Array, ...]:
    """Normalise each channel (axis 1) by given statistics, or in training by its own.

    In training the running statistics are returned too, and before 14 those of the batch. The
    variance is that of the population, as 14 says; earlier texts do not say. Before 9, with
    `spatial` = 0, the statistics are for each element of a batch entry.
    """
    if x.ndim < 1:
        raise Invalid("X has rank 0")
    axes: tuple[int, ...] = (0,)
    if call.attrs.get("spatial", 1):
        axes += tuple(range(2, x.ndim))
        channels = x.shape[1] if x.ndim > 1 else 1
        if any(p.shape != (channels,) for p in (scale, bias, mean, var)):
            raise Invalid(f"scale, B, mean and var must have shape ({channels},)")
        shape: tuple[int, ...] = (-1,) + (1,) * (x.ndim - 2) if x.ndim > 1 else (1,)
    else:
        shape = x.shape[1:]
    factor, offset, middle, spread = (
        p.astype(FLOAT64).reshape(shape) for p in (scale, bias, mean, var)
    )
    wide = x.astype(FLOAT64)
    statistics: tuple[Array, ...] = ()
    if _trains(call):
        if not x.size:
            raise Invalid("X has no elements to compute statistics of")
        own = [function(wide, axis=axes).reshape(shape) for function in (np.mean, np.var)]
        momentum = call.attrs["momentum"]
        running = (
            old * momentum + new * (1 - momentum)
            for old, new in zip((middle, spread), own, strict=True)
        )
        statistics = tuple(
            to_dtype(value.reshape(mean.shape), mean.dtype) for value in (*running, *own)
        )
        middle, spread = own
    scaled = (wide - middle) / np.sqrt(spread + call.attrs["epsilon"])
    result = to_dtype(scaled * factor + offset, x.dtype)
    return (result, *statistics[: 2 if call.since >= 14 else 4])


@kernel("InstanceNormalization", 1, 6, 22)
def instance_normalization(call: Call, x: Array, scale: Array, bias: Array) -> Array:
    """Normalise each channel of each batch entry by its own mean and variance."""
    if x.ndim < 3 or scale.shape != x.shape[1:2] or bias.shape != x.shape[1:2]:
        raise Invalid(f"shapes {x.shape}, {scale.shape} and {bias.shape} do not fit together")
    wide = x.astype(FLOAT64)
    axes = tuple(range(2, x.ndim))
    centred = wide - wide.mean(axis=axes, keepdims=True)
    spread = np.mean(centred * centred, axis=axes, keepdims=True)
    shape = (-1,) + (1,) * (x.ndim - 2)
    scaled = centred / np.sqrt(spread + call.attrs["epsilon"])
    return to_dtype(
        scaled * scale.astype(FLOAT64).reshape(shape) + bias.astype(FLOAT64).reshape(shape),
        x.dtype,
    )


@kernel("LayerNormalization", 17)
def layer_normalization(
    call: Call, x: Array, scale: Array, bias: Array | None = None
) -> tuple[Any, ...]:
    """Normalise over the dimensions from `axis` on; return mean and 1 / deviation too.

    The statistics have the element type of `stash_type`; everything is computed in float64.
    """
    axis = one_axis(call.attrs["axis"], x.ndim)
    axes = tuple(range(axis, x.ndim))
    wide = x.astype(FLOAT64)
    mean = wide.mean(axis=axes, keepdims=True)
    centred = wide - mean
    spread = np.mean(centred * centred, axis=axes, keepdims=True)
    inverse = 1.0 / np.sqrt(spread + call.attrs["epsilon"])
    result = centred * inverse * scale.astype(FLOAT64)
    if bias is not None:
        result = result + bias.astype(FLOAT64)
    if result.shape != x.shape:
        raise Invalid(f"the scale or the bias is larger than the input, which has shape {x.shape}")
    stash = dtype_of_number(call.attrs["stash_type"])
    return to_dtype(result, x.dtype), to_dtype(mean, stash), to_dtype(inverse, stash)


@kernel("GroupNormalization", 21)
def group_normalization(call: Call, x: Array, scale: Array, bias: Array) -> Array:
    """Normalise groups of channels (axis 1).

    Everything is computed in float64. Empty data gives empty results, where the function body
    fails.
    """
    groups = call.attrs["num_groups"]
    if x.ndim < 3 or groups < 1 or x.shape[1] % groups:
        raise Invalid(f"{groups} groups cannot be made of an input of shape {x.shape}")
    if any(parameter.shape != x.shape[1:2] for parameter in (scale, bias)):
        raise Invalid(f"scale and bias must have shape ({x.shape[1]},)")
    if not x.size:
        return x.copy()
    wide = x.astype(FLOAT64).reshape(x.shape[0], groups, x.shape[1] // groups, -1)
    centred = wide - wide.mean(axis=(2, 3), keepdims=True)
    spread = np.mean(centred * centred, axis=(2, 3), keepdims=True)
    factor, offset = (p.astype(FLOAT64).reshape(groups, -1, 1) for p in (scale, bias))
    result = centred / np.sqrt(spread + call.attrs["epsilon"]) * factor + offset
    return to_dtype(result.reshape(x.shape), x.dtype)


@kernel("LRN", 1, 13)
def lrn(call: Call, x: Array) -> Array:
    """Divide by a power of the sum of squares over neighbouring channels (axis 1)."""
    if x.ndim < 2:
        raise Invalid(f"rank is {x.ndim}, it must be at least 2")
    size = call.attrs["size"]
    before, after = (size - 1) // 2, size // 2
    wide = x.astype(FLOAT64)
    squares = wide * wide
    total = np.zeros_like(wide)
    channels = x.shape[1]
    for c in range(channels):
        window = squares[:, max(0, c - before) : min(channels, c + after + 1)]
        total[:, c] = window.sum(axis=1)
    base = call.attrs["bias"] + call.attrs["alpha"] / size * total
    return to_dtype(wide / base ** call.attrs["beta"], x.dtype)


@kernel("LpNormalization", 1, 22)
def lp_normalization(call: Call, x: Array) -> Array:
    """Divide by the L1 or L2 norm along `axis`; where the norm is 0 the result is 0."""
    wide = x.astype(FLOAT64)
    axis, p = call.attrs["axis"], call.attrs["p"]
    if p not in (1, 2):
        raise Invalid(f"p is {p}, it must be 1 or 2")
    powers = np.absolute(wide) if p == 1 else wide * wide
    norm = np.sum(powers, axis=axis, keepdims=True)
    if p == 2:
        norm = np.sqrt(norm)
    return to_dtype(np.where(norm == 0, 0.0, wide / norm), x.dtype)
