"""Element types: their names and numbers in ONNX, and their dtypes in NumPy."""

from __future__ import annotations

import math
import os
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

Array: TypeAlias = np.ndarray[Any, Any]
# A tensor, a sequence, or nothing (an absent optional input, an empty optional).
RuntimeValue: TypeAlias = "Array | list[Any] | None"

_NUMBERS = {
    name: number for name, number in TensorProto.DataType.items() if name not in {"UNDEFINED"}
}


def _dtype_of(number: int) -> np.dtype[Any] | None:
    # Some releases of onnx list an element type before NumPy or ml_dtypes has it.
    try:
        return np.dtype(helper.tensor_dtype_to_np_dtype(number))
    except (KeyError, TypeError, ValueError):
        return None


_DTYPE_BY_NUMBER: dict[int, np.dtype[Any]] = {
    number: dtype for number in _NUMBERS.values() if (dtype := _dtype_of(number)) is not None
}
_NAME_BY_DTYPE: dict[np.dtype[Any], str] = {
    _DTYPE_BY_NUMBER[number]: name.lower()
    for name, number in _NUMBERS.items()
    if number in _DTYPE_BY_NUMBER
}
_TYPE_BY_DTYPE = {dtype: f"tensor({name})" for dtype, name in _NAME_BY_DTYPE.items()}
_NUMBER_BY_NAME = {name.lower(): number for name, number in _NUMBERS.items()}

# ml_dtypes has no annotations.
finfo: Any = ml_dtypes.finfo
iinfo: Any = ml_dtypes.iinfo

BFLOAT16 = _DTYPE_BY_NUMBER[TensorProto.BFLOAT16]
FLOAT16 = np.dtype(np.float16)
FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)
INT64 = np.dtype(np.int64)
BOOL = np.dtype(np.bool_)
STRING = np.dtype(object)
FLOAT8 = frozenset(
    dtype
    for dtype, name in _NAME_BY_DTYPE.items()
    if name in {"float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"}
)
#: Those of them that have neither infinities nor a negative zero.
FNUZ = frozenset(dtype for dtype in FLOAT8 if dtype.name.endswith("fnuz"))
FLOATS = frozenset({FLOAT16, FLOAT32, FLOAT64, BFLOAT16})


def dtype_of_number(number: int) -> np.dtype[Any]:
    """Return the dtype of a TensorProto.DataType number; raise ValueError if there is none."""
    try:
        return _DTYPE_BY_NUMBER[number]
    except KeyError:
        raise ValueError(f"element type {number} is unknown") from None


def dtype_of_name(name: str) -> np.dtype[Any]:
    """Return the dtype of an element type's name, in any case ("FLOAT", "float")."""
    number = _NUMBER_BY_NAME.get(name.lower())
    if number is None:
        raise ValueError(f"element type {name!r} is unknown")
    return dtype_of_number(number)


def number_of(dtype: np.dtype[Any]) -> int:
    """Return the TensorProto.DataType number of a dtype; raise ValueError if ONNX has none."""
    if dtype.kind in "US":
        return int(TensorProto.STRING)
    try:
        return int(_NUMBER_BY_NAME[_NAME_BY_DTYPE[dtype]])
    except KeyError:
        raise ValueError(f"dtype {dtype} is not an ONNX element type") from None


def type_string(value: Array) -> str:
    """Return a tensor's type as schemas write it, e.g. "tensor(float)"."""
    found = _TYPE_BY_DTYPE.get(value.dtype)
    if found is not None:
        return found
    return "tensor(string)" if value.dtype.kind in "US" else f"tensor({value.dtype})"


def is_float(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype is float16, bfloat16, float or double."""
    return dtype in FLOATS


def wider(value: Array) -> Array:
    """Return float16 and bfloat16 as float32, so that only the result is rounded."""
    return value.astype(np.float32) if value.dtype in (FLOAT16, BFLOAT16) else value


def to_dtype(value: Any, dtype: np.dtype[Any]) -> Array:
    """Return `value` as an array (rank 0 included) of exactly `dtype`, rounded once."""
    array = np.asarray(value)
    if dtype == BFLOAT16 and array.dtype == FLOAT64:
        array = _to_odd_float32(array)
    return array.astype(dtype, copy=False)


def _to_odd_float32(value: Array) -> Array:
    """Round to float32 so that rounding to bfloat16 afterwards is the same as rounding once.

    ml_dtypes converts to bfloat16 through float32, where a value close to the middle of two
    bfloat16 numbers becomes the middle. So inexact values are truncated with their last bit
    set, which is called rounding to odd.
    """
    near = np.atleast_1d(value.astype(np.float32))
    wide = near.astype(FLOAT64)
    inexact = (wide != value) & ~np.isnan(wide)
    bits = near.view(np.uint32) - (inexact & (np.abs(wide) > np.abs(value)))
    bits |= inexact
    return bits.astype(np.uint32).view(np.float32).reshape(value.shape)


def truncate_to_integer(value: Array, dtype: np.dtype[Any]) -> Array:
    """Convert float64 to an integer dtype towards zero.

    The specification does not define values out of range. They become the nearest end of the
    range, and NaN becomes 0, so that every platform gives the same.
    """
    info = np.iinfo(dtype)
    whole = np.trunc(np.asarray(value, dtype=np.float64))
    above = whole >= float(info.max)
    below = whole <= float(info.min)
    inside = np.where(above | below | np.isnan(whole), 0.0, whole).astype(dtype)
    return np.asarray(np.where(above, info.max, np.where(below, info.min, inside)).astype(dtype))


def to_array(tensor: onnx.TensorProto) -> Array:
    """Return a TensorProto as an array; strings become an object array of str.

    External data, whose location must be a full path, is mapped and takes no memory of its own.
    """
    if tensor.data_location == TensorProto.EXTERNAL:
        return _mapped(tensor)
    array: Array = np.asarray(onnx.numpy_helper.to_array(tensor))
    if tensor.data_type == TensorProto.STRING:
        decoded = [v.decode("utf-8") if isinstance(v, bytes) else v for v in array.ravel()]
        result = np.empty(len(decoded), dtype=object)
        result[:] = decoded
        return result.reshape(array.shape)
    return array


def _mapped(tensor: onnx.TensorProto) -> Array:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    if not os.path.isabs(entries.get("location", "")):
        raise ValueError("its data is in another file; run the model's path")
    start, size = int(entries["offset"]), int(entries["length"])
    dtype = dtype_of_number(tensor.data_type)
    count = math.prod(tensor.dims)
    if dtype.itemsize * count != size or not size:
        # Several elements in a byte, no elements, or data that does not fit, which raises there.
        with open(entries["location"], "rb") as file:
            file.seek(start)
            raw = onnx.TensorProto(data_type=tensor.data_type, dims=tensor.dims)
            raw.raw_data = file.read(size)
        return to_array(raw)
    data = np.memmap(entries["location"], np.uint8, "r", start, (size,))
    return np.asarray(data).view(dtype).reshape(tuple(tensor.dims))


def sparse_to_array(sparse: onnx.SparseTensorProto) -> Array:
    """Return a SparseTensorProto as a dense array of shape `dims`, with zeros elsewhere.

    Indices are linear (rank 1) or one row of coordinates for each value (rank 2).
    """
    values = to_array(sparse.values)
    indices = to_array(sparse.indices)
    shape = tuple(sparse.dims)
    dense = np.zeros(shape, dtype=values.dtype)
    if indices.ndim == 2:
        dense[tuple(indices.T)] = values
    else:
        dense.reshape(-1)[indices] = values
    return dense
