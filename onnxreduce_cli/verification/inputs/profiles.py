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

#: Value profiles in the order of the trials; with special values, the last is `SPECIAL`.
PROFILES = (ORDINARY, SMALL, LARGE, ZEROS, ORDINARY)

_STRINGS = ("", "a", "word", "Word two", "été", "日本", "0")


def profile(trial: int, trials: int, special: bool) -> str:
    """Return the value profile of a trial; with `special`, some trials have special values."""
    if special and trial % len(PROFILES) == min(trials, len(PROFILES)) - 1:
        return SPECIAL
    return PROFILES[trial % len(PROFILES)]


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
