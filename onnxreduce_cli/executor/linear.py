"""Products of matrices and convolutions.

Source: MatMul 1 to 13, Gemm 1 to 13, Conv 1 to 22, ConvTranspose 1 to 22.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np

from onnxreduce_cli.executor.broadcast import one_way
from onnxreduce_cli.executor.dtypes import FLOAT64, Array, is_float, to_dtype, wider
from onnxreduce_cli.executor.errors import Invalid, NotSupported
from onnxreduce_cli.executor.registry import Call, kernel
from onnxreduce_cli.executor.windows import geometry, per_dimension, windows

#: How many elements of windows a convolution copies at a time.
_MOST_COPIED = 1 << 20


@kernel("MatMul", 1, 9, 13)
def mat_mul(call: Call, a: Array, b: Array) -> Array:
    """Multiply matrices as numpy.matmul does, leading dimensions broadcast."""
    return to_dtype(np.matmul(wider(a), wider(b)), a.dtype)


@kernel("Gemm", 1, 6, 7, 9, 11, 13)
def gemm(call: Call, a: Array, b: Array, c: Array | None = None) -> Array:
    """Compute alpha * A' * B' + beta * C.

    Before 7, C broadcasts only with `broadcast`; from 11 it may be left out.
    """
    if a.ndim != 2 or b.ndim != 2:
        raise Invalid(f"A and B have ranks {a.ndim} and {b.ndim}, they must have rank 2")
    left = a.T if call.attrs["transA"] else a
    right = b.T if call.attrs["transB"] else b
    alpha, beta = call.attrs["alpha"], call.attrs["beta"]
    result = np.matmul(wider(left), wider(right))
    if (
        c is not None
        and call.since < 7
        and not call.attrs["broadcast"]
        and (c.shape != result.shape)
    ):
        raise Invalid(f"C has shape {c.shape} instead of {result.shape}, broadcast is not set")
    if is_float(a.dtype):
        result = result * np.array(alpha, dtype=result.dtype)
        if c is not None:
            added = wider(one_way(c, result.shape))
            result = result + added * np.array(beta, dtype=result.dtype)
    else:
        if alpha != int(alpha) or beta != int(beta):
            raise Invalid("alpha and beta must be whole numbers for integer types")
        result = result * np.array(int(alpha)).astype(a.dtype)
        if c is not None:
            result = result + one_way(c, result.shape) * np.array(int(beta)).astype(a.dtype)
    return to_dtype(result, a.dtype)


@kernel("Einsum", 12, 28)
def einsum(call: Call, *arrays: Array) -> Array:
    """Compute the sums of products that `equation` describes, as numpy.einsum does."""
    result = np.einsum(call.attrs["equation"].strip(), *(wider(array) for array in arrays))
    return to_dtype(result, arrays[0].dtype)


@kernel("Det", 11, 22)
def det(call: Call, x: Array) -> Array:
    """Return the determinants of the matrices in the last two dimensions."""
    return to_dtype(np.linalg.det(x.astype(FLOAT64)), x.dtype)


@kernel("Conv", 1, 11, 22)
def conv(call: Call, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Convolve (N, C, spatial...) with (M, C / group, kernel...)."""
    return _with_bias(convolved(call, wider(x), wider(w)), bias, x)


def convolved(call: Call, x: Array, w: Array) -> Array:
    """Convolve by the attributes of Conv, without bias, in the dtype of the arrays."""
    groups = call.attrs["group"]
    if x.ndim < 3 or w.ndim != x.ndim:
        raise Invalid(f"X and W have ranks {x.ndim} and {w.ndim}")
    if x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        raise Invalid(f"shapes {x.shape} and {w.shape} do not fit {groups} groups")
    if tuple(call.attrs.get("kernel_shape") or w.shape[2:]) != w.shape[2:]:
        raise Invalid(f"kernel_shape differs from W's {w.shape[2:]}")
    place = geometry(call, x.shape[2:], w.shape[2:])
    view = windows(x, place, 0)
    count = len(place.kernel)
    inputs, outputs = w.shape[1], w.shape[0] // groups
    axes = ((1, *range(2 + count, 2 + 2 * count)), tuple(range(1, 2 + count)))
    result = np.empty((x.shape[0], w.shape[0], *place.output), np.result_type(x, w))
    # tensordot copies the windows, which are many times the size of the data.
    copied = x.shape[0] * inputs * prod(place.output[1:]) * prod(place.kernel)
    step = max(1, _MOST_COPIED // max(1, copied))
    for g, start in product(range(groups), range(0, place.output[0], step)):
        data = view[:, g * inputs : (g + 1) * inputs, start : start + step]
        part = np.tensordot(data, w[g * outputs : (g + 1) * outputs], axes=axes)
        target = result[:, g * outputs : (g + 1) * outputs, start : start + step]
        target[...] = np.moveaxis(part, -1, 1)
    return result


def need_one_each(bias: Array, channels: int) -> None:
    """Raise Invalid unless a bias has one value for each channel."""
    if bias.shape != (channels,):
        raise Invalid(f"B has shape {bias.shape}, {channels} values are needed")


def _with_bias(result: Array, bias: Array | None, x: Array) -> Array:
    if bias is not None:
        need_one_each(bias, result.shape[1])
        result = result + wider(bias).reshape((-1,) + (1,) * (x.ndim - 2))
    return to_dtype(result, x.dtype)


@kernel("ConvTranspose", 1, 11, 22)
def conv_transpose(call: Call, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Compute the transpose of Conv for (N, C, spatial...) and (C, M / group, kernel...)."""
    groups = call.attrs["group"]
    if x.ndim < 3 or w.ndim != x.ndim or x.shape[1] != w.shape[0] or x.shape[1] % groups:
        raise Invalid(f"shapes {x.shape} and {w.shape} do not fit {groups} groups")
    spatial, kernel_shape = x.shape[2:], w.shape[2:]
    count = len(spatial)
    if tuple(call.attrs.get("kernel_shape") or kernel_shape) != kernel_shape:
        raise Invalid(f"kernel_shape differs from W's {kernel_shape}")
    strides = per_dimension(call, "strides", count, 1)
    dilations = per_dimension(call, "dilations", count, 1)
    added = per_dimension(call, "output_padding", count, 0)
    full = [
        strides[i] * (spatial[i] - 1) + added[i] + (kernel_shape[i] - 1) * dilations[i] + 1
        for i in range(count)
    ]
    begins, sizes = _transposed_extent(call, full, spatial, strides)
    inputs, outputs = x.shape[1] // groups, w.shape[1]
    wide, weights = wider(x), wider(w)
    total = [max(full[i], begins[i] + sizes[i]) for i in range(count)]
    result = np.zeros((x.shape[0], outputs * groups, *total), dtype=wide.dtype)
    for g in range(groups):
        source = wide[:, g * inputs : (g + 1) * inputs]
        target = result[:, g * outputs : (g + 1) * outputs]
        for at in product(*map(range, kernel_shape)):
            tap: Any = (slice(g * inputs, (g + 1) * inputs), slice(None), *at)
            taps = weights[tap]
            spread = np.moveaxis(np.tensordot(source, taps, axes=((1,), (0,))), -1, 1)
            starts = [at[i] * dilations[i] for i in range(count)]
            target[
                (
                    slice(None),
                    slice(None),
                    *(
                        slice(starts[i], starts[i] + strides[i] * (spatial[i] - 1) + 1, strides[i])
                        for i in range(count)
                    ),
                )
            ] += spread
    cut = tuple(slice(begins[i], begins[i] + sizes[i]) for i in range(count))
    return _with_bias(result[(slice(None), slice(None), *cut)], bias, x)


def _transposed_extent(
    call: Call, full: list[int], spatial: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[list[int], list[int]]:
    """Return the start of the output in the full result, and its size, for each dimension."""
    count = len(spatial)
    mode = call.attrs.get("auto_pad", "NOTSET")
    wanted = call.attrs.get("output_shape")
    if wanted is None and mode in {"SAME_UPPER", "SAME_LOWER"}:
        wanted = [spatial[i] * strides[i] for i in range(count)]
    if wanted is None:
        pads = (0,) * (2 * count)
        if mode == "NOTSET":
            pads = per_dimension(call, "pads", 2 * count, 0)
        sizes = [full[i] - pads[i] - pads[i + count] for i in range(count)]
        if min(sizes) < 0:
            raise Invalid(f"pads {list(pads)} are larger than the result {full}")
        return list(pads[:count]), sizes
    sizes = list(wanted)[-count:]
    begins = []
    for i in range(count):
        total = max(full[i] - sizes[i], 0)
        if call.since < 11 and total % 2:
            raise NotSupported("definition 1 contradicts itself on where odd padding goes")
        begins.append(total // 2 if mode == "SAME_UPPER" else total - total // 2)
    return begins, sizes
