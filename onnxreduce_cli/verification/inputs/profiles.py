"""Value profiles, and drawing tensors by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

from onnxreduce_cli.model.graph.values import finfo, iinfo, is_float, numpy_dtype
from onnxreduce_cli.verification.inputs.random_arrays import RandomArrays

Array = npt.NDArray[Any]

ORDINARY, SMALL, LARGE, ZEROS, SPECIAL = "ordinary", "small", "large", "zeros", "special"

#: Special values without the largest, which overflow if computed in another way (unusual); of
#: these without NaN, which has no place in an order (ordered), or without denormals, whose product
#: is zero or not by the order of multiplication (multiplied).
UNUSUAL, ORDERED, MULTIPLIED = "unusual", "ordered", "multiplied"

#: Ordinary values, with the model's own constants and their neighbours among them: else values
#: would hardly meet limits, or equal what they are compared with.
NEAR_CONSTANTS = "near"

#: Values at which the model decides, and their neighbours (deciding); multiples of a half, which
#: are ties (halves); the ends of integer types, and outliers (extreme); ordinary values, scaled
#: differently in each row (scaled); all elements next to a value that a reduction of them is
#: compared with (level).
DECIDING, HALVES, EXTREME, SCALED, LEVEL = "deciding", "halves", "extreme", "scaled", "level"

#: Integers at the ends of the ranges that the user states: the least, the largest, and both.
ENDS = "ends"

#: Value profiles in the order of the trials, and how many of them a large model gets.
PROFILES = (ORDINARY, SMALL, LARGE, ZEROS, DECIDING, SCALED, HALVES, EXTREME)
OF_LARGE = 6

#: Profiles that depend on what the model does with its inputs.
BY_THE_MODEL = frozenset({DECIDING, HALVES, EXTREME, SCALED, LEVEL})

#: Profiles of which many rows see more than few.
OF_MANY_ROWS = BY_THE_MODEL - {LEVEL} | {SPECIAL, UNUSUAL}

_STRINGS = ("", "a", "word", "Word two", "été", "日本", "0")


def profiles(trials: int, special: bool = False) -> list[str]:
    """Return the value profiles of trials; `special` adds one for each five."""
    found = [PROFILES[trial % len(PROFILES)] for trial in range(trials)]
    return found + [SPECIAL] * (-(-trials // 5) if special else 0)


def draw_array(
    shape: tuple[int, ...],
    elem_type: int,
    values: str,
    rng: RandomArrays,
    *,
    negative: bool = False,
) -> Array:
    """Draw a tensor.

    Args:
        shape: its shape.
        elem_type: its `TensorProto.DataType`.
        values: the value profile: floats of ordinary size (about 1), small (1e-3), large (1e3;
            100 in 16 bits and 10 in fewer), zeros, or ordinary ones with NaN, infinities,
            both zeros, denormals and the largest among them (`UNUSUAL`: all but the largest;
            `ORDERED`: without NaN too; `MULTIPLIED`: without denormals too).
            Integers go up to 9, 1, 100 and 0, booleans are drawn in all but zeros.
        rng: where the numbers come from.
        negative: whether integers may be negative.
    """
    if elem_type == TensorProto.STRING:
        strings = np.array(_STRINGS, object)
        chosen: Array = strings[rng.integers(0, len(strings), shape)]
        return np.asarray(chosen, object).reshape(shape)
    dtype = numpy_dtype(elem_type)
    if dtype.kind == "b":
        drawn = np.asarray(rng.integers(0, 2, shape), bool)
        return np.zeros(shape, bool) if values == ZEROS else drawn
    if dtype.kind == "c":
        parts = [rng.standard_normal(shape) for _ in range(2)]
        complexes: Array = (parts[0] + 1j * parts[1]).astype(dtype)
        return np.zeros(shape, dtype) if values == ZEROS else complexes
    if is_float(dtype):
        return _floats(shape, dtype, values, rng)
    info = iinfo(dtype)
    high = min({SMALL: 1, LARGE: 100, ZEROS: 0}.get(values, 9), int(info.max))
    low = max(-high, int(info.min)) if negative else 0
    integers = rng.integers(low, high + 1, shape)
    if values == SPECIAL and negative and integers.size:
        where = rng.random(shape) < 0.2
        integers = np.where(where, rng.choice([int(info.min), 0]), integers)
    return np.asarray(integers).astype(dtype)


def constant_drawer(seed: int = 0) -> Callable[[tuple[int, ...], int], Array]:
    """Return what draws constants of ordinary values, of a shape and a `TensorProto.DataType`."""
    rng = RandomArrays(seed)
    return lambda shape, elem_type: draw_array(shape, elem_type, ORDINARY, rng)


def _floats(shape: tuple[int, ...], dtype: np.dtype[Any], values: str, rng: RandomArrays) -> Array:
    if values == ZEROS:
        return np.zeros(shape, dtype)
    large = {4: 1e3, 8: 1e3, 2: 1e2}.get(dtype.itemsize, 10.0)
    scale = {SMALL: 1e-3, LARGE: large}.get(values, 1.0)
    drawn = np.asarray(rng.standard_normal(shape) * scale)
    if dtype.itemsize == 1:
        drawn = np.clip(drawn, -large, large)
    array: Array = drawn.astype(dtype)
    if values not in (SPECIAL, UNUSUAL, ORDERED, MULTIPLIED) or not array.size:
        return array
    # Not everywhere: what a NaN meets becomes NaN, and hides all the rest.
    flat = array.reshape(-1).copy()
    count = max(1, flat.size // 4)
    places = rng.permutation(flat.size)[:count]
    pool = special_values(dtype, largest=values == SPECIAL)
    if values == ORDERED:
        pool = pool[~np.isnan(pool)]
    elif values == MULTIPLIED:
        pool = pool[(pool == 0) | ~np.isfinite(pool)]
    flat[places] = pool[(rng.integers(0, len(pool)) + np.arange(count)) % len(pool)]
    return flat.reshape(shape)


def special_values(dtype: np.dtype[Any], *, largest: bool = True) -> Array:
    """Return NaN, infinities, both zeros, denormals and the largest, where a dtype has them."""
    info = finfo(dtype)
    top, denormal = float(info.max), float(info.smallest_subnormal)
    wanted = [0.0, denormal, -0.0, -denormal]
    if dtype.itemsize > 1:
        wanted = [np.nan, 0.0, np.inf, denormal, -np.inf, -0.0, -denormal]
    if largest:
        wanted += [top, -top]
    with np.errstate(all="ignore"):
        return np.array(wanted, np.float64).astype(dtype)


def with_constants(array: Array, constants: list[Array], rng: RandomArrays) -> Array:
    """Put constants of the same kind, and their neighbours, among the elements of a tensor."""
    integers = array.dtype.kind in "iu"
    if not array.size or not (integers or is_float(array.dtype)):
        return array
    # Integers as Python's: near the ends of int64 no other type is exact.
    limits = iinfo(array.dtype) if integers else finfo(array.dtype)
    low, high = (int(end) if integers else float(end) for end in (limits.min, limits.max))
    mixed = array.astype(object if integers else np.float64)
    for constant in constants:
        if (constant.dtype.kind in "iu") != integers or not constant.size:
            continue
        values = constant.astype(mixed.dtype)
        try:
            # Of the same shape, each beside the element that it meets.
            values = np.broadcast_to(values, mixed.shape)
        except ValueError:
            values = rng.choice(values.reshape(-1), mixed.shape)
        values = values + rng.integers(-1, 2, mixed.shape)
        fits = (values >= low) & (values <= high)
        mixed = np.where(np.asarray(fits, bool) & (rng.random(mixed.shape) < 0.3), values, mixed)
    return mixed.astype(array.dtype)


def signed_integers(shape: tuple[int, ...], dtype: np.dtype[Any], rng: RandomArrays) -> Array:
    """Draw integers of up to 9, negative ones too where the dtype has them."""
    low = -9 if dtype.kind == "i" else 0
    info = iinfo(dtype)
    drawn = rng.integers(max(low, int(info.min)), min(9, int(info.max)) + 1, shape)
    return np.asarray(drawn).astype(dtype)


def halves(shape: tuple[int, ...], dtype: np.dtype[Any], rng: RandomArrays) -> Array:
    """Draw multiples of a half, up to 8."""
    return np.asarray(rng.integers(-16, 17, shape) / 2.0).astype(dtype)


def extreme_integers(shape: tuple[int, ...], dtype: np.dtype[Any], rng: RandomArrays) -> Array:
    """Draw integers of all of a dtype's range, its ends among them."""
    info = iinfo(dtype)
    low, high = int(info.min), int(info.max)
    # Of each number of bits as many: all of the range would have large ones alone.
    bits = rng.integers(1, 8 * dtype.itemsize + 1, shape)
    drawn = [
        min(high, max(low, int(sign) * (int(number) >> (63 - int(bit)))))
        for sign, number, bit in zip(
            rng.choice([-1, 1] if low else [1], (bits.size,)),
            rng.integers(0, (1 << 63) - 1, bits.shape).reshape(-1),
            np.minimum(bits, 63).reshape(-1),
            strict=True,
        )
    ]
    ends = [low, low + 1, high - 1, high, -1 if low else 1, 0]
    for place in np.flatnonzero(rng.random((bits.size,)) < 0.4):
        drawn[place] = ends[int(rng.integers(0, len(ends)))]
    return np.array(drawn, dtype).reshape(shape)


def outliers(shape: tuple[int, ...], dtype: np.dtype[Any], rng: RandomArrays) -> Array:
    """Draw ordinary floats with some large ones among them."""
    most = {4: 4.0, 8: 4.0, 2: 3.0}.get(dtype.itemsize, 1.0)
    drawn = rng.standard_normal(shape)
    factors = 10.0 ** rng.uniform(1, most, shape) if most > 1 else 1.0
    return np.asarray(np.where(rng.random(shape) < 0.15, drawn * factors, drawn)).astype(dtype)


def scaled_rows(shape: tuple[int, ...], dtype: np.dtype[Any], rng: RandomArrays) -> Array:
    """Draw floats of another scale in each row, from a ten-thousandth to ten."""
    rows = shape[:1] if len(shape) > 1 else ()
    scales = 10.0 ** rng.uniform(-4, 1, rows)
    scales = scales.reshape(rows + (1,) * (len(shape) - len(rows)))
    return np.asarray(rng.standard_normal(shape) * scales).astype(dtype)


def next_to(array: Array, values: list[Array], rng: RandomArrays, share: float = 0.6) -> Array:
    """Put values, and their neighbours near and far, in the place of elements of a tensor."""
    if not array.size or not values:
        return array
    integers = array.dtype.kind in "iu"
    chosen = rng.integers(0, len(values), array.shape)
    mixed = np.zeros(array.shape)
    for number, value in enumerate(values):
        try:
            # Of the same shape, each beside the element that it meets.
            spread = np.broadcast_to(value, array.shape)
        except ValueError:
            spread = rng.choice(value.reshape(-1), array.shape)
        mixed = np.where(chosen == number, spread, mixed)
    sign = rng.choice([-1, 0, 0, 1], array.shape)
    if integers:
        mixed = np.round(mixed) + sign
        low, high = (float(end) for end in (iinfo(array.dtype).min, iinfo(array.dtype).max))
        fits = (mixed >= low) & (mixed < high)
    else:
        step = 10.0 ** rng.uniform(-4, -1, array.shape)
        mixed = mixed + sign * step * np.maximum(1.0, np.abs(mixed))
        fits = np.abs(mixed) <= float(finfo(array.dtype).max)
    picked = fits & (rng.random(array.shape) < share)
    array = array.copy()
    array[picked] = mixed[picked].astype(array.dtype)
    return array


def one_next_to(array: Array, values: list[Array], number: int) -> Array:
    """Put a value, or a number next to one, in the place of the only element of a tensor.

    Args:
        array: the tensor.
        values: the values.
        number: each gives the next in turn.
    """
    flat = np.concatenate([value.reshape(-1) for value in values])
    step = 1.0 if array.dtype.kind in "iu" else 1e-3 * np.maximum(1.0, np.abs(flat))
    chosen = np.concatenate([flat, flat + step, flat - step])
    value = chosen[number % chosen.size]
    info = iinfo(array.dtype) if array.dtype.kind in "iu" else finfo(array.dtype)
    fits = float(info.min) <= value < float(info.max)
    return np.full_like(array, value) if fits else array


def beyond(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    level: tuple[str, float],
    above: bool,
    rng: RandomArrays,
) -> Array:
    """Draw elements of which the largest, the least or the mean is next to a value.

    Args:
        shape: their shape.
        dtype: their dtype.
        level: ``max``, ``min`` or ``mean``, and the value.
        above: whether it is a little above the value, else below.
        rng: where the numbers come from.
    """
    kind, value = level
    size = max(1.0, abs(value))
    if dtype.kind in "iu":
        near = np.full(shape, round(value) + (1 if above else -1), np.float64)
    else:
        step = 10.0 ** rng.uniform(-3, -1, shape) * size
        near = value + (step if above else -step)
    drawn = rng.standard_normal(shape)
    if kind == "mean":
        around = drawn - drawn.mean(-1, keepdims=True) if shape and dtype.kind == "f" else 0.0
        found = near + around
    elif (kind == "max") == above:  # One element is enough.
        usual = rng.random(shape) < 0.5
        usual.reshape(-1)[:1] = False
        found = np.where(usual, drawn, near)
    else:
        wide = value + np.abs(drawn) * (size if above else -size)
        found = np.where(rng.random(shape) < 0.5, wide, near)
    if dtype.kind in "iu":
        info = iinfo(dtype)
        found = np.clip(np.round(found), float(info.min), float(info.max))
    return np.asarray(found).astype(dtype)
