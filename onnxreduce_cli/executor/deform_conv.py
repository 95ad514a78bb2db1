"""DeformConv.

Source: definitions 19 and 22. onnx.reference is not used, as it takes images only, and computes
coordinates in float whatever the dtype, by way of GridSample.
"""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from onnxreduce_cli.executor.dtypes import FLOAT64, INT64, Array, to_dtype
from onnxreduce_cli.executor.errors import Invalid
from onnxreduce_cli.executor.registry import Call, kernel


@kernel("DeformConv", 19, 22)
def deform_conv(
    call: Call,
    x: Array,
    w: Array,
    offset: Array,
    b: Array | None = None,
    mask: Array | None = None,
) -> Array:
    """Convolve data, interpolated linearly at the kernel's elements with their offsets."""
    axes, groups = x.ndim - 2, call.attrs["group"]
    window = tuple(call.attrs.get("kernel_shape") or w.shape[2:])
    if axes < 1 or window != w.shape[2:] or x.shape[1] != w.shape[1] * groups:
        raise Invalid(f"weights of shape {w.shape} do not fit data of shape {x.shape}")
    shared, after, n = call.attrs["offset_group"], offset.shape[2:], x.shape[0]
    places = _coordinates(call, x.shape[2:], window, after)
    elements = shared * prod(window)
    for name, given, wanted in (
        ("offset", offset, (n, elements * axes, *after)),
        ("B", b, (w.shape[0],)),
        ("mask", mask, (n, elements, *after)),
    ):
        if given is not None and given.shape != wanted:
            raise Invalid(f"{name} has shape {given.shape}, it must be {wanted}")
    moved = offset.reshape(n, shared, prod(window), axes, *after).astype(FLOAT64)
    taken = _interpolated(
        x.astype(FLOAT64).reshape(n, shared, -1, *x.shape[2:]),
        [moved[:, :, :, axis] + places[axis] for axis in range(axes)],
    )
    if mask is not None:
        taken = taken * mask.reshape(n, shared, 1, prod(window), *after).astype(FLOAT64)
    columns = taken.reshape(n, groups, w.shape[1] * prod(window), prod(after))
    matrices = w.astype(FLOAT64).reshape(groups, w.shape[0] // groups, -1)
    result = (matrices @ columns).reshape(n, w.shape[0], *after)
    if b is not None:
        result = result + b.astype(FLOAT64).reshape(-1, *[1] * axes)
    return to_dtype(result, x.dtype)


def _coordinates(
    call: Call, lengths: tuple[int, ...], window: tuple[int, ...], after: tuple[int, ...]
) -> list[Array]:
    """Return for each axis the coordinates without offsets, of shape (elements, *after)."""
    axes = len(lengths)
    strides = call.attrs.get("strides") or (1,) * axes
    dilations = call.attrs.get("dilations") or (1,) * axes
    pads = call.attrs.get("pads") or (0,) * (2 * axes)
    found = []
    for axis, length in enumerate(lengths):
        room = length + pads[axis] + pads[axis + axes] - (window[axis] - 1) * dilations[axis] - 1
        if room // strides[axis] + 1 != after[axis]:
            raise Invalid(f"offsets of {after[axis]} places do not fit axis {axis}")
        element = np.indices(window)[axis].reshape(-1, *[1] * axes) * dilations[axis]
        place = np.indices(after)[axis] * strides[axis] - pads[axis]
        found.append((element + place).astype(FLOAT64))
    return found


def _interpolated(x: Array, places: list[Array]) -> Array:
    """Return (N, G, C, *lengths) interpolated at coordinates (N, G, *taken); outside it is 0.

    What is no finite number is outside.
    """
    places = [np.where(np.isfinite(place), place, -2.0) for place in places]
    n, groups, channels, *lengths = x.shape
    flat = x.reshape(n, groups, channels, -1)
    taken = places[0].shape[2:]
    total = np.zeros((n, groups, channels, *taken))
    lower = [np.floor(place) for place in places]
    for corner in product((0, 1), repeat=len(places)):
        weight, index = np.ones(places[0].shape), np.zeros(places[0].shape, INT64)
        inside = np.ones(places[0].shape, bool)
        for place, low, step, length in zip(places, lower, corner, lengths, strict=True):
            whole = low + step
            weight *= 1 - np.absolute(place - whole)
            inside &= (whole >= 0) & (whole < length)
            index = index * length + np.clip(whole, 0, length - 1).astype(INT64)
        values = np.take_along_axis(flat, index.reshape(n, groups, 1, -1), axis=3)
        values = values.reshape(n, groups, channels, *taken)
        total += np.where(inside[:, :, None], values * weight[:, :, None], 0.0)
    return total
