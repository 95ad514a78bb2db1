"""Operators that create or fill tensors: constants, ranges, padding, triangles.

Source: the definitions named at each kernel; those of 19 to 25 only widen the types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onnxreduce_cli.executor.axes import many_axes, vector
from onnxreduce_cli.executor.dtypes import (
    FLOAT32,
    FLOAT64,
    INT64,
    STRING,
    Array,
    dtype_of_number,
    is_float,
    to_dtype,
)
from onnxreduce_cli.executor.errors import Invalid
from onnxreduce_cli.executor.registry import Call, kernel

_CONSTANT_DTYPES: dict[str, Any] = {
    "value_float": FLOAT32,
    "value_floats": FLOAT32,
    "value_int": INT64,
    "value_ints": INT64,
    "value_string": STRING,
    "value_strings": STRING,
    "value": None,
    "sparse_value": None,
}


def _check_constant(call: Call) -> None:
    given = [name for name in call.attrs if name in _CONSTANT_DTYPES]
    if len(given) != 1:
        raise Invalid(f"exactly one value must be given, there are {len(given)}")


@kernel("Constant", 1, 9, 11, 12, 13, 19, 21, 23, 24, 25, check=_check_constant)
def constant(call: Call) -> Array:
    """Return the value; from 11 also a sparse one, from 12 also numbers and strings."""
    ((name, value),) = call.attrs.items()
    dtype = _CONSTANT_DTYPES[name]
    return np.asarray(value) if dtype is None else np.array(value, dtype=dtype)


@kernel("ConstantOfShape", 9, 20, 21, 23, 24, 25)
def constant_of_shape(call: Call, dims: Array) -> Array:
    """Fill a shape with one value, by default a float 0."""
    value = call.attrs.get("value", np.zeros(1, FLOAT32))
    if value.size != 1:
        raise Invalid(f"value has shape {value.shape}, it must hold one element")
    result: Array = np.empty(vector("input", dims), dtype=value.dtype)
    result[...] = value.reshape(())
    return result


@kernel("Range", 11, 27)
def range_(call: Call, start: Array, limit: Array, delta: Array) -> Array:
    """Return start, start + delta, ... before limit; each term is start + i * delta."""
    if any(value.size != 1 or value.ndim > 1 for value in (start, limit, delta)):
        raise Invalid("start, limit and delta must hold one value each")
    # The schema body of AffineGrid passes them as vectors of one element.
    start, limit, delta = start.reshape(()), limit.reshape(()), delta.reshape(())
    if delta == 0:
        raise Invalid("delta is 0")
    if not is_float(start.dtype):
        return np.arange(int(start), int(limit), int(delta)).astype(start.dtype)
    first, step = float(start), float(delta)
    count = max(int(np.ceil((float(limit) - first) / step)), 0)
    return to_dtype(first + np.arange(count, dtype=FLOAT64) * step, start.dtype)


def _padded(
    data: Array, pads: Sequence[int], axes: tuple[int, ...], mode: str, value: Any
) -> Array:
    if len(pads) != 2 * len(axes):
        raise Invalid(f"{len(pads)} pads are given for {len(axes)} axes")
    widths = [(0, 0)] * data.ndim
    picks = [slice(None)] * data.ndim
    for index, axis in enumerate(axes):
        before, after = int(pads[index]), int(pads[index + len(axes)])
        # A negative pad removes elements.
        picks[axis] = slice(max(-before, 0), data.shape[axis] - max(-after, 0))
        widths[axis] = (max(before, 0), max(after, 0))
    data = data[tuple(picks)]
    if mode == "constant":
        shape = [b + n + a for n, (b, a) in zip(data.shape, widths, strict=True)]
        result: Array = np.empty(shape, dtype=data.dtype)
        result[...] = value
        inner = tuple(slice(b, b + n) for n, (b, _) in zip(data.shape, widths, strict=True))
        result[inner] = data
        return result
    if mode not in {"reflect", "edge", "wrap"}:
        raise Invalid(f"mode {mode!r} is unknown")
    for axis, (before, after) in enumerate(widths):
        size = data.shape[axis]
        if (before or after) and (size == 0 or (mode == "reflect" and size == 1)):
            raise Invalid(f"axis {axis} with {size} elements cannot be padded by {mode}")
    return np.pad(data, widths, mode=mode)  # type: ignore[call-overload]


@kernel("Pad", 1, 2)
def pad_1(call: Call, data: Array) -> Array:
    """Pad by attributes (`paddings` in 1, `pads` in 2), all begins before all ends."""
    pads = call.attrs["paddings" if call.since == 1 else "pads"]
    value = np.array(call.attrs["value"]).astype(data.dtype)
    return _padded(data, pads, tuple(range(data.ndim)), call.attrs["mode"], value)


@kernel("Pad", 11, 13, 18, 19, 21, 23, 24, 25)
def pad_11(
    call: Call, data: Array, pads: Array, value: Array | None = None, axes: Array | None = None
) -> Array:
    """Pad by inputs; from 18 only `axes`, from 19 also by wrapping around."""
    mode = call.attrs["mode"]
    if mode == "wrap" and call.since < 19:
        raise Invalid("mode 'wrap' came with opset 19")
    along = tuple(range(data.ndim)) if axes is None else many_axes(vector("axes", axes), data.ndim)
    if value is not None and value.size != 1:
        raise Invalid(f"constant_value has shape {value.shape}, it must hold one element")
    if value is not None:
        fill: Any = value.reshape(())
    else:
        fill = "" if data.dtype == STRING else np.zeros((), data.dtype)
    return _padded(data, vector("pads", pads), along, mode, fill)


@kernel("EyeLike", 9, 22)
def eye_like(call: Call, data: Array) -> Array:
    """Return ones on the diagonal `k`, of the input's 2-D shape and type, or of `dtype`."""
    if data.ndim != 2:
        raise Invalid(f"rank is {data.ndim}, it must be 2")
    number = call.attrs.get("dtype")
    dtype = data.dtype if number is None else dtype_of_number(number)
    return np.eye(data.shape[0], data.shape[1], k=call.attrs["k"]).astype(dtype)


@kernel("Trilu", 14)
def trilu(call: Call, data: Array, k: Array | None = None) -> Array:
    """Keep the upper (default) or lower triangle of the last two dimensions, at diagonal k."""
    if data.ndim < 2:
        raise Invalid(f"rank is {data.ndim}, it must be at least 2")
    at = 0 if k is None else int(k.reshape(()))
    rows, columns = np.indices(data.shape[-2:])
    keep = columns - rows >= at if call.attrs["upper"] else columns - rows <= at
    return np.where(keep, data, np.zeros((), data.dtype))
