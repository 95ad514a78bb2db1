"""Upsample and Resize, in every version.

Source: Upsample 1 (`height_scale`, `width_scale`), 7 (`scales` attribute), 9 (input); Resize
10, 11 and 13 (`sizes`, `roi`, named mappings of coordinates), 18 (`antialias`, `axes`,
`keep_aspect_ratio_policy`), 19 (`half_pixel_symmetric`). Upsample and Resize 10 name no
mapping and have the one later called `asymmetric`.

All modes are separable: each axis is resampled by itself, each output element from a few
neighbours ("taps") with weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from operator import itemgetter
from typing import Any

import numpy as np

from onnxreduce_cli.executor.axes import many_axes
from onnxreduce_cli.executor.dtypes import FLOAT64, INT64, Array, is_float, to_dtype
from onnxreduce_cli.executor.errors import Invalid, NotSupported
from onnxreduce_cli.executor.registry import Call, kernel


@dataclass(slots=True, frozen=True)
class ResampledAxis:
    """The sizes by which an axis is resampled.

    `scale` is the definition's, `width` the output length before it is rounded to the
    integer `size`; `start` and `end` are the region of interest.
    """

    scale: float
    width: float
    size: int
    start: float = 0.0
    end: float = 1.0


def _coordinates(
    axis: ResampledAxis, length: int, mapping: str, dtype: type[np.floating[Any]]
) -> Array:
    """Return the input coordinate of each output index, as float64 computed in `dtype`."""
    places = np.arange(axis.size, dtype=dtype)
    scale, half = dtype(axis.scale), dtype(0.5)
    if mapping == "asymmetric":
        return (places / scale).astype(FLOAT64)
    if mapping == "half_pixel" or (mapping == "pytorch_half_pixel" and axis.size > 1):
        return ((places + half) / scale - half).astype(FLOAT64)
    if mapping == "pytorch_half_pixel":
        return np.zeros(axis.size)
    if mapping == "tf_half_pixel_for_nn":
        return ((places + half) / scale).astype(FLOAT64)
    if mapping == "half_pixel_symmetric":
        # The sum is rounded once: it is often whole, or halfway between two elements.
        width = axis.width if dtype is np.float32 else length * axis.scale
        offset = dtype(length / 2) * dtype(1 - dtype(axis.size / width))
        centred = (places.astype(FLOAT64) + 0.5) / float(scale) - 0.5
        return (float(offset) + centred).astype(dtype).astype(FLOAT64)
    if mapping == "align_corners":
        if axis.width != axis.size:
            raise NotSupported("align_corners is disputed where length times scale is no integer")
        if axis.size == 1:
            return np.zeros(1)
        return (places * dtype(length - 1) / dtype(axis.size - 1)).astype(FLOAT64)
    if mapping == "tf_crop_and_resize":
        if axis.size == 1:
            return np.array([0.5 * (axis.start + axis.end) * (length - 1)])
        start, end, last = dtype(axis.start), dtype(axis.end), dtype(length - 1)
        apart = places * (end - start) * last / dtype(axis.size - 1)
        return (start * last + apart).astype(FLOAT64)
    raise Invalid(f"coordinate_transformation_mode {mapping!r} is unknown")


def _dtype_of_coordinates(x: Array, mode: str) -> type[np.floating[Any]]:
    """Return the dtype to compute coordinates in, which decides which element is the nearest.

    It is float32, as in runtimes, but for the weights of doubles.
    """
    return np.float64 if x.dtype == FLOAT64 and mode != "nearest" else np.float32


def _nearest(places: Array, rounding: str) -> Array:
    if rounding == "round_prefer_floor":
        return np.ceil(places - 0.5)
    if rounding == "round_prefer_ceil":
        return np.floor(places + 0.5)
    if rounding == "floor":
        return np.floor(places)
    if rounding == "ceil":
        return np.ceil(places)
    raise Invalid(f"nearest_mode {rounding!r} is unknown")


def _filter(distance: Array, mode: str, cubic: float) -> Array:
    """Return the weight of a tap at a distance: a triangle, or the cubic convolution kernel."""
    d = np.absolute(distance)
    if mode == "linear":
        return np.maximum(1 - d, 0.0)
    near = (cubic + 2) * d**3 - (cubic + 3) * d**2 + 1
    far = cubic * (d**3 - 5 * d**2 + 8 * d - 4)
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def _weighted(
    data: Array,
    at: int,
    places: Array,
    mode: str,
    *,
    cubic: float = -0.75,
    stretch: float = 1.0,
    exclude_outside: bool = False,
) -> Array:
    """Resample float64 data along one axis; beyond its ends the last element is repeated.

    `stretch` below 1 widens the filter (antialiasing).
    """
    length = data.shape[at]
    reach = (1 if mode == "linear" else 2) / stretch
    count = 2 * ceil(reach)
    first = np.floor(places).astype(INT64) - ceil(reach) + 1
    taps = first[:, None] + np.arange(count)
    weights = _filter((taps - places[:, None]) * stretch, mode, cubic)
    if exclude_outside:
        weights = np.where((taps < 0) | (taps >= length), 0.0, weights)
    if exclude_outside or stretch != 1.0:
        weights = weights / weights.sum(axis=1, keepdims=True)
    taps = np.clip(taps, 0, length - 1)
    shape = (-1,) + (1,) * (data.ndim - at - 1)
    total = np.zeros((*data.shape[:at], len(places), *data.shape[at + 1 :]))
    for tap in range(count):
        weight = weights[:, tap].reshape(shape)
        # An infinity with weight 0 is no part of the result.
        total += np.where(weight == 0, 0.0, np.take(data, taps[:, tap], axis=at) * weight)
    return total


def _plain(x: Array, scales: Sequence[float], mode: str) -> Array:
    """Resample as Upsample and Resize 10 do: asymmetric, the nearest element by floor."""
    if len(scales) != x.ndim:
        raise Invalid(f"{len(scales)} scales are given for rank {x.ndim}")
    if mode not in {"nearest", "linear", "bilinear"}:
        raise Invalid(f"mode {mode!r} is unknown")
    if mode != "nearest" and not is_float(x.dtype):
        raise NotSupported("how linear interpolation rounds integers is not specified")
    result = x if mode == "nearest" else x.astype(FLOAT64)
    dtype = _dtype_of_coordinates(x, mode)
    for at, scale in enumerate(scales):
        axis = _scaled(x.shape[at], scale)
        places = _coordinates(axis, x.shape[at], "asymmetric", dtype)
        if scale == 1:
            continue
        if mode == "nearest":
            picks = np.minimum(np.floor(places).astype(INT64), x.shape[at] - 1)
            result = np.take(result, picks, axis=at)
        else:
            result = _weighted(result, at, places, "linear")
    return to_dtype(result, x.dtype)


def _scaled(length: int, scale: float) -> ResampledAxis:
    # The product is taken in float32: 10 * 0.7 must be 7.
    width = float(np.float32(length) * np.float32(scale))
    return ResampledAxis(scale, width, floor(width))


def _at_least_one(scales: Sequence[float]) -> Sequence[float]:
    if any(scale < 1 for scale in scales):
        raise Invalid(f"scales {list(scales)} must be at least 1")
    return scales


@kernel("Upsample", 1)
def upsample_1(call: Call, x: Array) -> Array:
    """Enlarge the last two of four dimensions."""
    if x.ndim != 4:
        raise Invalid(f"rank is {x.ndim}, it must be 4")
    scales = (1.0, 1.0, call.attrs["height_scale"], call.attrs["width_scale"])
    return _plain(x, _at_least_one(scales), call.attrs["mode"])


@kernel("Upsample", 7)
def upsample_7(call: Call, x: Array) -> Array:
    """Enlarge by the attribute `scales`."""
    return _plain(x, _at_least_one(call.attrs["scales"]), call.attrs["mode"])


@kernel("Upsample", 9)
def upsample_9(call: Call, x: Array, scales: Array) -> Array:
    """Enlarge by the input `scales`."""
    return _plain(x, _at_least_one([float(s) for s in scales]), call.attrs["mode"])


@kernel("Resize", 10)
def resize_10(call: Call, x: Array, scales: Array) -> Array:
    """Resize by the input `scales`, which may also shrink."""
    factors = [float(s) for s in scales]
    if any(factor <= 0 for factor in factors):
        raise Invalid(f"scales {factors} must be positive")
    if call.attrs["mode"] == "nearest" and any(factor < 1 for factor in factors):
        raise NotSupported("which element is nearest when shrinking is not specified")
    return _plain(x, factors, call.attrs["mode"])


@kernel("Resize", 11, 13, 18, 19)
def resize_11(
    call: Call,
    x: Array,
    roi: Array | None = None,
    scales: Array | None = None,
    sizes: Array | None = None,
) -> Array:
    """Resize by `scales` or to `sizes`; an empty tensor counts as absent.

    Integers are resized in mode nearest only, as the definition does not say how to round.
    """
    attrs = call.attrs
    mode, mapping = attrs["mode"], attrs["coordinate_transformation_mode"]
    if mode not in {"nearest", "linear", "cubic"}:
        raise Invalid(f"mode {mode!r} is unknown")
    if mode != "nearest" and not is_float(x.dtype):
        raise NotSupported("how interpolation rounds integers is not specified")
    along = many_axes(attrs.get("axes", range(x.ndim)), x.ndim)
    axes = _axes(call, x, along, roi, scales, sizes)
    result = x if mode == "nearest" else x.astype(FLOAT64)
    dtype = _dtype_of_coordinates(x, mode)
    outside: list[tuple[int, Array]] = []
    # In order, so that the same sums are rounded equally however the axes are listed.
    for at, axis in sorted(zip(along, axes, strict=True), key=itemgetter(0)):
        length = x.shape[at]
        places = _coordinates(axis, length, mapping, dtype)
        if mapping == "tf_crop_and_resize":
            outside.append((at, (places < 0) | (places > length - 1)))
        elif axis.scale == 1 and axis.size == length:
            continue
        if mode == "nearest":
            picks = _nearest(places, attrs["nearest_mode"]).astype(INT64)
            result = np.take(result, np.clip(picks, 0, length - 1), axis=at)
            continue
        result = _weighted(
            result,
            at,
            places,
            mode,
            cubic=attrs["cubic_coeff_a"],
            stretch=min(axis.scale, 1.0) if attrs.get("antialias", 0) else 1.0,
            exclude_outside=bool(attrs["exclude_outside"]),
        )
    for at, beyond in outside:
        shape = (-1,) + (1,) * (x.ndim - at - 1)
        result = np.where(beyond.reshape(shape), attrs["extrapolation_value"], result)
    return to_dtype(result, x.dtype)


def _axes(
    call: Call,
    x: Array,
    along: tuple[int, ...],
    roi: Array | None,
    scales: Array | None,
    sizes: Array | None,
) -> list[ResampledAxis]:
    """Return the scale and output size of each axis that is resized."""
    count = len(along)
    given = [v for v in (scales, sizes) if v is not None and v.size]
    if len(given) != 1 or given[0].shape != (count,):
        raise Invalid(f"either scales or sizes must be given, {count} of them")
    crop = call.attrs["coordinate_transformation_mode"] == "tf_crop_and_resize"
    if crop and (roi is None or roi.shape != (2 * count,)):
        raise Invalid(f"tf_crop_and_resize needs a roi of {2 * count} values")
    region = [float(v) for v in roi] if crop and roi is not None else [0.0] * count + [1.0] * count
    lengths = [x.shape[at] for at in along]
    if scales is not None and scales.size:
        factors = [float(s) for s in scales]
        if any(factor <= 0 for factor in factors):
            raise Invalid(f"scales {factors} must be positive")
        parts = [region[count + i] - region[i] for i in range(count)]
        widths = [
            float(np.float32(n) * np.float32(part) * np.float32(factor))
            for n, part, factor in zip(lengths, parts, factors, strict=True)
        ]
        final = [floor(width) for width in widths]
        if min(final, default=0) < 0:
            raise Invalid(f"a region of {region} ends before it begins")
    else:
        factors, widths, final = _from_sizes(call, lengths, [int(v) for v in given[0]])
    return [
        ResampledAxis(factor, width, size, region[i], region[count + i])
        for i, (factor, width, size) in enumerate(zip(factors, widths, final, strict=True))
    ]


def _from_sizes(
    call: Call, lengths: list[int], sizes: list[int]
) -> tuple[list[float], list[float], list[int]]:
    """Return the scales, and the output lengths before and after rounding."""
    policy = call.attrs.get("keep_aspect_ratio_policy", "stretch")
    if 0 in lengths or min(sizes) < 0:
        raise Invalid(f"sizes {sizes} cannot be made of {lengths}")
    ratios = [Fraction(size, n) for size, n in zip(sizes, lengths, strict=True)]
    if policy == "stretch":
        return [float(ratio) for ratio in ratios], [float(size) for size in sizes], sizes
    if policy not in {"not_larger", "not_smaller"}:
        raise Invalid(f"keep_aspect_ratio_policy {policy!r} is unknown")
    ratio = min(ratios) if policy == "not_larger" else max(ratios)
    widths = [n * ratio for n in lengths]
    rounded = [floor(width + Fraction(1, 2)) for width in widths]
    return [float(ratio)] * len(sizes), [float(width) for width in widths], rounded
