"""Byte ranges: bytes in memory, or a part of a file, which the kernel copies where it can."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO, BinaryIO, NamedTuple

from onnxreduce_cli.errors import InvalidModelError

#: The bytes copied in one call: few enough to report progress, and for a signal to come through.
_CHUNK = 1 << 28
#: The bytes read at once, and those read at once to be copied where the kernel does not copy.
_BUFFER, _COPIED = 1 << 20, 1 << 18
#: The kernel copies slower than reading and writing does where data does not move by whole pages.
_PAGE = 1 << 12

#: The errors of a kernel or a file system that cannot copy between two files.
_CANNOT = frozenset(
    getattr(errno, name)
    for name in ("EBADF", "EINVAL", "ENOSYS", "ENOTSOCK", "ENOTSUP", "EOPNOTSUPP", "EPERM", "EXDEV")
    if hasattr(errno, name)
)


class StoredFile(NamedTuple):
    """A file, and its state when this was made.

    Attributes:
        path: where it is.
        size: in bytes.
        state: device, inode and time of modification, by which a change is noticed.
    """

    path: str
    size: int
    state: tuple[int, ...]

    @classmethod
    def at(cls, path: str) -> StoredFile:
        """Take down the state of a file.

        Raises:
            OSError: the system does not give it.
        """
        return cls._of(path, os.stat(path))

    @classmethod
    def _of(cls, path: str, status: os.stat_result) -> StoredFile:
        state = (status.st_dev, status.st_ino, status.st_mtime_ns)
        return cls(path, status.st_size, state)

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Open the file for reading, and make sure that it is unchanged before and after.

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
    """A part of a file in another encoding, made as it is read.

    Attributes:
        part: the part of the file.
        size: how many bytes they become.
        recode: encodes a chunk of the part anew.
    """

    part: FileRange
    size: int
    recode: Callable[[bytes], bytes]

    def __len__(self) -> int:
        """The number of bytes."""
        return self.size

    def read(self) -> bytes:
        """Read all bytes."""
        return b"".join(self.chunks())

    def chunks(self) -> Iterator[bytes]:
        """Read the bytes part by part.

        Raises:
            InvalidModelError: the file has changed.
            OSError: it cannot be read.
        """
        return map(self.recode, self.part.chunks())


ByteRange = bytes | memoryview | FileRange | RecodedRange


def total_size(byte_ranges: Iterable[ByteRange]) -> int:
    """Return the number of bytes in all byte ranges."""
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
    """Copy bytes to the position of the target, within the kernel where it can.

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
    """Return whether bytes stay at the same offset in a page; a pipe has no pages."""
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
