"""Content as byte ranges: in memory, or of files, which are copied within the kernel."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO, BinaryIO, NamedTuple

from onnxreduce_cli.errors import InvalidModelError

#: So much is copied in one call, so that progress can be reported and a signal comes through.
_CHUNK = 1 << 28
#: So much is read at once, and where the kernel does not copy.
_BUFFER, _COPIED = 1 << 20, 1 << 18
#: What moves by no whole pages the kernel copies slower than who reads and writes it.
_PAGE = 1 << 12

#: What a kernel, or a file system, says that cannot copy between these two files.
_CANNOT = frozenset(
    getattr(errno, name)
    for name in ("EBADF", "EINVAL", "ENOSYS", "ENOTSOCK", "ENOTSUP", "EOPNOTSUPP", "EPERM", "EXDEV")
    if hasattr(errno, name)
)


class StoredFile(NamedTuple):
    """A file as it was when it was first looked at.

    Attributes:
        path: where it is.
        size: in bytes.
        state: what tells another file, or another state of it, apart.
    """

    path: str
    size: int
    state: tuple[int, ...]

    @classmethod
    def at(cls, path: str) -> StoredFile:
        """Look at a file.

        Raises:
            OSError: it cannot be looked at.
        """
        return cls._of(path, os.stat(path))

    @classmethod
    def _of(cls, path: str, status: os.stat_result) -> StoredFile:
        state = (status.st_dev, status.st_ino, status.st_mtime_ns)
        return cls(path, status.st_size, state)

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Open the file for reading, sure that it is the same before and after.

        Raises:
            InvalidModelError: it has changed.
            OSError: it cannot be read.
        """
        with open(self.path, "rb") as file:
            self._check(file)
            yield file
            self._check(file)

    def _check(self, file: BinaryIO) -> None:
        # Both: another file may have taken its place, and this one may have been written to.
        status = os.fstat(file.fileno()), os.stat(self.path)
        if any(StoredFile._of(self.path, item) != self for item in status):
            raise InvalidModelError(f"{self.path} changed while it was read; nothing was written")


@dataclass(frozen=True, slots=True)
class FileRange:
    """The bytes of a file from `start` to before `end`."""

    file: StoredFile
    start: int
    end: int

    def __len__(self) -> int:
        """The number of bytes."""
        return self.end - self.start

    def read(self) -> bytes:
        """Read the bytes."""
        with self.file.opened() as file:
            file.seek(self.start)
            return file.read(len(self))

    def chunks(self) -> Iterator[bytes]:
        """Read the bytes part by part, each a mebibyte but for the last.

        Raises:
            InvalidModelError: the file has changed.
            OSError: it cannot be read.
        """
        with self.file.opened() as file:
            for start in range(self.start, self.end, _BUFFER):
                file.seek(start)
                yield file.read(min(_BUFFER, self.end - start))


@dataclass(frozen=True, slots=True)
class RecodedRange:
    """The bytes of a file's part in another form, of which `size` there are.

    Attributes:
        part: the part of the file.
        size: how many bytes they become.
        recode: makes them of some mebibyte of the part.
    """

    part: FileRange
    size: int
    recode: Callable[[bytes], bytes]

    def __len__(self) -> int:
        """The number of bytes."""
        return self.size

    def read(self) -> bytes:
        """Read all of them."""
        return b"".join(self.chunks())

    def chunks(self) -> Iterator[bytes]:
        """Read them part by part.

        Raises:
            InvalidModelError: the file has changed.
            OSError: it cannot be read.
        """
        return map(self.recode, self.part.chunks())


ByteRange = bytes | memoryview | FileRange | RecodedRange


def total_size(byte_ranges: Iterable[ByteRange]) -> int:
    """The number of bytes in all of them."""
    return sum(len(byte_range) for byte_range in byte_ranges)


def write(byte_ranges: Iterable[ByteRange], target: IO[bytes]) -> None:
    """Write byte ranges one after the other, those of files within the kernel where it can.

    Raises:
        InvalidModelError: a file that is read from has changed.
        OSError: the target cannot be written.
    """
    with ExitStack() as stack:
        opened: dict[StoredFile, BinaryIO] = {}
        for byte_range in byte_ranges:
            if isinstance(byte_range, RecodedRange):
                for chunk in byte_range.chunks():
                    target.write(chunk)
                continue
            if not isinstance(byte_range, FileRange):
                target.write(byte_range)
                continue
            if byte_range.file not in opened:
                opened[byte_range.file] = stack.enter_context(byte_range.file.opened())
            target.flush()
            copy(opened[byte_range.file], byte_range.start, len(byte_range), target)
        target.flush()


def copy(
    source: BinaryIO,
    start: int,
    size: int,
    target: IO[bytes],
    progress: Callable[[int], None] = lambda _: None,
) -> None:
    """Copy bytes to where the target stands, within the kernel where it can.

    Args:
        source: the file to read; its own position does not matter.
        start: where to begin in it.
        size: how many bytes.
        target: a file whose buffer is empty.
        progress: is called with the number of bytes of each part that is done.

    Raises:
        InvalidModelError: the source ends too early.
    """
    for kernel_copy in (_copy_file_range, _sendfile) if _keeps_pages(start, target) else ():
        try:
            while size and (done := kernel_copy(source, start, min(size, _CHUNK), target)):
                start, size = start + done, size - done
                progress(done)
        except OSError as error:
            # What is no file at all (`io.UnsupportedOperation`) comes without a number.
            if error.errno not in _CANNOT and error.errno is not None:
                raise
    source.seek(start)
    while size:
        content = source.read(min(size, _COPIED))
        if not content:
            raise InvalidModelError(f"{source.name} changed while it was read: it is shorter now")
        target.write(content)
        size -= len(content)
        progress(len(content))
    target.flush()


def _keeps_pages(start: int, target: IO[bytes]) -> bool:
    """Return whether bytes keep their places in pages; those of a pipe have none."""
    return not target.seekable() or (start - target.tell()) % _PAGE == 0


def _copy_file_range(source: BinaryIO, start: int, size: int, target: IO[bytes]) -> int:
    """Copy bytes by copy_file_range; return their number, 0 where there is no such call."""
    if not hasattr(os, "copy_file_range"):
        return 0
    return os.copy_file_range(source.fileno(), target.fileno(), size, start)


def _sendfile(source: BinaryIO, start: int, size: int, target: IO[bytes]) -> int:
    if not hasattr(os, "sendfile"):
        return 0
    return os.sendfile(target.fileno(), source.fileno(), start, size)
