"""Inputs as files: ``.npy``, ``.npz``, and folders in the layout of onnx's backend tests."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError
from onnx import (
    ModelProto,
    OptionalProto,
    SequenceProto,
    TensorProto,
    TypeProto,
    numpy_helper,
)

from onnxreduce_cli.model.file.document import read_whole
from onnxreduce_cli.model.graph.values import numpy_dtype
from onnxreduce_cli.verification.errors import InputError

Array = npt.NDArray[Any]
Inputs = dict[str, Any]

_NUMBERED = re.compile(r"input_(\d+)\.pb")


def read_inputs(
    model: ModelProto,
    pairs: Sequence[str] = (),
    path: str | os.PathLike[str] | None = None,
) -> list[Inputs]:
    """Read inputs for a model.

    Args:
        model: the model; its weights are not needed.
        pairs: ``name=file.npy`` each; they take the place of what `path` gives by that name.
        path: an ``.npz`` file, a folder that holds ``input_0.pb`` and so on, or a folder of such
            folders named ``test_data_set_0`` and so on.

    Returns:
        one or more sets of inputs by name; a set need not have all inputs of the model.

    Raises:
        InputError: a file cannot be read, or does not fit the model's inputs.
    """
    types = input_types(model)
    sets = [{}] if path is None else _read_path(Path(path), types)
    for pair in pairs:
        name, equals, file = pair.partition("=")
        if not equals or not name or not file:
            raise InputError(f"{pair!r} is not of the form name=file.npy")
        check_name(name, types)
        value = _as_declared(name, _load(Path(file)), types[name])
        for inputs in sets:
            inputs[name] = value
    return sets


def input_files(pairs: Sequence[str], path: str | os.PathLike[str] | None) -> list[str]:
    """Return the files that `read_inputs` reads, by the same arguments."""
    found = [pair.partition("=")[2] for pair in pairs]
    if path is None or not os.path.isdir(path):
        return [*found, *([] if path is None else [os.fspath(path)])]
    return [*found, *map(str, sorted(Path(path).rglob("*.pb")))]


def input_types(model: ModelProto) -> dict[str, TypeProto]:
    """Return the types of a model's inputs by name, those with an initializer included."""
    return {value.name: value.type for value in model.graph.input}


def check_name(name: str, types: Mapping[str, TypeProto]) -> None:
    """Raise an `InputError` where a model has no input of a name."""
    if name not in types:
        raise InputError(f"the model has no input {name!r}; it has: {', '.join(types) or 'none'}")


def _read_path(path: Path, types: Mapping[str, TypeProto]) -> list[Inputs]:
    if path.is_dir():
        if (path / "input_0.pb").exists():
            return [_read_folder(path, types)]
        folders = sorted(item for item in path.glob("test_data_set_*") if item.is_dir())
        if not folders:
            raise InputError(f"{path} holds neither input_0.pb nor test_data_set_0")
        return [_read_folder(folder, types) for folder in folders]
    found = _load(path)
    if not isinstance(found, dict):
        raise InputError(f"{path} is no .npz file; say which input it is: name={path}")
    for name in found:
        check_name(name, types)
    return [{name: _as_declared(name, value, types[name]) for name, value in found.items()}]


def _load(path: Path) -> Any:
    """Read an array, or a dict of arrays from an ``.npz``."""
    try:
        found = np.load(path, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return found
        with found:
            return {name: found[name] for name in found.files}
    except (OSError, ValueError, EOFError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError(f"{path} cannot be read: {why}") from error


def _as_declared(name: str, value: Array, declared: TypeProto) -> Any:
    """Restore what ``.npy`` cannot express: dtypes that NumPy lacks, strings."""
    if declared.WhichOneof("value") != "tensor_type":
        raise InputError(f"input {name!r} is no tensor; give it as a folder with input_0.pb")
    elem_type = declared.tensor_type.elem_type
    if value.dtype.kind in "US":
        value = value.astype(str).astype(object)
    expected = numpy_dtype(elem_type)
    if value.dtype.kind == "V" and value.dtype.itemsize == expected.itemsize:
        value = value.view(expected)
    if value.dtype != expected:
        raise InputError(f"input {name!r} has dtype {value.dtype}, the model wants {expected}")
    return value


def _read_folder(folder: Path, types: Mapping[str, TypeProto]) -> Inputs:
    order = list(types)
    found: Inputs = {}
    files = [
        (match, file) for file in folder.iterdir() if (match := _NUMBERED.fullmatch(file.name))
    ]
    for match, file in sorted(files, key=lambda item: int(item[0][1])):
        index = int(match[1])
        content = _bytes(file)
        # Tensors, sequences and optionals have their names in different fields.
        candidates = [order[index]] if index < len(order) else []
        name = _stated_name(content) or (candidates[0] if candidates else "")
        if name not in types:
            name = candidates[0] if candidates else name
        if name not in types:
            raise InputError(f"{file} is input {index}, the model has {len(order)}")
        found[name] = _decode(file, content, types[name])
    return found


def _bytes(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return read_whole(opened)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error


def _stated_name(content: bytes) -> str:
    """Return the name in a tensor's message; empty for other messages, which go by their index."""
    try:
        return str(TensorProto.FromString(content).name)
    except DecodeError:
        return ""


def _decode(file: Path, content: bytes, declared: TypeProto) -> Any:
    kind = declared.WhichOneof("value")
    try:
        if kind == "sequence_type":
            return list(numpy_helper.to_list(SequenceProto.FromString(content)))
        if kind == "optional_type":
            optional = OptionalProto.FromString(content)
            empty = not (optional.HasField("tensor_value") or optional.HasField("sequence_value"))
            return None if empty else numpy_helper.to_optional(optional)
        return _tensor(TensorProto.FromString(content))
    except (DecodeError, ValueError, TypeError) as error:
        raise InputError(f"{file} is no value of the input's type: {error}") from error


def _tensor(tensor: TensorProto) -> Array:
    array: Array = np.asarray(numpy_helper.to_array(tensor))
    if tensor.data_type == TensorProto.STRING:
        texts = [item.decode() if isinstance(item, bytes) else item for item in array.reshape(-1)]
        array = np.array([*texts, None], object)[:-1].reshape(array.shape)
    return array


def write_inputs(
    folder: str | os.PathLike[str], inputs: Mapping[str, Any], model: ModelProto
) -> None:
    """Write inputs in the layout of onnx's backend tests, so that `read_inputs` reads them.

    Args:
        folder: is made if it is not there.
        inputs: by name; one for each input of the model that has no default.
        model: the model.
    """
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    for index, (name, declared) in enumerate(input_types(model).items()):
        if name in inputs:
            message = _encode(name, inputs[name], declared)
            (path / f"input_{index}.pb").write_bytes(message.SerializeToString())


def _encode(
    name: str, value: Any, declared: TypeProto
) -> TensorProto | SequenceProto | OptionalProto:
    kind = declared.WhichOneof("value")
    if kind == "sequence_type":
        message: SequenceProto = numpy_helper.from_list(value, name)
        return message
    if kind == "optional_type":
        return _encode_optional(name, value, declared)
    array = np.asarray(value)
    if array.dtype == object:
        texts = [str(item).encode() for item in array.reshape(-1)]
        return TensorProto(
            name=name, data_type=TensorProto.STRING, dims=array.shape, string_data=texts
        )
    return numpy_helper.from_array(array, name)


def _encode_optional(name: str, value: Any, declared: TypeProto) -> OptionalProto:
    inner = declared.optional_type.elem_type
    message = OptionalProto(name=name)
    is_sequence = inner.WhichOneof("value") == "sequence_type"
    message.elem_type = OptionalProto.SEQUENCE if is_sequence else OptionalProto.TENSOR
    if value is not None:
        field = "sequence_value" if is_sequence else "tensor_value"
        getattr(message, field).CopyFrom(_encode(name, value, inner))
    return message
