"""Protobuf's wire format: the fields of a message, found without parsing their values."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import BinaryIO, NamedTuple

import numpy as np

#: The wire type of bytes, text, messages and packed numbers, which begin with their length.
DELIMITED = 2

_VARINT, _FIXED64, _FIXED32 = 0, 1, 5
#: The most bytes of a tag and a length.
_HEADER = 20
#: The bytes of a file that are read at once while going through small fields.
_WINDOW = 1 << 16

#: The bytes that are read at once where every byte is checked.
_CHUNK = 1 << 20

#: Returns a window of bytes around a position, and the position at which the window begins. From
#: the position on it has `_HEADER` bytes at least, or all up to the end.
Reader = Callable[[int], tuple[bytes, int]]


class WireError(ValueError):
    """The bytes are not a message in protobuf's wire format, or an unusual one."""


class Field(NamedTuple):
    """One field of a message.

    Attributes:
        number: its number in the message's definition.
        kind: its wire type.
        start: where its tag begins.
        body: where its value begins, after tag and length.
        end: where the next field begins.
    """

    number: int
    kind: int
    start: int
    body: int
    end: int


def in_memory(content: bytes) -> Reader:
    """Return a reader of bytes in memory."""
    return lambda _: (content, 0)


def in_file(file: BinaryIO) -> Reader:
    """Return a reader of a seekable file."""

    def read(position: int) -> tuple[bytes, int]:
        file.seek(position)
        return file.read(_WINDOW), position

    return read


def fields(
    read: Reader, start: int, end: int, least: int = 0, always: Container[int] = ()
) -> Iterator[Field]:
    """Yield the fields, or the large fields, of the message between two positions.

    Args:
        read: gives the bytes.
        start: where the message begins.
        end: where it ends.
        least: fields of fewer bytes, tag and length included, are skipped,
        always: unless they have one of these numbers.

    Raises:
        WireError: it is not a message, or has groups, which protobuf has deprecated.
    """
    window, base = b"", start
    at = start
    while at < end:
        index = at - base
        if index + _HEADER > len(window):
            window, base = read(at)
            index = at - base
        try:
            # Mostly a tag of one byte and a length of one or two: a model has millions of fields.
            tag = window[index]
            if tag < 128:
                index += 1
            else:
                tag, index = _varint(window, index)
            kind = tag & 7
            if kind == DELIMITED:
                size = window[index]
                if size < 128:
                    index += 1
                elif (high := window[index + 1]) < 128:
                    size, index = size - 128 + (high << 7), index + 2
                else:
                    size, index = _varint(window, index)
                stop = base + index + size
            else:
                stop = base + _end_of_scalar(window, index, kind)
        except IndexError:
            raise WireError("a field is cut off") from None
        if stop > end or tag < 8:
            raise WireError("a field reaches beyond its message")
        if stop - at >= least or tag >> 3 in always:
            yield Field(tag >> 3, kind, at, base + index, stop)
        at = stop


def _end_of_scalar(window: bytes, at: int, kind: int) -> int:
    """Return the end of a field whose value is a number."""
    if kind == _VARINT:
        return _varint(window, at)[1]
    if kind == _FIXED32:
        return at + 4
    if kind == _FIXED64:
        return at + 8
    raise WireError(f"a field of wire type {kind}")


def _varint(window: bytes, at: int) -> tuple[int, int]:
    """Return the number encoded at a position, and the position at which it ends."""
    byte = window[at]
    if byte < 128:
        return byte, at + 1
    value, shift = byte & 127, 7
    while byte >= 128:
        at += 1
        byte = window[at]
        value |= (byte & 127) << shift
        shift += 7
        if shift > 70:
            raise WireError("a number of more than ten bytes")
    return value, at + 1


def are_varints(file: BinaryIO, start: int, end: int) -> bool:
    """Return whether a part of a file consists of varints of one to ten bytes."""
    file.seek(start)
    pending = np.zeros(0, np.uint8)
    while start < end:
        content = np.frombuffer(file.read(min(_CHUNK, end - start)), np.uint8)
        if not content.size:
            return False
        start += content.size
        content = np.concatenate([pending, content])
        lasts = np.flatnonzero(content < 128)
        lengths = np.diff(lasts, prepend=-1)
        # The tenth byte holds the last of 64 bits.
        if (lengths > 10).any() or (content[lasts[lengths == 10]] > 1).any():
            return False
        pending = content[lasts[-1] + 1 :] if lasts.size else content
        if pending.size >= 10:
            return False
    return not pending.size


def header(number: int, size: int) -> bytes:
    """Return the tag and length of a delimited field."""
    return _encoded(number << 3 | DELIMITED) + _encoded(size)


def _encoded(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)
