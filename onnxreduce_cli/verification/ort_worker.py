"""The process that runs ONNX Runtime: it opens models and runs them for the one that started it.

ONNX Runtime ends the process on some inputs (the lowest integer divided by -1) and some models.
It imports NumPy and ONNX Runtime and nothing else, so that it starts while others plan.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from mmap import ACCESS_READ, mmap
from typing import Any

import numpy as np

from onnxreduce_cli.verification.messages import Bits
from onnxreduce_cli.verification.serving import Answer, Result, serve

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

#: What it says where it lacks a kernel, and where its Python interface lacks a dtype.
_LACKS = re.compile("NOT_IMPLEMENTED|No corresponding Numpy type")


class _Session:
    """A session of ONNX Runtime on the CPU, its optimisations off."""

    def __init__(self, runtime: Any, step: Mapping[str, Any], content: Any) -> None:
        """Open it: content, a file by its path, or both, of which the content follows."""
        options = runtime.SessionOptions()
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        options.intra_op_num_threads = step["threads"]
        if step["base_dir"]:
            options.add_session_config_entry(
                "session.model_external_initializers_file_folder_path", step["base_dir"]
            )
        self._session = runtime.InferenceSession(
            _given(step["path"], content),
            options,
            providers=["CPUExecutionProvider"],
            enable_fallback=False,
        )
        self._value = runtime.OrtValue
        self._types = {value.name: value.type for value in self._session.get_inputs()}
        for value in self._session.get_overridable_initializers():
            self._types[value.name] = value.type
        outputs = [value.type for value in self._session.get_outputs()]
        self._by_bits = any(kind in _BY_BITS for kind in (*self._types.values(), *outputs))

    def run(self, feeds: Mapping[str, Any], names: list[str]) -> Sequence[Any]:
        """Run it once; inputs that it does not have are left out."""
        given = {name: value for name, value in feeds.items() if name in self._types}
        if not self._by_bits and not any(isinstance(value, Bits) for value in given.values()):
            found: Sequence[Any] = self._session.run(names, given)
            return found
        values = {name: self._ort_value(name, value) for name, value in given.items()}
        return [_taken(value) for value in self._session.run_with_ort_values(names, values)]

    def _ort_value(self, name: str, value: Any) -> Any:
        if isinstance(value, Bits):
            dtype, number = _BY_BITS.get(self._types[name], ("", 0))
            if dtype != value.dtype:
                raise NotImplementedError(f"its Python interface has no tensors of {value.dtype}")
            return self._value.ortvalue_from_numpy_with_onnx_type(value.array, number)
        if not isinstance(value, np.ndarray):
            raise NotImplementedError("sequences beside dtypes that NumPy lacks")
        return self._value.ortvalue_from_numpy(value)


def _given(path: str | None, content: Any) -> str | bytes:
    """What ONNX Runtime opens: a file by its path, so that external data is mapped, or bytes."""
    if path is None:
        return bytes(content.data)
    if content is None:
        return path
    with open(path, "rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as mapped:
        return b"".join((mapped, content.data))


def _taken(value: Any) -> Any:
    """The content of an OrtValue."""
    if value.data_type() not in _BY_BITS:
        return value.numpy()
    name = _BY_BITS[value.data_type()][0]
    bits = np.dtype(np.uint16 if name == "bfloat16" else np.uint8)
    shape = value.shape()
    size = bits.itemsize * int(np.prod(shape))
    memory = (ctypes.c_char * size).from_address(value.data_ptr()) if size else b""
    return Bits(name, np.frombuffer(bytes(memory), bits).reshape(shape))


def prepare() -> Answer:
    """Import ONNX Runtime; return what opens models and runs them."""
    import onnxruntime

    sessions: dict[int, _Session] = {}

    def answer(step: Mapping[str, Any], values: Sequence[Any]) -> list[Result]:
        for old in step["forget"]:
            sessions.pop(old, None)
        if step["do"] == "open":
            try:
                sessions[step["key"]] = _Session(onnxruntime, step, values[0])
            except Exception as error:  # ONNX Runtime's exceptions have no base of their own.
                return [_problem(error, opens=True)]
            return [[]]
        feeds = dict(zip(step["feeds"], values, strict=True))
        results: list[Result] = []
        for key in step["keys"]:
            try:
                results.append(list(sessions[key].run(feeds, step["names"])))
            except Exception as error:  # As above.
                results.append(_problem(error))
        return results

    return answer


def _problem(error: Exception, *, opens: bool = False) -> tuple[str, str]:
    """Return what is answered for an exception of ONNX Runtime's."""
    if isinstance(error, MemoryError) or _MEMORY.search(str(error)):
        return "memory", _message(error)
    lacks = isinstance(error, NotImplementedError) or _LACKS.search(str(error)) is not None
    return "cannot" if opens or lacks else "failed", _message(error)


def _message(error: Exception) -> str:
    """Return the first line of ONNX Runtime's message, without its prefix."""
    text = str(error).strip().splitlines()
    first = text[0] if text else type(error).__name__
    return re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", first)


def main() -> None:
    """Answer requests until there are none: open a model, or run one that is open."""
    # The bits of dtypes that NumPy lacks are all that ONNX Runtime takes of them.
    serve(prepare, restore=lambda bits: bits)
