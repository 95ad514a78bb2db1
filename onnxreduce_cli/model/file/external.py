"""The files of a model's external data, and how they are linked or copied to another folder."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, BinaryIO, Literal, NamedTuple

from onnx import TensorProto

from onnxreduce_cli.errors import InvalidModelError, UsageError
from onnxreduce_cli.model.file.byte_ranges import StoredFile, copy
from onnxreduce_cli.model.file.document import Document, replacing
from onnxreduce_cli.model.file.progress import Progress
from onnxreduce_cli.model.file.tensors import tensors

#: How data files get to another folder: by hard links, where these are possible, or by copying.
Way = Literal["link", "copy"]

#: The ioctl by which a file shares the blocks of another on Linux, until one of them is written to.
_FICLONE = 0x40049409

_NANOSECONDS = 1_000_000_000


class DataFile(NamedTuple):
    """A file that holds external data of a model.

    Attributes:
        location: its path in the model, relative to the model's folder.
        path: its path.
        inside: whether it is within the model's folder.
    """

    location: str
    path: str
    inside: bool


def data_files(document: Document, *, allow_outside: bool = False) -> list[DataFile]:
    """Return the files that a model's tensors refer to, each once, whether they exist or not.

    Args:
        document: the model.
        allow_outside: whether they may be outside the model's folder.

    Raises:
        InvalidModelError: one is outside, or the model comes from a stream and has no folder.
    """
    found = [_data_file(document.base_dir, location) for location in data_locations(document)]
    for file in found:
        if not document.base_dir:
            raise InvalidModelError(
                f"the model has external data ({file.location!r}), which a stream cannot bring"
            )
        if not allow_outside and (not file.inside or os.path.islink(file.path)):
            kind = "is a symbolic link" if file.inside else "is not inside the model's folder"
            raise InvalidModelError(
                f"external data {file.location!r} {kind}, which onnx refuses to load; put the file "
                "itself there, or if you know whose data it is, convert with --allow-outside-data"
            )
    return found


def data_locations(document: Document) -> list[str]:
    """Return the paths of files that a model's tensors refer to, as it says them, each once.

    Paths that are not UTF-8 are left out: no model with them is taken.
    """
    if not document.has_external_data:
        return []
    return list(
        dict.fromkeys(
            entry.value
            for tensor in tensors(document.model)
            if tensor.data_location == TensorProto.EXTERNAL and document.outline.of(tensor) is None
            for entry in tensor.external_data
            if entry.key == "location" and isinstance(entry.value, str)
        )
    )


def _data_file(folder: str, location: str) -> DataFile:
    path = os.path.normpath(os.path.join(folder, location))
    real = os.path.realpath(folder)
    inside = not os.path.isabs(location) and _within(path, os.path.normpath(folder))
    # The last component may be a link, which the caller handles.
    inside = inside and _within(os.path.realpath(os.path.dirname(path)), real, itself=True)
    return DataFile(location, path, inside)


def _within(path: str, folder: str, *, itself: bool = False) -> bool:
    return (itself and path == folder) or path.startswith(os.path.join(folder, ""))


def relocate(document: Document, files: list[DataFile], folder: str) -> bool:
    """Adapt a model that moves to another folder to the data files that do not move.

    Returns:
        whether any reference changed: a relative one that leads out of the model's folder.
    """
    staying = {
        file.location: _reference(file.path, folder)
        for file in files
        if not file.inside and not os.path.isabs(file.location)
    }
    for tensor in tensors(document.model) if staying else ():
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = staying.get(entry.value, entry.value)
    return bool(staying)


def _reference(path: str, folder: str) -> str:
    """Return a file's location relative to a folder; the path itself if on another drive."""
    try:
        return os.path.relpath(path, folder).replace(os.sep, "/")
    except ValueError:
        return path


def destinations(files: list[DataFile], folder: str) -> list[tuple[str, str]]:
    """Return the path and the new path of each data file that moves with its model to a folder."""
    return [
        (file.path, os.path.normpath(os.path.join(folder, file.location)))
        for file in files
        if file.inside
    ]


@contextmanager
def bring_data_files(
    files: list[DataFile], folder: str, way: Way, progress: Progress | None = None
) -> Iterator[list[str]]:
    """Link or copy data files into another folder, and remove them again if the block fails.

    Args:
        files: the files; files outside the model's folder stay where they are.
        folder: the folder, which exists.
        way: whether to link or to copy.
        progress: called with the bytes copied, the bytes in all, and the file.

    Yields:
        the new files that are hard links: onnx refuses to load data from such a file.

    Raises:
        InvalidModelError: a file does not exist, or changed meanwhile.
        UsageError: another file is at the destination of one.
        OSError: one cannot be read or written.
    """
    pairs = destinations(files, folder)
    for source, _ in pairs:
        if not os.path.isfile(source):
            raise InvalidModelError(f"external data is not there: no file {source}")
    waiting = [pair for pair in pairs if not _is_there(*pair)]
    linked = []
    with ExitStack() as undo:
        meter = _Meter(sum(os.path.getsize(source) for source, _ in waiting), progress)
        for source, target in waiting:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if way == "link" and _link(source, target):
                linked.append(target)
                meter.add(os.path.getsize(source), target)
            else:
                _copy(source, target, meter)
            undo.callback(os.unlink, target)
        yield linked
        undo.pop_all()


def _is_there(source: str, target: str) -> bool:
    """Return whether a data file, or an equal copy of it, is at its destination already."""
    if not os.path.lexists(target):
        return False
    if not os.path.exists(target) or not _same(os.stat(source), os.stat(target)):
        raise UsageError(f"{target} exists, and the model's external data would go there")
    return True


def _same(first: os.stat_result, second: os.stat_result) -> bool:
    """Return whether two files are the same file, or one is a copy with the same modification time.

    A time in whole seconds proves nothing: many tools set one time for all files.
    """
    if (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino):
        return True
    equal = first.st_size == second.st_size and first.st_mtime_ns == second.st_mtime_ns
    return equal and first.st_mtime_ns % _NANOSECONDS != 0


class _Meter:
    """Counts the bytes that were copied, and reports them."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total, self._done, self._progress = total, 0, progress

    def add(self, size: int, what: str) -> None:
        self._done += size
        if self._progress is not None:
            self._progress(self._done, self._total, what)


def _link(source: str, target: str) -> bool:
    try:
        os.link(os.path.realpath(source), target)
    except OSError:
        return False  # Another file system, or one that has no links.
    return True


def _copy(source: str, target: str, meter: _Meter) -> None:
    stored = StoredFile.at(source)
    with replacing(target) as writer, stored.opened() as reader:
        if _share_blocks(reader, writer):
            meter.add(stored.size, target)
        else:
            done = 0
            for start, end in list(_extents(reader, stored.size)):
                writer.seek(start)
                meter.add(start - done, target)
                copy(reader, start, end - start, writer, lambda size: meter.add(size, target))
                done = end
            meter.add(stored.size - done, target)
            writer.truncate(stored.size)
        # A copy is recognised by its time, see `_same`.
        times = os.stat(source)
        os.utime(writer.name, ns=(times.st_atime_ns, times.st_mtime_ns))


def _share_blocks(reader: BinaryIO, writer: IO[bytes]) -> bool:
    try:
        import fcntl

        fcntl.ioctl(writer.fileno(), _FICLONE, reader.fileno())
    except (ImportError, OSError):
        return False  # The file system, or this platform, cannot.
    return True


def _extents(file: BinaryIO, size: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each part of a file that holds data; holes read as zeros."""
    end = 0
    while end < size:
        start, end = end, size
        with suppress(AttributeError):  # Not every platform has the request.
            try:
                start = os.lseek(file.fileno(), start, os.SEEK_DATA)
                end = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            except OSError as error:
                if error.errno == errno.ENXIO:
                    return  # There is no more data.
        yield start, end
