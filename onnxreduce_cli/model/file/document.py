"""Model files: read in every format that onnx reads, written whole or not at all."""

from __future__ import annotations

import errno
import io
import os
import stat
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import onnx
from google.protobuf import json_format, text_format
from google.protobuf.message import DecodeError
from onnx import ModelProto
from onnx.serialization import registry

from onnxreduce_cli.errors import InvalidModelError, MissingModelError
from onnxreduce_cli.model.file import wire
from onnxreduce_cli.model.file.byte_ranges import (
    ByteRange,
    FileRange,
    StoredFile,
    total_size,
    write,
)
from onnxreduce_cli.model.file.outline import Outline
from onnxreduce_cli.model.file.tensors import tensors

#: The levels of messages within messages that protobuf reads: two for the main graph, and three for
#: each graph within a graph.
MOST_NESTED = 100

#: The path that means standard input or output.
STREAM = "-"

#: The most bytes of a protobuf message.
LARGEST = (1 << 31) - 1

#: The bytes read at a time from a file of unknown size.
_PART = 1 << 20

#: Smaller files are parsed as they are. Measured: an outline of 64 MiB of nodes, where nothing can
#: be left out, takes half a second; reading and writing 64 MiB of weights takes no longer.
_OUTLINED = 1 << 26

#: The beginning of a pointer file, in place of a file that Git LFS has not fetched.
_POINTER = b"version https://git-lfs.github.com/spec/"

#: Every reference to external data has this key.
_EXTERNAL_MARK = b"location"


@dataclass(slots=True)
class Document:
    """A model with the file or stream that it was read from, if any.

    Attributes:
        model: the model. External data is not loaded; nor is the data of large tensors of a large
            file, which the model refers to as external data too.
        source: the bytes that it was read from.
        format: the serialisation, as `onnx.load` names it, such as ``protobuf`` or ``json``.
        base_dir: the folder that external data is relative to; empty for a stream.
        outline: the data that was left out of the model.
        has_external_data: False only where no tensor has its data in another file.
    """

    model: ModelProto
    source: ByteRange = b""
    format: str = "protobuf"
    base_dir: str = ""
    outline: Outline = field(default_factory=Outline)
    has_external_data: bool = True

    def byte_ranges(self, form: str) -> list[ByteRange]:
        """Serialise the model as it is now.

        Raises:
            InvalidModelError: it is too large for protobuf.
        """
        if form != "protobuf":
            return [serialize(self.whole(), form)]
        byte_ranges = self.outline.embed(serialize(self.model, form))
        size = total_size(byte_ranges)
        if size > LARGEST:
            raise InvalidModelError(
                f"the model has {size / 1e9:.2f} GB and protobuf holds no more than 2.14; put "
                "weights in a file of their own: --external-data-threshold 1MB"
            )
        return byte_ranges

    def whole(self) -> ModelProto:
        """Return the model with the data that was left out put back into its tensors."""
        if self.outline:
            self.outline.fill(tensors(self.model))
        return self.model


def format_of(path: str) -> str:
    """Return the serialisation that a file's extension means; protobuf where it means none."""
    extension = Path(path).suffix
    return registry.get_format_from_file_extension(extension) or "protobuf"


def load(path: str | os.PathLike[str], stream: IO[bytes] | None = None) -> Document:
    """Read a model from a file, or from `stream` where the path is ``-``.

    Raises:
        InvalidModelError: it cannot be read, or is no model.
    """
    name = os.fspath(path)
    outline = Outline()
    source: ByteRange
    try:
        if name == STREAM and stream is not None:
            content = source = read_whole(stream)
            base_dir, form = "", "protobuf"
        else:
            base_dir, form = os.path.dirname(os.path.abspath(name)), format_of(name)
            content, source = _read(name, outline if form == "protobuf" else None)
    except OSError as error:
        if os.path.isdir(name):
            raise InvalidModelError(f"{name} is a folder; name a model in it") from error
        kind = MissingModelError if isinstance(error, FileNotFoundError) else InvalidModelError
        raise kind(f"{name} cannot be read: {error.strerror}") from error
    has_external_data = content.count(_EXTERNAL_MARK) > len(outline)
    model = _parse(content, form, name)
    return Document(model, source, form, base_dir, outline, has_external_data)


def _read(path: str, outline: Outline | None) -> tuple[bytes, ByteRange]:
    """Return a file's content without large tensors if there is an outline, and all its bytes."""
    if not os.path.isfile(path):
        with open(path, "rb") as pipe:  # Or a device, that is not to be read twice.
            content = read_whole(pipe)
        return content, content
    stored = StoredFile.at(path)
    if stored.size > LARGEST:
        raise _too_large()
    with stored.opened() as file:
        if outline is not None and stored.size >= _OUTLINED:
            content = outline.read(file, stored)
        else:
            content = file.read()
    return content, FileRange(stored, 0, stored.size)


def read_whole(file: IO[bytes]) -> bytes:
    """Read a file, a pipe or a device to its end, unless there is too much.

    Raises:
        OSError: it cannot be read, or holds more than a message of protobuf does.
    """
    content = io.BytesIO()
    while part := file.read(_PART):
        if content.tell() + len(part) > LARGEST:
            raise _too_large()
        content.write(part)
    return content.getvalue()


def _too_large() -> OSError:
    return OSError(
        errno.EFBIG,
        "it is larger than 2.14 GB, and protobuf, which models and tensors are stored in, holds no "
        "more; weights of a larger model are in files of their own",
    )


def _parse(content: bytes, form: str, name: str) -> ModelProto:
    if not content:
        what = "standard input" if name == STREAM else name
        raise InvalidModelError(f"{what} is empty")
    if content.startswith(_POINTER):
        raise InvalidModelError(f"{name} is what Git LFS keeps in place of a model: git lfs pull")
    try:
        if form == "protobuf":
            model = ModelProto.FromString(content)
        else:
            with warnings.catch_warnings():
                # The textual form calls itself experimental each time.
                warnings.simplefilter("ignore", UserWarning)
                model = registry.get(form).deserialize_proto(content, ModelProto())
    except DecodeError as error:
        raise InvalidModelError(
            _is_foreign(content, name) or f"{name} {_unreadable(content)}"
        ) from error
    except onnx.parser.ParseError as error:
        # Its text is bytes, and says on three lines where, amid what, and what is wrong.
        message = error.args[0].decode(errors="replace") if error.args else ""
        text = ", ".join(line.strip() for line in message.splitlines())
        raise InvalidModelError(f"{name} is no ONNX model in {form} form: {text}") from error
    except (ValueError, json_format.Error, text_format.Error) as error:
        first = str(error).strip().splitlines()
        raise InvalidModelError(
            f"{name} is no ONNX model in {form} form: {first[0] if first else error}"
        ) from error
    if not model.HasField("graph"):
        raise InvalidModelError(
            _is_foreign(content, name)
            or f"{name} is no ONNX model: it has no graph; of a TensorFlow model (.pb) make one: "
            "pip install tf2onnx; python -m tf2onnx.convert"
        )
    return model


def _unreadable(content: bytes) -> str:
    """Return the message for a file that protobuf cannot parse."""
    if nesting_depth(content) > MOST_NESTED:
        return (
            "cannot be read: its graphs or types nest deeper than protobuf reads, which is 32 "
            "levels of If; export it with fewer"
        )
    return "is no ONNX model in protobuf form: it is cut short, or something else"


def nesting_depth(content: bytes) -> int:
    """Return the depth to which messages nest in a serialised model, as far as it is well-formed.

    Beyond `MOST_NESTED` the depth is a lower bound.
    """
    deepest = 0
    read = wire.in_memory(content)
    waiting: list[tuple[int, int, Any, int]] = [(0, len(content), ModelProto.DESCRIPTOR, 1)]
    while waiting and deepest <= MOST_NESTED:
        start, end, message, level = waiting.pop()
        deepest = max(deepest, level)
        with suppress(wire.WireError):
            for field in wire.fields(read, start, end):
                known = message.fields_by_number.get(field.number)
                inner = None if known is None else known.message_type
                if inner is not None and field.kind == wire.DELIMITED:
                    waiting.append((field.body, field.end, inner, level + 1))
    return deepest


def _is_foreign(content: bytes, name: str) -> str | None:
    """Return the message for a file of another known format; None if it is of none."""
    from onnxreduce_cli.model.file.foreign import foreign_format

    found = foreign_format(content)
    return None if found is None else f"{name} is no ONNX model but {found}"


def serialize(model: ModelProto, form: str) -> bytes:
    """Return a model as bytes of a serialisation."""
    if form == "protobuf":
        content: bytes = model.SerializeToString()
        return content
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return bytes(registry.get(form).serialize_proto(model))


@contextmanager
def replacing(path: str | os.PathLike[str], *, lasting: bool = False) -> Iterator[IO[bytes]]:
    """Write a file whole or not at all: to a temporary one beside it, renamed at the end.

    Where an error occurs before the end, a file that was there stays as it was. Only a process that
    is killed leaves the temporary one behind: ``.NAME.*.part`` and the extension. The file that is
    yielded has its path as `name`.

    Args:
        path: the file.
        lasting: whether to wait until it is on the disk, as is done in any case where it replaces
            another file.

    Raises:
        OSError: it cannot be written.
    """
    # Through a symbolic link, so that what it points to is replaced, not the link.
    final = os.path.realpath(path)
    if os.path.exists(final) and not os.path.isfile(final):
        # A device or a pipe would be gone, and a file in its place.
        raise OSError(errno.EINVAL, "It is no regular file", os.fspath(path))
    stem, extension = os.path.splitext(os.path.basename(final))
    temporary = None
    try:
        # A name may be as long as the file system takes, and the temporary one is longer.
        prefix, suffix = f".{stem[:40]}.", f".part{extension}"
        handle, temporary = tempfile.mkstemp(suffix, prefix, os.path.dirname(final))
        os.close(handle)
        with ExitStack() as undo:
            undo.callback(_remove, temporary)
            # Opened without truncation: ext4 writes a truncated file to the disk when it is closed,
            # which takes longer than copying it.
            with open(temporary, "r+b") as file:
                yield file
                file.flush()
                # A replaced file is lost, so the new one must be on the disk before. A file that
                # replaces none can be made again after a power cut: waiting for the disk would take
                # as long as copying.
                if lasting or os.path.exists(final):
                    os.fsync(file.fileno())
            os.chmod(temporary, _mode(final))
            os.replace(temporary, final)
            undo.pop_all()
    except OSError as error:
        if temporary is None:
            raise _no_place(error, final) from error
        # Users know the file by its own name.
        if error.filename in (None, temporary):
            error.filename = final
        raise


@contextmanager
def temporary(content: list[ByteRange], folder: str = "") -> Iterator[str]:
    """Write a model to a temporary file, and yield its path.

    The file is closed: on Windows nobody else can open a temporary file that is not.

    Args:
        content: the model's bytes.
        folder: the folder; empty for the system's folder of temporary files.

    Raises:
        OSError: it cannot be written.
    """
    handle, path = tempfile.mkstemp(".onnx", "onnxreduce-", folder or None)
    with ExitStack() as undo:
        undo.callback(_remove, path)
        with os.fdopen(handle, "wb") as file:
            write(content, file)
        yield path


def make_folder(path: str | os.PathLike[str]) -> None:
    """Make a folder, and its parents, if it does not exist.

    Raises:
        OSError: it cannot be made.
    """
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise _no_place(error, os.path.abspath(path)) from error


def _no_place(error: OSError, path: str) -> OSError:
    """Return an error for a file or folder that cannot be made, with its folder and what to do."""
    if isinstance(error, FileExistsError):
        return FileExistsError(error.errno, "it is a file, not a folder; name another", path)
    folder = os.path.dirname(path)
    problem = f"nothing can be made in the folder {folder} ({error.strerror}); name another folder"
    return OSError(error.errno, problem, path)


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _mode(path: str) -> int:
    """Return the permissions of the file that is replaced, or of a new file."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
