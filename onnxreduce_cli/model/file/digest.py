"""The SHA-256 of what was read and written, by which files of a report can be told again."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Literal

from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.model.file.byte_ranges import ByteRange
from onnxreduce_cli.model.file.document import Document, load
from onnxreduce_cli.model.file.external import data_files

if TYPE_CHECKING:
    import hashlib

_CHUNK = 1 << 20

Role = Literal["read", "written"]


@dataclass(frozen=True, slots=True)
class FileDigest:
    """A file that was read or written.

    Attributes:
        path: its path; ``-`` for standard input or output.
        role: whether it was read or written.
        size: its size in bytes.
        sha256: the SHA-256 of its content, in hexadecimal.
    """

    path: str
    role: Role
    size: int
    sha256: str


def file_digest(path: str, role: Role) -> FileDigest:
    """Return the digest of a file.

    Raises:
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        return _digest(path, role, iter(lambda: file.read(_CHUNK), b""))


def document_digests(document: Document, name: str) -> tuple[FileDigest, ...]:
    """Return the digests of a model as it was read, and of its external data.

    Args:
        document: the model.
        name: its path; ``-`` for standard input.

    Raises:
        InvalidModelError: the model's file has changed.
        OSError: a file cannot be read.
    """
    found = [_digest(name, "read", _chunks(document.source))]
    if document.base_dir:
        files = data_files(document, allow_outside=True)
        found += digests((file.path for file in files), "read")
    return tuple(found)


def model_digests(*paths: str) -> tuple[FileDigest, ...]:
    """Return the digests of the files of models, and of files that are none."""
    found: list[FileDigest] = []
    for path in paths:
        try:
            found += document_digests(load(path), path)
        except InvalidModelError:  # Who needs the model says so.
            found += digests([path], "read")
    return tuple(found)


def digests(paths: Iterable[str], role: Role) -> tuple[FileDigest, ...]:
    """Return the digests of those of several files that exist."""
    return tuple(file_digest(path, role) for path in paths if os.path.isfile(path))


def _digest(path: str, role: Role, chunks: Iterable[bytes | memoryview]) -> FileDigest:
    content, size = _sha256(), 0
    for chunk in chunks:
        content.update(chunk)
        size += len(chunk)
    return FileDigest(path, role, size, content.hexdigest())


def _sha256() -> hashlib._Hash:
    import hashlib  # Hardly any command needs it.

    return hashlib.sha256()


def _chunks(source: ByteRange) -> Iterator[bytes | memoryview]:
    if isinstance(source, bytes | memoryview):
        yield source
    else:
        yield from source.chunks()


class DigestedStream(io.RawIOBase):
    """A stream that takes note of what is written through it to another one."""

    def __init__(self, stream: IO[bytes]) -> None:
        """Write to a stream, which stays open."""
        self._stream = stream
        self._content, self._size = _sha256(), 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Write data, and take note of it."""
        self._content.update(data)
        self._size += len(data)
        return self._stream.write(data)

    def flush(self) -> None:
        """Flush the other stream."""
        self._stream.flush()

    def digest(self, name: str) -> FileDigest:
        """Return the digest of what was written so far."""
        return FileDigest(name, "written", self._size, self._content.hexdigest())
