"""Models without the data of their large tensors, which stays in the file that they came from.

Instead of parsing the file, `Outline.read` goes through its fields, and only into messages that are
large enough to hold a large tensor. In place of its data such a tensor gets a placeholder: external
data with a name that no file has, so that code that handles external data knows what to do. When
the model is written each placeholder is replaced by its data, a byte range of the file.

Unusual but legal encodings stay as they are: tensors with data in several fields, groups, and a
field that occurs twice though it should occur once.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from math import prod
from typing import Any, BinaryIO, NamedTuple

from google.protobuf.message import DecodeError
from onnx import ModelProto, TensorProto

from onnxreduce_cli.model.file import wire
from onnxreduce_cli.model.file.byte_ranges import (
    ByteRange,
    FileRange,
    RecodedRange,
    StoredFile,
    total_size,
)
from onnxreduce_cli.model.file.tensors import MOST_ELEMENTS, holders, single_holders

#: Data of fewer bytes stays in the outline, and so does that of tensors of no more elements than
#: `MOST_ELEMENTS`, whose values may decide what a conversion does.
LARGE = 1 << 16

#: Data nested deeper stays in the outline; usual models have none there.
_DEPTH = 100

_MODEL, _TENSOR = ModelProto.DESCRIPTOR, TensorProto.DESCRIPTOR


def _numbers(*names: str) -> frozenset[int]:
    return frozenset(_TENSOR.fields_by_name[name].number for name in names)


_VARINTS = _numbers("int32_data", "int64_data", "uint64_data")
_NUMERIC = _numbers("raw_data", "float_data", "double_data") | _VARINTS
#: The bytes of a number in fields where all numbers have the same width.
_WIDTHS = dict.fromkeys(_numbers("float_data"), 4) | dict.fromkeys(_numbers("double_data"), 8)
_PLACE = _numbers("external_data", "data_location")
_ALL_DATA = _NUMERIC | _numbers("string_data")
_STATED = TensorProto(data_location=TensorProto.DEFAULT).SerializeToString()


class OmittedData(NamedTuple):
    """The data of one tensor.

    Attributes:
        number: the number of its field in the tensor.
        header: that field's tag and length.
        byte_ranges: the field's content.
        stated: whether the tensor states ``data_location`` DEFAULT, which is optional.
    """

    number: int
    header: bytes
    byte_ranges: tuple[ByteRange, ...]
    stated: bool = False


class Outline:
    """The tensor data that was left out of one model, by placeholder."""

    def __init__(self) -> None:
        # Random, so that no name in a model, nor a file, is taken for a placeholder.
        self._prefix = f"onnxreduce-{os.urandom(16).hex()}-"
        self._left_out: list[OmittedData] = []

    def __len__(self) -> int:
        """The number of tensors whose data was left out."""
        return len(self._left_out)

    def read(self, file: BinaryIO, stored: StoredFile) -> bytes:
        """Return a model file's content with placeholders in place of large tensors' data.

        Raises:
            OSError: it cannot be read.
        """
        walk = _OutlineReader(file, stored, self)
        found = walk.message(0, stored.size, _MODEL, _DEPTH)
        return walk.kept(0, stored.size) if found is None else found

    def leave_out(self, left_out: OmittedData) -> TensorProto:
        """Register data that is left out; return the fields that a tensor has in its place."""
        placeholder = TensorProto(data_location=TensorProto.EXTERNAL)
        name = f"{self._prefix}{len(self._left_out):08d}"
        placeholder.external_data.add(key="location", value=name)
        self._left_out.append(left_out)
        return placeholder

    def of(self, tensor: TensorProto) -> OmittedData | None:
        """Return the data that was left out of a tensor; None where none was."""
        if tensor.data_location == TensorProto.EXTERNAL and len(tensor.external_data) == 1:
            name = tensor.external_data[0].value
            # What is not UTF-8 is given in bytes.
            if isinstance(name, str) and name.startswith(self._prefix):
                return self._left_out[int(name[len(self._prefix) :])]
        return None

    def fill(self, tensors: Iterable[TensorProto]) -> None:
        """Put the data that was left out back into tensors, in memory."""
        for tensor in tensors:
            left_out = self.of(tensor)
            if left_out is None:
                continue
            del tensor.external_data[:]
            tensor.ClearField("data_location")
            if left_out.stated:
                tensor.data_location = TensorProto.DEFAULT
            byte_ranges = (
                p.read() if isinstance(p, (FileRange, RecodedRange)) else bytes(p)
                for p in left_out.byte_ranges
            )
            tensor.MergeFromString(left_out.header + b"".join(byte_ranges))

    def embed(self, content: bytes) -> list[ByteRange]:
        """Return a serialised model as byte ranges, with the data in the place of placeholders."""
        if not self:
            return [content]
        found = re.finditer(re.escape(self._prefix.encode()) + rb"(\d{8})", content)
        places = [(match.start(), self._left_out[int(match[1])]) for match in found]
        return _OutlineWriter(content, places[::-1]).message(0, len(content), _MODEL)


class _OutlineReader:
    """Reads a model file, and leaves out the data of large tensors."""

    def __init__(self, file: BinaryIO, stored: StoredFile, outline: Outline) -> None:
        self._file, self._stored, self._outline = file, stored, outline
        self._read = wire.in_file(file)

    def kept(self, start: int, end: int) -> bytes:
        self._file.seek(start)
        return self._file.read(end - start)

    def message(self, start: int, end: int, kind: Any, depth: int) -> bytes | None:
        """Return a message's content with placeholders; None where there are none in it."""
        try:
            if kind is _TENSOR:
                return self._tensor(start, end)
            return self._holder(start, end, kind, depth) if depth else None
        except wire.WireError:
            return None  # Parsing reports what is wrong.

    def _holder(self, start: int, end: int, kind: Any, depth: int) -> bytes | None:
        inner, single = holders(kind), single_holders(kind)
        seen: Counter[int] = Counter()
        large = []
        for field in wire.fields(self._read, start, end, LARGE, single):
            if field.number in inner:
                seen[field.number] += 1
                if field.end - field.start >= LARGE:
                    large.append(field)
        parts = []
        done = start
        for field in large:
            if field.kind != wire.DELIMITED or (field.number in single and seen[field.number] > 1):
                continue
            content = self.message(field.body, field.end, inner[field.number], depth - 1)
            if content is not None:
                header = wire.header(field.number, len(content))
                parts += [self.kept(done, field.start), header, content]
                done = field.end
        return b"".join((*parts, self.kept(done, end))) if parts else None

    def _tensor(self, start: int, end: int) -> bytes | None:
        fields = list(wire.fields(self._read, start, end, LARGE, _PLACE))
        large = [f for f in fields if f.number in _NUMERIC and f.end - f.body >= LARGE]
        if len(large) != 1 or large[0].kind != wire.DELIMITED or not self._is_sound(large[0]):
            return None
        (data,) = large
        rest = self.kept(start, data.start) + self.kept(data.end, end)
        try:
            tensor = TensorProto.FromString(rest)
        except DecodeError:
            return None
        stated = tensor.HasField("data_location")
        places = sum(field.number in _PLACE for field in fields)
        present = {field.number for field, _ in tensor.ListFields()}
        # If it states where its data is, then once, and that the data is here.
        if places != stated or tensor.data_location != TensorProto.DEFAULT or present & _ALL_DATA:
            return None
        if prod(float(dim) for dim in tensor.dims) <= MOST_ELEMENTS:
            return None
        header = self.kept(data.start, data.body)
        stored = FileRange(self._stored, data.body, data.end)
        placeholder = self._outline.leave_out(OmittedData(data.number, header, (stored,), stated))
        return rest + placeholder.SerializeToString()

    def _is_sound(self, data: wire.Field) -> bool:
        """Return whether protobuf can parse a field's content, which is copied without parsing."""
        if data.number in _VARINTS:
            return wire.are_varints(self._file, data.body, data.end)
        return (data.end - data.body) % _WIDTHS.get(data.number, 1) == 0


class _OutlineWriter:
    """Puts data in the place of the placeholders in a serialised model."""

    def __init__(self, content: bytes, places: list[tuple[int, OmittedData]]) -> None:
        # In reverse order, so that the next one can be popped.
        self._places = places
        self._view = memoryview(content)
        self._read = wire.in_memory(content)

    def message(self, start: int, end: int, kind: Any) -> list[ByteRange]:
        """Return a message's content as byte ranges."""
        if kind is _TENSOR:
            return self._tensor(start, end)
        inner = holders(kind)
        byte_ranges: list[ByteRange] = []
        done = start
        for field in wire.fields(self._read, start, end):
            if not self._places or self._places[-1][0] >= end:
                break
            if self._places[-1][0] < field.end:
                content = self.message(field.body, field.end, inner[field.number])
                byte_ranges += [self._view[done : field.start]]
                byte_ranges += [wire.header(field.number, total_size(content)), *content]
                done = field.end
        return [*byte_ranges, self._view[done:end]]

    def _tensor(self, start: int, end: int) -> list[ByteRange]:
        _, left_out = self._places.pop()
        before: list[ByteRange] = []
        after: list[ByteRange] = []
        for field in wire.fields(self._read, start, end):
            if field.number not in _PLACE:
                side = before if field.number < left_out.number and not after else after
                side.append(self._view[field.start : field.end])
            elif left_out.stated and field.kind != wire.DELIMITED:
                after.append(_STATED)
        return [*before, left_out.header, *left_out.byte_ranges, *after]
