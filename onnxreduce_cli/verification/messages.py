"""Messages between this process and those that run models.

A message is the length of its header in 8 bytes, the header in JSON, and the bytes of its tensors
one after the other. Nothing in it is executed when it is read, whoever wrote it.

It needs NumPy and nothing else: a process that runs ONNX Runtime starts with that.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_LENGTH = struct.Struct("<Q")


class Bits(NamedTuple):
    """A tensor of a dtype that NumPy lacks.

    Attributes:
        dtype: the name that ml_dtypes gives it, such as ``bfloat16`` or ``float8_e4m3fn``.
        array: its bits as unsigned integers, in its shape.
    """

    dtype: str
    array: Array


#: What a tensor of a dtype that NumPy lacks becomes when it is read.
Restore = Callable[[Bits], Any]


def write(stream: IO[bytes], header: Mapping[str, Any], values: Iterable[Any] = ()) -> None:
    """Write a message and flush.

    Args:
        stream: where to.
        header: what JSON can hold.
        values: tensors of any dtype, of strings too; None, and lists and maps of such values.

    Raises:
        OSError: nobody reads it any more.
    """
    tensors: list[Array] = []
    described = [_describe(value, tensors) for value in values]
    text = json.dumps([header, described]).encode()
    stream.write(_LENGTH.pack(len(text)))
    stream.write(text)
    for tensor in tensors:
        if tensor.size:
            stream.write(tensor.reshape(-1).view(np.uint8).data)
    stream.flush()


def read(stream: IO[bytes], restore: Restore) -> tuple[dict[str, Any], list[Any]]:
    """Read a message: its header and its values, whose tensors can be written to.

    Raises:
        EOFError: there is none, or not all of one.
        ValueError: what is there is no message.
    """
    (length,) = _LENGTH.unpack(_take(stream, _LENGTH.size).data)
    header, described = json.loads(bytes(_take(stream, length).data))
    return header, [_value(item, stream, restore) for item in described]


def _describe(value: Any, tensors: list[Array]) -> Any:
    """Return what JSON can hold of a value; its tensors are added to `tensors`."""
    if value is None:
        return None
    if isinstance(value, list):
        return {"list": [_describe(item, tensors) for item in value]}
    if isinstance(value, dict):
        pairs = [[_plain(key), _describe(item, tensors)] for key, item in value.items()]
        return {"map": pairs}
    if isinstance(value, Bits):
        tensors.append(np.asarray(value.array, order="C"))
        return {"bits": value.dtype, "as": value.array.dtype.str, "shape": value.array.shape}
    array = np.asarray(value, order="C")
    if array.dtype.kind in "OUS":
        texts = [str(item) for item in array.reshape(-1)]
        return {"texts": texts, "shape": array.shape}
    if array.dtype.isbuiltin == 2:  # Another package adds it, whatever kind it calls it.
        bits = array.view(f"u{array.dtype.itemsize}")
        return _describe(Bits(array.dtype.name, bits), tensors)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    tensors.append(array)
    return {"as": array.dtype.str, "shape": array.shape}


def _plain(key: Any) -> Any:
    return key.item() if isinstance(key, np.generic) else key


def _value(described: Any, stream: IO[bytes], restore: Restore) -> Any:
    """The value that a description is of, its tensors taken from the stream."""
    if described is None:
        return None
    if "list" in described:
        return [_value(item, stream, restore) for item in described["list"]]
    if "map" in described:
        return {key: _value(item, stream, restore) for key, item in described["map"]}
    shape = tuple(described["shape"])
    if "texts" in described:
        texts = described["texts"]
        # The last keeps NumPy from looking into texts.
        return np.array([*texts, None], object)[:-1].reshape(shape)
    dtype = np.dtype(described["as"])
    size = dtype.itemsize
    for dim in shape:
        size *= dim
    array = _take(stream, size).view(dtype).reshape(shape)
    return restore(Bits(described["bits"], array)) if "bits" in described else array


def _take(stream: IO[bytes], size: int) -> Array:
    """The next bytes.

    Raises:
        EOFError: there are fewer.
    """
    taken = np.empty(size, np.uint8)
    rest = taken.data
    while rest:
        count = stream.readinto(rest)  # type: ignore[attr-defined]
        if not count:
            raise EOFError
        rest = rest[count:]
    return taken
