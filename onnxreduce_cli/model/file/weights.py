"""Moving the data of tensors out of a model's file, and into it, as byte ranges of files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence

from onnx import ModelProto, TensorProto, numpy_helper

from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.model.file import wire
from onnxreduce_cli.model.file.byte_ranges import (
    ByteRange,
    FileRange,
    RecodedRange,
    StoredFile,
    total_size,
)
from onnxreduce_cli.model.file.document import Document
from onnxreduce_cli.model.file.external import DataFile, data_files
from onnxreduce_cli.model.file.outline import LARGE, OmittedData
from onnxreduce_cli.model.file.tensors import tensors

#: Encodes the elements of a tensor anew.
Recode = Callable[[bytes], bytes]

#: Data begins at a multiple of a page, large data at a multiple of the allocation granularity of
#: Windows, so that a runtime can map it into memory.
_PAGE, _GRANULE = 1 << 12, 1 << 16


def _number(name: str) -> int:
    return int(TensorProto.DESCRIPTOR.fields_by_name[name].number)


_RAW = _number("raw_data")
#: Fields whose bytes are those of raw data, by dtype.
_AS_RAW: dict[int, int] = {
    TensorProto.FLOAT: _number("float_data"),
    TensorProto.COMPLEX64: _number("float_data"),
    TensorProto.DOUBLE: _number("double_data"),
    TensorProto.COMPLEX128: _number("double_data"),
}


def move_out(document: Document, threshold: int, location: str) -> list[ByteRange]:
    """Turn the data of tensors into external data.

    This concerns initializers and attributes, but not strings, sparse tensors, training information
    and functions' defaults: there onnx does not look for external data.

    Args:
        document: the model; it is edited.
        threshold: tensors with less data, in bytes, stay as they are.
        location: what the model is to call the file that the data goes to.

    Returns:
        the content of that file; empty where no tensor has that much data.

    Raises:
        InvalidModelError: a tensor's data does not fit its dimensions.
    """
    content: list[ByteRange] = []
    end = 0
    nodes = (node for function in document.model.functions for node in function.node)
    for holder in (document.model.graph, *nodes):
        for tensor in tensors(holder, sparse=False):
            data = _raw(document, tensor)
            size = total_size(data)
            if size < max(threshold, 1):
                continue
            start = end + -end % (_PAGE if size < _GRANULE else _GRANULE)
            content += [bytes(start - end), *data]
            end = start + size
            _refer(tensor, location, start, size)
    document.has_external_data |= bool(content)
    return content


def mappable(document: Document, folder: str = "") -> ModelProto:
    """Let each tensor with external data state file, offset and length, and return the model.

    Data that was left out becomes external data in the file that the model was read from.

    Args:
        document: the model; it is edited.
        folder: the folder that names of files are relative to; empty for absolute ones.

    Raises:
        InvalidModelError: external data is outside the folder, or a file does not have what a
            tensor refers to.
        OSError: the system does not give the state of a file.
    """
    stored = stored_files(document)
    for tensor in tensors(document.model) if stored or document.outline else ():
        if tensor.data_location == TensorProto.EXTERNAL:
            (data,) = data_of(document, tensor, stored)
            if isinstance(data, FileRange):
                path = data.file.path
                named = os.path.relpath(path, folder) if folder else path
                _refer(tensor, named, data.start, len(data))
            else:
                clear_data(tensor)
                tensor.raw_data = data.read() if isinstance(data, RecodedRange) else bytes(data)
    return document.model


def stored_files(document: Document) -> dict[str, StoredFile]:
    """Return the files with a model's external data, by their location in the model.

    Raises:
        InvalidModelError: one is outside the model's folder.
        OSError: the system does not give the state of one.
    """
    return {file.location: StoredFile.at(file.path) for file in data_files(document)}


def data_of(
    document: Document, tensor: TensorProto, stored: Mapping[str, StoredFile]
) -> Sequence[ByteRange]:
    """Return a tensor's data as raw data, wherever it is; nothing for strings.

    Args:
        document: the model that has the tensor.
        tensor: the tensor.
        stored: the files that the model has external data in.

    Raises:
        InvalidModelError: a file does not have what the tensor refers to, or its data does not fit
            its dimensions.
    """
    if tensor.data_location == TensorProto.EXTERNAL and document.outline.of(tensor) is None:
        return (_file_range(tensor, stored),)
    return _raw(document, tensor)


def recode(
    document: Document, chosen: Iterable[TensorProto], width: tuple[int, int], how: Recode
) -> bool:
    """Encode the data of tensors anew; large data is encoded when it is written.

    If any of the tensors has external data, all external data of the model becomes data within it,
    so that the files of the old data are not needed any more.

    Args:
        document: the model; it is edited.
        chosen: the tensors.
        width: the bytes of an element before and after.
        how: encodes bytes anew.

    Returns:
        whether external data of the model is within it now.

    Raises:
        InvalidModelError: a file does not have what a tensor refers to.
        OSError: the system does not give the state of a file.
    """
    wanted = {id(tensor): tensor for tensor in chosen}
    stored = stored_files(document) if wanted else {}
    outside = {
        id(tensor): tensor
        for tensor in tensors(document.model)
        if tensor.data_location == TensorProto.EXTERNAL and document.outline.of(tensor) is None
    }
    moving = not wanted.keys().isdisjoint(outside)
    for key, tensor in {**wanted, **(outside if moving else {})}.items():
        data = data_of(document, tensor, stored)
        size = total_size(data)
        if key in wanted:
            size = size // width[0] * width[1]
            data = [_recoded(part, width, how) for part in data]
        clear_data(tensor)
        if size < LARGE:
            tensor.raw_data = b"".join(
                part.read() if isinstance(part, (FileRange, RecodedRange)) else bytes(part)
                for part in data
            )
        else:
            left_out = OmittedData(_RAW, wire.header(_RAW, size), tuple(data))
            tensor.MergeFrom(document.outline.leave_out(left_out))
    if moving:
        document.has_external_data = False
    return moving


def _recoded(part: ByteRange, width: tuple[int, int], how: Recode) -> ByteRange:
    if isinstance(part, FileRange):
        return RecodedRange(part, len(part) // width[0] * width[1], how)
    return how(bytes(part.read() if isinstance(part, RecodedRange) else part))


def clear_data(tensor: TensorProto) -> None:
    """Clear a tensor's data, and the reference to external data."""
    for field, _ in tensor.ListFields():
        if field.name.endswith("_data") or field.name == "data_location":
            tensor.ClearField(field.name)


def _raw(document: Document, tensor: TensorProto) -> Sequence[ByteRange]:
    """Return the data that a tensor has within the model, as raw data; empty where it has none."""
    left_out = document.outline.of(tensor)
    if left_out is None and tensor.data_location == TensorProto.EXTERNAL:
        return ()
    if left_out is not None and left_out.number in (_RAW, _AS_RAW.get(tensor.data_type)):
        return left_out.byte_ranges
    if tensor.HasField("raw_data"):
        return (tensor.raw_data,)
    if tensor.data_type == TensorProto.STRING:
        return ()
    # Varints, or little data.
    whole = TensorProto()
    whole.CopyFrom(tensor)
    document.outline.fill([whole])
    try:
        return (numpy_helper.from_array(numpy_helper.to_array(whole)).raw_data,)
    except (TypeError, ValueError) as error:
        raise InvalidModelError(f"tensor {tensor.name!r} cannot be read: {error}") from error


def move_in(document: Document, files: Sequence[DataFile]) -> bool:
    """Turn all external data into data within the model.

    Args:
        document: the model; it is edited.
        files: the files that it has data in.

    Returns:
        whether there was any.

    Raises:
        InvalidModelError: a file does not have what a tensor refers to.
        OSError: the system does not give the state of a file.
    """
    stored = {file.location: StoredFile.at(file.path) for file in files}
    for tensor in tensors(document.model) if stored else ():
        if tensor.data_location == TensorProto.EXTERNAL and document.outline.of(tensor) is None:
            stored_range = _file_range(tensor, stored)
            clear_data(tensor)
            left_out = OmittedData(_RAW, wire.header(_RAW, len(stored_range)), (stored_range,))
            tensor.MergeFrom(document.outline.leave_out(left_out))
    document.has_external_data = False
    return bool(stored)


def _file_range(tensor: TensorProto, stored: Mapping[str, StoredFile]) -> FileRange:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    try:
        file = stored[entries["location"]]
        start = int(entries.get("offset", 0))
        end = start + int(entries["length"]) if "length" in entries else file.size
    except (KeyError, ValueError) as error:
        raise InvalidModelError(
            f"tensor {tensor.name!r} has external data without a valid location, offset and length"
        ) from error
    if not 0 <= start <= end <= file.size:
        raise InvalidModelError(
            f"tensor {tensor.name!r} refers to bytes {start} to {end} of {file.path}, which has "
            f"{file.size}"
        )
    return FileRange(file, start, end)


def _refer(tensor: TensorProto, location: str, start: int, size: int) -> None:
    """Make a tensor refer to external data."""
    clear_data(tensor)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", start), ("length", size)):
        tensor.external_data.add(key=key, value=str(value))
