"""Cast and CastLike, in every version.

Source: Cast 1 (`to` is a type's name), 6 (its number), 9 (strings), 13 (bfloat16), 19
(float 8, `saturate`), 21 (4-bit integers), 23 to 28 (float4e2m1, float8e8m0, 2-bit
integers and wider lists), CastLike 15 to 25. Before 24 an infinity saturates to NaN in the two
float 8 types that are FNUZ, from 24 on to the largest value as in the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxreduce_cli.executor.dtypes import (
    FLOAT8,
    FLOAT32,
    FLOAT64,
    FNUZ,
    STRING,
    Array,
    dtype_of_name,
    dtype_of_number,
    finfo,
    to_dtype,
)
from onnxreduce_cli.executor.errors import Invalid, NotSupported
from onnxreduce_cli.executor.registry import Call, kernel


def _target(call: Call) -> np.dtype[Any]:
    to = call.attrs["to"]
    try:
        return dtype_of_name(to) if isinstance(to, str) else dtype_of_number(to)
    except ValueError as error:
        raise Invalid(str(error)) from None


def _check_target(call: Call) -> None:
    _refuse_scale_type(_target(call))


def _refuse_scale_type(dtype: np.dtype[Any]) -> None:
    if dtype.name.startswith(("float8_e8m0", "float6_")):
        raise NotSupported(f"casting to {dtype.name} with its rounding modes is not implemented")


@kernel("Cast", 1, 6, 9, 13, 19, 21, 23, 24, 25, 28, check=_check_target)
def cast(call: Call, x: Array) -> Array:
    """Convert to the element type `to`, shape unchanged."""
    return _convert(call, x, _target(call))


@kernel("CastLike", 15, 19, 21, 23, 24, 25)
def cast_like(call: Call, x: Array, target: Array) -> Array:
    """Convert to the element type of the second input."""
    dtype = STRING if target.dtype.kind in "US" else target.dtype
    _refuse_scale_type(dtype)
    return _convert(call, x, dtype)


def _convert(call: Call, x: Array, dtype: np.dtype[Any]) -> Array:
    if x.dtype == STRING or x.dtype.kind in "US":
        if dtype not in FLOAT8:
            return _parse(x, dtype)
        x = _parse(x, FLOAT64)
    if dtype == STRING:
        return _print(x)
    if x.dtype == dtype:
        return x
    if dtype in FLOAT8:
        saturate = bool(call.attrs.get("saturate", 1))
        if call.since < 24 and dtype in FNUZ and x.dtype.kind in "fV":
            x = x.astype(FLOAT64)
            x = np.where(np.isinf(x), np.nan, x)
        return to_float8(x, dtype, saturate)
    if dtype.name in {"int4", "uint4", "int2", "uint2"}:
        return _to_narrow_integer(x, dtype)
    if dtype.kind == "b":
        return np.not_equal(x, np.zeros((), x.dtype))
    return to_dtype(x, dtype)


def to_float8(x: Array, dtype: np.dtype[Any], saturate: bool) -> Array:
    """Convert to a float 8 type; `saturate` turns overflow into the largest value."""
    wide = x.astype(FLOAT32)
    result = wide.astype(dtype)
    if not saturate:
        return result
    limit = float(finfo(dtype).max)
    out = ~np.isfinite(result.astype(FLOAT32)) & ~np.isnan(wide)
    return np.where(out, np.copysign(np.float32(limit), wide), result.astype(FLOAT32)).astype(dtype)


def _to_narrow_integer(x: Array, dtype: np.dtype[Any]) -> Array:
    """Convert to an integer of few bits by keeping the lowest ones, as definition 21 says."""
    bits = 2 if dtype.name.endswith("2") else 4
    low = x.astype(np.int64) & ((1 << bits) - 1)
    if not dtype.name.startswith("u"):
        low = np.where(low >= 1 << (bits - 1), low - (1 << bits), low)
    return low.astype(np.int8).astype(dtype)


def _parse(x: Array, dtype: np.dtype[Any]) -> Array:
    """Read numbers in plain or scientific notation, and NaN and INF in any case."""
    if dtype == STRING:
        return x
    texts = [str(text) for text in x.ravel()]
    try:
        if dtype.kind in "iu":
            numbers: Any = [int(text) for text in texts]
        else:
            numbers = [float(text) for text in texts]
    except ValueError as error:
        raise Invalid(f"a string is not a number: {error}") from None
    wide = np.array(numbers, dtype=np.int64 if dtype.kind == "i" else None)
    return wide.astype(dtype).reshape(x.shape)


def _print(x: Array) -> Array:
    """Write numbers so that reading them back gives the same value."""
    if x.dtype.kind == "b":
        raise NotSupported("the specification does not say how a bool is written as a string")
    wide = x if x.dtype.kind in "fiu" else x.astype(FLOAT32)
    result = np.empty(x.size, dtype=object)
    for index, value in enumerate(wide.ravel()):
        result[index] = str(value)
    return result.reshape(x.shape)
