"""Model files: read in every form that onnx reads, written whole or not at all."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto, TensorProto
from onnx.serialization import registry

from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.model.scope import scopes

#: Stands for standard input and output.
STREAM = "-"

_EXTERNAL_MARK = b"location"


@dataclass
class Document:
    """A model as it was read.

    Attributes:
        model: the model; external data is left where it is.
        content: the bytes it was read from.
        format: the serialisation, as `onnx.load` names it, such as ``protobuf`` or ``json``.
        base_dir: the folder that external data is relative to; empty for a stream.
    """

    model: ModelProto
    content: bytes
    format: str
    base_dir: str


def format_of(path: str) -> str:
    """The serialisation that a file's extension means; protobuf where it means none."""
    extension = Path(path).suffix
    return registry.get_format_from_file_extension(extension) or "protobuf"


def load(path: str | os.PathLike[str], stream: IO[bytes] | None = None) -> Document:
    """Read a model from a file, or from `stream` where the path is ``-``.

    Raises:
        InvalidModelError: it cannot be read, or is no model.
    """
    name = os.fspath(path)
    try:
        if name == STREAM and stream is not None:
            content, base_dir, form = stream.read(), "", "protobuf"
        else:
            content = Path(name).read_bytes()
            base_dir, form = os.path.dirname(os.path.abspath(name)), format_of(name)
    except OSError as error:
        raise InvalidModelError(f"{name} cannot be read: {error.strerror}") from error
    return Document(_parse(content, form, name), content, form, base_dir)


def _parse(content: bytes, form: str, name: str) -> ModelProto:
    if not content:
        raise InvalidModelError(f"{name} is empty")
    try:
        if form == "protobuf":
            model = ModelProto.FromString(content)
        else:
            with warnings.catch_warnings():
                # The textual form calls itself experimental each time.
                warnings.simplefilter("ignore", UserWarning)
                model = registry.get(form).deserialize_proto(content, ModelProto())
    except (DecodeError, ValueError, onnx.parser.ParseError) as error:
        first = str(error).strip().splitlines()
        raise InvalidModelError(
            f"{name} is no ONNX model in {form} form: {first[0] if first else error}"
        ) from error
    except Exception as error:  # The text and JSON parsers have exceptions of their own.
        if type(error).__module__.startswith("google.protobuf"):
            raise InvalidModelError(f"{name} is no ONNX model in {form} form: {error}") from error
        raise
    if not model.HasField("graph"):
        raise InvalidModelError(f"{name} is no ONNX model: it has no graph")
    return model


def serialize(model: ModelProto, form: str) -> bytes:
    """A model's bytes in a serialisation."""
    if form == "protobuf":
        content: bytes = model.SerializeToString()
        return content
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return bytes(registry.get(form).serialize_proto(model))


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Write a file whole or not at all: to a temporary one beside it, renamed at the end.

    Whatever goes wrong before the end, a file that was there stays as it was. The file given has
    the temporary one's path as its `name`.
    """
    # Through a symbolic link, so that what it points to is replaced, not the link.
    final = os.path.realpath(path)
    handle, temporary = tempfile.mkstemp(
        dir=os.path.dirname(final), prefix=f".{os.path.basename(final)}.", suffix=".part"
    )
    os.close(handle)
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(final))
        os.replace(temporary, final)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _mode(path: str) -> int:
    """The permissions of the file that is replaced, or those that a new file gets."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def external_locations(model: ModelProto) -> list[str]:
    """The files that a model's tensors refer to, each once, in order."""
    found: dict[str, None] = {}
    for tensor in tensors(model):
        if tensor.data_location == TensorProto.EXTERNAL:
            for entry in tensor.external_data:
                if entry.key == "location":
                    found[entry.value] = None
    return list(found)


def tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Every tensor that a model stores: initializers and attributes, at any depth."""
    for scope in scopes(model):
        yield from scope.initializers.values()
        for sparse in getattr(scope.container, "sparse_initializer", ()):
            yield from (sparse.values, sparse.indices)
        for node in scope.nodes:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield attribute.t
                yield from attribute.tensors
                if attribute.HasField("sparse_tensor"):
                    yield from (attribute.sparse_tensor.values, attribute.sparse_tensor.indices)


def data_files(document: Document) -> list[tuple[str, str]]:
    """The model's external data: each location with the path of the file it names.

    Raises:
        InvalidModelError: a location leaves the model's folder, or its file is not there.
    """
    if _EXTERNAL_MARK not in document.content:
        return []
    found = []
    for location in external_locations(document.model):
        path = os.path.join(document.base_dir, location)
        inside = os.path.realpath(path).startswith(os.path.realpath(document.base_dir) + os.sep)
        if not document.base_dir or os.path.isabs(location) or not inside:
            raise InvalidModelError(
                f"external data {location!r} is not inside the model's folder"
                if document.base_dir
                else f"the model has external data ({location!r}), which a stream cannot bring"
            )
        if not os.path.isfile(path):
            raise InvalidModelError(f"external data {location!r} is not there: no file {path}")
        found.append((location, path))
    return found


def copy_file(source: str, target: str) -> None:
    """Copy a file whole or not at all, its folder included."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(source, "rb") as reader, replacing(target) as writer:
        shutil.copyfileobj(reader, writer, 1 << 20)
