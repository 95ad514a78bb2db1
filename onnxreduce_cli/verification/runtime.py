"""The two executors behind one interface: ONNX Runtime and the NumPy executor."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from onnx import ModelProto, TensorProto, ValueInfoProto, helper

from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.model.files import Document
from onnxreduce_cli.model.values import numpy_dtype
from onnxreduce_cli.model.weights import mappable
from onnxreduce_cli.verification.errors import CannotRunError, RefusedError, RunFailedError
from onnxreduce_cli.verification.source import Source

#: The executors by name, in the order in which they run.
EXECUTORS = ("onnxruntime", "numpy")

#: Element types that ONNX Runtime's Python interface has no arrays for.
_RAW = re.compile(r"tensor\((bfloat16|float8\w+)\)")


class Runner(Protocol):
    """A model made ready to run."""

    def run(self, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """Run it once.

        Args:
            feeds: arrays by input name; lists for sequences, None for an empty optional.
            names: the values wanted.

        Raises:
            RunFailedError: it failed on these inputs.
            CannotRunError: the executor turned out not to support something.
        """


def open_runner(
    source: Source, executor: str, *, extra: Sequence[str] = (), threads: int = 0
) -> Runner:
    """Make a model ready to run.

    Args:
        source: the model.
        executor: one of `EXECUTORS`.
        extra: names of values of the main graph that a run can return beside its outputs.
        threads: how many threads ONNX Runtime may use; 0 for its own choice.

    Raises:
        CannotRunError: the executor cannot run the model.
    """
    if executor == "onnxruntime":
        return OrtRunner(source, extra, threads)
    if executor == "numpy":
        return NumpyRunner(source)
    raise UsageError(f"there is no executor {executor!r}; there are {', '.join(EXECUTORS)}")


class OrtRunner:
    """A session of ONNX Runtime on the CPU, its optimisations off."""

    def __init__(self, source: Source, extra: Sequence[str] = (), threads: int = 0) -> None:
        """Open the session: by path where there is one, so that external data is mapped.

        With `extra` outputs the session gets the file's bytes and a suffix that adds them; the
        weights are not parsed for that, and external data is found through the model's folder.

        Raises:
            CannotRunError: ONNX Runtime cannot load the model.
        """
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        options.intra_op_num_threads = threads
        if source.base_dir:
            options.add_session_config_entry(
                "session.model_external_initializers_file_folder_path", source.base_dir
            )
        try:
            model = source.path if source.path and not extra else _content(source, extra)
            self._session = onnxruntime.InferenceSession(
                model, options, providers=["CPUExecutionProvider"], enable_fallback=False
            )
        except Exception as error:  # ONNX Runtime's exceptions have no base of their own.
            raise CannotRunError(_message(error)) from error
        self._inputs = {value.name: value.type for value in self._session.get_inputs()}
        for value in self._session.get_overridable_initializers():
            self._inputs[value.name] = value.type
        outputs = {value.name: value.type for value in self._session.get_outputs()}
        self._raw = any(_RAW.search(kind) for kind in (*self._inputs.values(), *outputs.values()))

    def run(self, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """Run the session once; see `Runner.run`."""
        given = {name: value for name, value in feeds.items() if name in self._inputs}
        names = list(names)
        try:
            found = self._run_raw(given, names) if self._raw else self._session.run(names, given)
        except Exception as error:  # ONNX Runtime's exceptions have no base of their own.
            if "NOT_IMPLEMENTED" in str(error):
                raise CannotRunError(_message(error)) from error
            raise RunFailedError(_message(error)) from error
        return dict(zip(names, found, strict=True))

    def _run_raw(self, feeds: Mapping[str, Any], names: list[str]) -> list[Any]:
        """Run on values of dtypes that NumPy lacks, which go by their bits."""
        from onnxruntime import OrtValue

        values = {}
        for name, value in feeds.items():
            if not isinstance(value, np.ndarray):
                raise CannotRunError("sequences beside dtypes that NumPy lacks")
            if _RAW.fullmatch(self._inputs[name]):
                bits = np.ascontiguousarray(value).view(f"u{value.dtype.itemsize}")
                elem_type = helper.np_dtype_to_tensor_dtype(value.dtype)
                values[name] = OrtValue.ortvalue_from_numpy_with_onnx_type(
                    bits.reshape(value.shape), elem_type
                )
            else:
                values[name] = OrtValue.ortvalue_from_numpy(value)
        found = self._session.run_with_ort_values(names, values)
        return [_array(value) for value in found]


def _array(value: Any) -> Any:
    """An OrtValue as an array, of the dtypes of ml_dtypes too."""
    kind = _RAW.fullmatch(value.data_type())
    if kind is None:
        return value.numpy()
    dtype = numpy_dtype(TensorProto.DataType.Value(kind[1].upper()))
    shape = value.shape()
    size = dtype.itemsize * int(np.prod(shape))
    memory = (ctypes.c_char * size).from_address(value.data_ptr()) if size else b""
    return np.frombuffer(bytes(memory), dtype).reshape(shape)


def _content(source: Source, extra: Sequence[str]) -> bytes:
    """The model's bytes with more outputs: protobuf joins messages that follow each other."""
    suffix = ModelProto()
    present = source.outputs
    suffix.graph.output.extend(ValueInfoProto(name=name) for name in extra if name not in present)
    return source.content() + (suffix.SerializeToString() if suffix.graph.output else b"")


def _message(error: Exception) -> str:
    """Return the first line of ONNX Runtime's message, without its prefix."""
    text = str(error).strip().splitlines()
    first = text[0] if text else type(error).__name__
    return re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", first)


class NumpyRunner:
    """A model prepared for the NumPy executor."""

    def __init__(self, source: Source) -> None:
        """Prepare the model.

        Raises:
            CannotRunError: the executor cannot run some node.
            RefusedError: it finds the model invalid, or cannot read it.
        """
        from onnxreduce_cli import executor

        self._unsupported = executor.UnsupportedError
        self._failed = executor.ExecutorError
        given: ModelProto | str | os.PathLike[str] | None = source.path or source.model
        assert given is not None
        try:
            if source.base_dir and isinstance(given, ModelProto):
                copy = ModelProto()
                copy.CopyFrom(given)
                given = mappable(Document(copy, base_dir=source.base_dir))
            self._executor = executor.Executor(given)
        except executor.UnsupportedError as error:
            raise CannotRunError(str(error)) from error
        except (executor.ExecutorError, OSError, ValueError) as error:
            raise RefusedError(str(error)) from error

    def run(self, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """Run the model once; see `Runner.run`."""
        known = set(self._executor.input_names)
        given = {name: value for name, value in feeds.items() if name in known}
        try:
            return self._executor.run(given, outputs=names)
        except self._unsupported as error:
            raise CannotRunError(str(error)) from error
        except self._failed as error:
            raise RunFailedError(str(error)) from error
