"""Writing of a converted model: its external data, then the model, each whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import IO, Literal, NamedTuple

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.model.file.byte_ranges import ByteRange, write
from onnxreduce_cli.model.file.document import STREAM, Document, format_of, replacing, temporary
from onnxreduce_cli.model.file.external import (
    DataFile,
    bring_data_files,
    data_files,
    destinations,
    relocate,
)
from onnxreduce_cli.model.file.progress import Progress

#: The bytes from which converted external data becomes external data again.
_MOVED = 1024


@dataclass(frozen=True)
class SavedData:
    """The external data that was written.

    Attributes:
        brought: the files that were copied or linked: from where, to where.
        linked: the new files that are hard links.
        made: the new file of weights that were inline; empty if there is none.
        read: the files that held the model's data.
        unchanged: whether the model's file is a copy of the one that was read.
    """

    brought: tuple[tuple[str, str], ...] = ()
    linked: tuple[str, ...] = ()
    made: str = ""
    read: tuple[str, ...] = ()
    unchanged: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """All data files that the written model needs."""
        return (*(target for _, target in self.brought), *filter(None, [self.made]))


def check_data_path(path: str, options: Options) -> None:
    """Check, before any work, that new external data can be written.

    Raises:
        UsageError: the options contradict each other, or a file of that name exists.
    """
    if options.threshold is None:
        return
    if options.inline:
        raise UsageError("--inline and --external-data-threshold exclude each other: leave one out")
    if path == STREAM:
        raise UsageError("external data needs a file beside the model's: -o FILE")
    _data_path(path, force=options.force)


def save(
    document: Document,
    conversion: Conversion,
    path: str,
    options: Options,
    *,
    stdout: IO[bytes] | None = None,
    verify: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> SavedData:
    """Apply a conversion and write the model.

    Args:
        document: the model as it was read.
        conversion: the conversion, which is not applied yet.
        path: where to write; ``-`` for `stdout`.
        options: where weights go, and whether existing files may be overwritten.
        stdout: the stream that ``-`` is written to.
        verify: called with the path of the written model, its data beside it, before the file gets
            its own name; if it raises, the output is not written.
        progress: called with the bytes of external data copied, the number of all, and the file.

    Raises:
        UsageError: another file has the name of the data file.
        InvalidModelError: external data is outside the folder or missing, the model is too large,
            or a file changed while it was read.
        OSError: a file cannot be written; existing ones are as they were.
    """
    options = _with_threshold(options, conversion, path)
    folder = document.base_dir if path == STREAM else os.path.dirname(os.path.abspath(path))
    files = _data_files(document, options)
    _check_apart(path, folder, files)
    going = _files_to_bring(document, folder, options, files)
    if rewritten := not conversion.changes_nothing:
        conversion.apply()
    moved, new = _move_weights(document, path, options, files)
    renamed = relocate(document, going, folder)
    changed = rewritten or moved or renamed or _format(path) != document.format
    content = document.byte_ranges(_format(path)) if changed else [document.source]
    with ExitStack() as stack:
        way: Literal["link", "copy"] = "link" if options.external_data == "link" else "copy"
        linked = stack.enter_context(bring_data_files(going, folder, way, progress))
        if new.content:
            # If the model overwrites another one, its weights may exist nowhere else.
            stack.enter_context(_written_data(new, lasting=os.path.exists(path)))
        _write(content, path, folder, stdout, verify)
    pairs = tuple(destinations(going, folder))
    read = tuple(file.path for file in files)
    return SavedData(pairs, tuple(linked), new.path, read, not changed)


def try_out(
    document: Document, conversion: Conversion, options: Options, verify: Callable[[str], None]
) -> None:
    """Apply a conversion and call `verify` on a temporary file of the model.

    Args:
        document: the model as it was read.
        conversion: the conversion, which is not applied yet.
        options: whether external data may be outside the model's folder.
        verify: called with the path of the temporary file, which lies beside its external data.

    Raises:
        InvalidModelError: external data is outside the folder or missing, or the model is too
            large.
        OSError: the temporary file cannot be written.
    """
    files = _data_files(document, options)
    if not conversion.changes_nothing:
        conversion.apply()
    content = document.byte_ranges("protobuf")
    with temporary(content, document.base_dir if files else "") as path:
        verify(path)


def _with_threshold(options: Options, conversion: Conversion, path: str) -> Options:
    """Return options by which weights that were moved into the model become external data again."""
    if not conversion.prepared.moved or options.inline or path == STREAM:
        return options
    threshold = _MOVED if options.threshold is None else options.threshold
    return replace(options, threshold=threshold)


class _NewDataFile(NamedTuple):
    """A data file to write: its path and content, both empty if there is none."""

    path: str = ""
    content: Sequence[ByteRange] = ()


def _data_files(document: Document, options: Options) -> list[DataFile]:
    """Return the files of a model's external data, as far as they are needed.

    Raises:
        InvalidModelError: one is outside the model's folder, or missing.
    """
    if document.base_dir or options.inline:
        return data_files(document, allow_outside=options.allow_outside)
    return []


def _files_to_bring(
    document: Document, folder: str, options: Options, files: list[DataFile]
) -> list[DataFile]:
    """Return the data files to link or copy to the output's folder."""
    stays = os.path.realpath(folder) == os.path.realpath(document.base_dir or folder)
    return [] if stays or options.inline or options.external_data == "keep" else files


def _move_weights(
    document: Document, path: str, options: Options, files: list[DataFile]
) -> tuple[bool, _NewDataFile]:
    """Move weights into the model's file or out of it.

    Returns:
        whether any moved, and the new data file.

    Raises:
        UsageError: another file has the name of the data file.
    """
    if options.inline:
        from onnxreduce_cli.model.file.weights import move_in

        return move_in(document, files), _NewDataFile()
    if options.threshold is None:
        return False, _NewDataFile()
    from onnxreduce_cli.model.file.weights import move_out

    data_path = _data_path(path, force=options.force)
    content = move_out(document, options.threshold, os.path.basename(data_path))
    return (True, _NewDataFile(data_path, content)) if content else (False, _NewDataFile())


def _format(path: str) -> str:
    """Return the serialisation of an output."""
    return "protobuf" if path == STREAM else format_of(path)


def _write(
    content: list[ByteRange],
    path: str,
    folder: str,
    stdout: IO[bytes] | None,
    verify: Callable[[str], None] | None,
) -> None:
    """Write the model's file or stream, after `verify` has accepted it."""
    if path != STREAM:
        with replacing(path) as file:
            write(content, file)
            if verify is not None:
                verify(file.name)
        return
    assert stdout is not None
    if verify is not None:
        with temporary(content, folder) as copy:
            verify(copy)
    write(content, stdout)


def _data_path(path: str, *, force: bool) -> str:
    """Return the path of the new data file.

    An existing file is never overwritten while a model may refer to it: two files cannot be
    replaced in one step.
    """
    found = f"{path}.data"
    if not os.path.lexists(found) or (force and not os.path.lexists(path)):
        return found
    if not force:
        raise UsageError(f"{found} exists, and the model's external data would go there")
    number = 2
    while os.path.lexists(found := f"{path}.{number}.data"):
        number += 1
    return found


def _check_apart(path: str, folder: str, files: list[DataFile]) -> None:
    """Refuse an output path that is the path of external data."""
    final = os.path.realpath(path)
    taken = {file.path for file in files} | {target for _, target in destinations(files, folder)}
    if path != STREAM and final in map(os.path.realpath, taken):
        raise UsageError(f"{path} is where the model's external data is, or would go")


@contextmanager
def _written_data(new: _NewDataFile, *, lasting: bool) -> Iterator[None]:
    """Write a data file, and remove it again if the block fails."""
    with replacing(new.path, lasting=lasting) as file:
        write(new.content, file)
    with ExitStack() as undo:
        undo.callback(os.unlink, new.path)
        yield
        undo.pop_all()
