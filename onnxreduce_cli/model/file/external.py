"""A model's external data: which files they are, and how they go along. It is never read."""

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

#: How data goes along, but for not at all: by hard links, where there can be any, or copied.
Way = Literal["link", "copy"]

#: Linux's request to let a file have the blocks of another, until one of them is written to.
_FICLONE = 0x40049409

_NANOSECONDS = 1_000_000_000


class DataFile(NamedTuple):
    """A file that a model has data in.

    Attributes:
        location: what the model calls it, relative to its own folder.
        path: where it is.
        inside: whether that is within the model's folder.
    """

    location: str
    path: str
    inside: bool


def data_files(document: Document, *, allow_outside: bool = False) -> list[DataFile]:
    """The files that a model's tensors refer to, each once. They need not be there.

    Args:
        document: the model.
        allow_outside: whether they may be outside the model's folder.

    Raises:
        InvalidModelError: one is outside, or the model comes from a stream and has no folder.
    """
    if not document.has_external_data:
        return []
    found: dict[str, DataFile] = {}
    for tensor in tensors(document.model):
        if tensor.data_location != TensorProto.EXTERNAL or document.outline.of(tensor) is not None:
            continue
        for entry in tensor.external_data:
            if entry.key == "location" and entry.value not in found:
                found[entry.value] = _data_file(document.base_dir, entry.value)
    for file in found.values():
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
    return list(found.values())


def _data_file(folder: str, location: str) -> DataFile:
    path = os.path.normpath(os.path.join(folder, location))
    real = os.path.realpath(folder)
    inside = not os.path.isabs(location) and _within(path, os.path.normpath(folder))
    # The last component may be a link, which is a case of its own.
    inside = inside and _within(os.path.realpath(os.path.dirname(path)), real, itself=True)
    return DataFile(location, path, inside)


def _within(path: str, folder: str, *, itself: bool = False) -> bool:
    return (itself and path == folder) or path.startswith(os.path.join(folder, ""))


def relocate(document: Document, files: list[DataFile], folder: str) -> bool:
    """Let a model that goes to another folder find the data that stays where it is.

    Returns:
        whether any reference changed: those relative to the model's own folder that lead out of it.
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
    """A file's location from a folder, as models write it: whole where it is on another drive."""
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
        files: the files; those outside their model's folder stay where they are.
        folder: the folder, which is there.
        way: how.
        progress: called with the bytes copied, the bytes in all, and the file.

    Yields:
        the new files that are hard links: onnx refuses to load data that has several.

    Raises:
        InvalidModelError: a file is not there, or changed on the way.
        UsageError: another file is where one would go.
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
    """Return whether a data file is at its target already, as itself or as an equal copy."""
    if not os.path.lexists(target):
        return False
    if not os.path.exists(target) or not _same(os.stat(source), os.stat(target)):
        raise UsageError(f"{target} exists, and the model's external data would go there")
    return True


def _same(first: os.stat_result, second: os.stat_result) -> bool:
    """Return whether two files are one, or one is a copy of the other with its modification time.

    A time in whole seconds proves nothing: many tools set one time for all files.
    """
    if (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino):
        return True
    equal = first.st_size == second.st_size and first.st_mtime_ns == second.st_mtime_ns
    return equal and first.st_mtime_ns % _NANOSECONDS != 0


class _Meter:
    """Counts the bytes that are done, and reports them."""

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
        # A copy is known by its time, see `_same`.
        times = os.stat(source)
        os.utime(writer.name, ns=(times.st_atime_ns, times.st_mtime_ns))


def _share_blocks(reader: BinaryIO, writer: IO[bytes]) -> bool:
    try:
        import fcntl

        fcntl.ioctl(writer.fileno(), _FICLONE, reader.fileno())
    except (ImportError, OSError):
        return False  # The file system does not, or there is no such request here.
    return True


def _extents(file: BinaryIO, size: int) -> Iterator[tuple[int, int]]:
    """Find the start and end of a file's data; the holes between read as zeros."""
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
