"""The worker's side of verification: opening models in executors, and running them.

ONNX Runtime ends the process on some inputs (the lowest integer divided by -1) and some models. At
first this imports NumPy and nothing that takes longer, so that the worker starts while others plan.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Mapping, Sequence
from mmap import ACCESS_READ, mmap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onnxreduce_cli.runtime_module import RuntimeMissingError, import_onnxruntime
from onnxreduce_cli.verification.errors import (
    CannotRunError,
    LimitError,
    MissingError,
    RunFailedError,
)

if TYPE_CHECKING:
    from onnxreduce_cli.verification.running.runtime import Runner

#: Dtypes that ONNX Runtime's Python interface has no arrays for: by its names, ml_dtypes' name and
#: the number of `TensorProto.DataType`. They go by their bits.
_BY_BITS = {
    "tensor(bfloat16)": ("bfloat16", 16),
    "tensor(float8e4m3fn)": ("float8_e4m3fn", 17),
    "tensor(float8e4m3fnuz)": ("float8_e4m3fnuz", 18),
    "tensor(float8e5m2)": ("float8_e5m2", 19),
    "tensor(float8e5m2fnuz)": ("float8_e5m2fnuz", 20),
}

_MEMORY = re.compile("bad_alloc|bad allocation|failed to allocate|out of memory", re.IGNORECASE)

#: The characters of a message.
_LONGEST = 1000

#: ONNX Runtime's messages where it lacks a kernel, or its Python interface a dtype.
_LACKS = re.compile("NOT_IMPLEMENTED|No corresponding Numpy type")


class WorkerModel(NamedTuple):
    """A model as it is sent to the worker: a file, its content, or both, joined in that order.

    Attributes:
        path: the file.
        base_dir: the folder that external data is relative to.
        mapped: how many bytes of external data there are.
        content: bytes.
    """

    path: str | None
    base_dir: str
    mapped: int
    content: bytes


#: The models that are open, by the caller's key.
_sessions: dict[int, Runner] = {}


def open_model(key: int, executor: str, model: WorkerModel, threads: int) -> None:
    """Open a model.

    Args:
        key: what later calls name it by.
        executor: one of `runtime.EXECUTORS`.
        form: the model.
        threads: how many threads ONNX Runtime may use; 0 for its own choice.

    Raises:
        CannotRunError: the executor cannot run it.
        MemoryError: it takes more than there is.
    """
    make = _OnnxruntimeSession if executor == "onnxruntime" else _NumpySession
    _sessions[key] = make(model, threads)


def run_models(
    keys: Sequence[int], sets: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> list[list[dict[str, Any] | Exception]]:
    """Run models on sets of inputs.

    Args:
        keys: the models, which are open.
        sets: inputs by name; a model ignores inputs that it does not have.
        names: the values wanted.

    Returns:
        for each set and each model its outputs, or the error in their place: a
        `CannotRunError`, a `RunFailedError`, a MemoryError, or a RuntimeError for a fault.
    """
    return [[_run(key, feeds, names) for key in keys] for feeds in sets]


def _run(key: int, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any] | Exception:
    try:
        return _sessions[key].run(feeds, names)
    except (CannotRunError, RunFailedError, MemoryError, RuntimeError) as error:
        return error


def subgraphs_not_run(key: int) -> list[tuple[str, str]]:
    """Return the subgraphs that a model's runs have not needed, as node's name and attribute.

    Only the NumPy executor knows; of a model that is not open there in this process there are none.
    """
    session = _sessions.get(key)
    return session.runner.subgraphs_not_run() if isinstance(session, _NumpySession) else []


def full_check(model: WorkerModel) -> str:
    """Return what onnx's full check finds wrong with a model; empty if that is nothing."""
    import onnx

    folder = os.getcwd()
    os.chdir(model.base_dir or folder)  # Of a model in memory, data is relative to this folder.
    try:
        onnx.checker.check_model(model.path or model.content, full_check=True)
    except (
        onnx.checker.ValidationError,
        onnx.shape_inference.InferenceError,
        RuntimeError,
        ValueError,
    ) as error:
        return (" ".join(str(error).split()) or type(error).__name__)[:_LONGEST]
    finally:
        os.chdir(folder)
    return ""


def runtime_version() -> str:
    """Return the version of ONNX Runtime.

    Raises:
        MissingError: it cannot be imported.
    """
    return str(_onnxruntime().__version__)


def _onnxruntime() -> Any:
    try:
        return import_onnxruntime()
    except RuntimeMissingError as error:
        raise MissingError(f"it {error}") from error


def close_models(keys: Sequence[int]) -> None:
    """Close models, if they are open."""
    for key in keys:
        _sessions.pop(key, None)


class _NumpySession:
    """A model in the NumPy executor."""

    def __init__(self, model: WorkerModel, _: int) -> None:
        from onnx import ModelProto

        from onnxreduce_cli.verification.running.runtime import NumpyRunner

        try:
            path = None if model.content else model.path
            given = ModelProto.FromString(model.content) if path is None else path
            self.runner = NumpyRunner(given, model.base_dir)
        except (CannotRunError, MemoryError):
            raise
        except Exception as error:  # It is raised where the call came from.
            raise _fault(error) from error

    def run(self, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        try:
            found = self.runner.run(feeds, names)
        except LimitError as error:
            raise MemoryError(str(error)) from error
        except (CannotRunError, RunFailedError, MemoryError):
            raise
        except Exception as error:  # As above.
            raise _fault(error) from error
        return {name: found[name] for name in names}


def _fault(error: Exception) -> RuntimeError:
    return RuntimeError(f"the NumPy executor: {type(error).__name__}: {error}")


class _OnnxruntimeSession:
    """A session of ONNX Runtime on the CPU, its optimisations off."""

    def __init__(self, model: WorkerModel, threads: int) -> None:
        """Open the model."""
        onnxruntime = _onnxruntime()
        try:
            options = onnxruntime.SessionOptions()
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            options.log_severity_level = 4
            options.intra_op_num_threads = threads
            if model.base_dir:
                options.add_session_config_entry(
                    "session.model_external_initializers_file_folder_path", model.base_dir
                )
            self._session = onnxruntime.InferenceSession(
                _model_argument(model),
                options,
                providers=["CPUExecutionProvider"],
                enable_fallback=False,
            )
        except Exception as error:  # ONNX Runtime's exceptions have no base of their own.
            raise _own_error(error, opens=True) from error
        self._value = onnxruntime.OrtValue
        self._types = {value.name: value.type for value in self._session.get_inputs()}
        for value in self._session.get_overridable_initializers():
            self._types[value.name] = value.type
        outputs = [value.type for value in self._session.get_outputs()]
        self._by_bits = any(kind in _BY_BITS for kind in (*self._types.values(), *outputs))

    def run(self, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        given = {name: value for name, value in feeds.items() if name in self._types}
        try:
            return dict(zip(names, self._run(given, list(names)), strict=True))
        except Exception as error:  # As above.
            raise _own_error(error) from error

    def _run(self, given: Mapping[str, Any], names: list[str]) -> Sequence[Any]:
        if not self._by_bits and not any(_is_foreign(value) for value in given.values()):
            found: Sequence[Any] = self._session.run(names, given)
            return found
        values = {name: self._ort_value(name, value) for name, value in given.items()}
        return [_as_array(value) for value in self._session.run_with_ort_values(names, values)]

    def _ort_value(self, name: str, value: Any) -> Any:
        if _is_foreign(value):
            dtype, number = _BY_BITS.get(self._types[name], ("", 0))
            if dtype != value.dtype.name:
                what = f"its Python interface has no tensors of {value.dtype.name}"
                raise NotImplementedError(what)
            bits = value.view(f"u{value.dtype.itemsize}")
            return self._value.ortvalue_from_numpy_with_onnx_type(bits, number)
        if not isinstance(value, np.ndarray):
            raise NotImplementedError("sequences beside dtypes that NumPy lacks")
        return self._value.ortvalue_from_numpy(value)


def _is_foreign(value: Any) -> bool:
    """Return whether a value is a tensor of a dtype that NumPy lacks and another package adds."""
    return isinstance(value, np.ndarray) and value.dtype.isbuiltin == 2


def _model_argument(model: WorkerModel) -> str | bytes:
    """Return a path, so that ONNX Runtime maps the weights, or bytes."""
    if model.path is None:
        return model.content
    if not model.content:
        return model.path
    with open(model.path, "rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as mapped:
        return b"".join((mapped, model.content))


def _as_array(value: Any) -> Any:
    """Return the content of an OrtValue as an array."""
    if value.data_type() not in _BY_BITS:
        return value.numpy()
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, _BY_BITS[value.data_type()][0]))
    shape = value.shape()
    size = dtype.itemsize * int(np.prod(shape))
    memory = (ctypes.c_char * size).from_address(value.data_ptr()) if size else b""
    return np.frombuffer(bytes(memory), dtype).reshape(shape)


def _own_error(error: Exception, *, opens: bool = False) -> Exception:
    """Return the error of this package that an error of ONNX Runtime becomes."""
    text = _message(error)
    if isinstance(error, MemoryError) or _MEMORY.search(str(error)):
        return MemoryError(text)
    lacks = isinstance(error, NotImplementedError) or _LACKS.search(str(error)) is not None
    return CannotRunError(text) if opens or lacks else RunFailedError(text)


def _message(error: Exception) -> str:
    """Return the first line of ONNX Runtime's message, without its prefix."""
    text = str(error).strip().splitlines()
    first = text[0] if text else type(error).__name__
    return re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", first)[:_LONGEST]
