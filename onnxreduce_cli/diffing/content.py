"""Models whose large tensors hold a hash of their content: equal content, equal messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from onnx import TensorProto, numpy_helper

from onnxreduce_cli.model.file.byte_ranges import ByteRange, FileRange, RecodedRange, total_size
from onnxreduce_cli.model.file.document import Document
from onnxreduce_cli.model.file.tensors import tensors
from onnxreduce_cli.model.file.weights import clear_data, data_of, stored_files
from onnxreduce_cli.model.graph.values import dtype_name
from onnxreduce_cli.text import shortened

#: Data of more bytes is compared by its hash.
_SMALL = 256

#: Values of tensors of more elements are not written out.
_ELEMENTS = 8

#: How a hash is called where the place of external data is said.
_HASH = "sha256"


class Hashes:
    """Hashes of the content of tensors; that of one part of a file is read once."""

    def __init__(self) -> None:
        self._known: dict[FileRange, str] = {}

    def of(self, data: Sequence[ByteRange]) -> str:
        """Return the hash of some data, which is read part by part.

        Raises:
            InvalidModelError: a file that is read has changed.
            OSError: it cannot be read.
        """
        whole = data[0] if len(data) == 1 else None
        if isinstance(whole, FileRange) and whole in self._known:
            return self._known[whole]
        found = sha256()
        for part in _parts(data):
            found.update(part)
        if isinstance(whole, FileRange):
            self._known[whole] = found.hexdigest()
        return found.hexdigest()


def _parts(data: Sequence[ByteRange]) -> Iterator[bytes | memoryview]:
    for item in data:
        if isinstance(item, (FileRange, RecodedRange)):
            yield from item.chunks()
        else:
            yield item


def put_hashes(document: Document, hashes: Hashes) -> None:
    """Put raw data, or its hash where it is large, in place of a model's tensors' data, in place.

    Raises:
        InvalidModelError: a tensor's data is not where it should be, or of another size.
        OSError: it cannot be read.
    """
    stored = stored_files(document)
    for tensor in tensors(document.model):
        if tensor.data_type == TensorProto.STRING:
            continue
        data = data_of(document, tensor, stored)
        if total_size(data) <= _SMALL:
            content = b"".join(_parts(data))
            clear_data(tensor)
            tensor.raw_data = content
        else:
            found = hashes.of(data)
            clear_data(tensor)
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key=_HASH, value=found)


def content_key(tensor: TensorProto) -> bytes:
    """What is equal for tensors of one dtype, shape and content, whatever their names."""
    copy = TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=tensor.raw_data)
    copy.external_data.extend(tensor.external_data)
    copy.string_data.extend(tensor.string_data)
    return copy.SerializeToString()


def tensor_text(tensor: TensorProto) -> str:
    """``float[64,3,7,7] sha256:0a1b2c3d4e5f6789``, or ``int64[1] [-1]`` where it is small."""
    dims = ",".join(map(str, tensor.dims))
    kind = f"{dtype_name(tensor.data_type)}[{dims}]"
    if tensor.external_data:
        return f"{kind} {_HASH}:{tensor.external_data[0].value[:16]}"
    array = small_array(tensor)
    return kind if array is None else f"{kind} {shortened(str(array.tolist()), 60)}"


def small_array(tensor: TensorProto) -> Any:
    """A tensor's values, if there are few; else None."""
    size = 1
    for dim in tensor.dims:
        size *= dim
    if tensor.external_data or size > _ELEMENTS:
        return None
    return numpy_helper.to_array(tensor)
