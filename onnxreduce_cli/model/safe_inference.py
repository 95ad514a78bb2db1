"""onnx's shape inference, such that no model makes it take all memory, or end this process.

What a model's lists and ranks may come to is looked at first; a model that may be too much is
inferred in a process apart. No other may take much more memory than its size lets expect.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache
from typing import ClassVar

import onnx
from onnx import ModelProto

from onnxreduce_cli.model.inference_bounds import may_end
from onnxreduce_cli.model.memory import data_limited

#: The memory that inference may take, in bytes, and what it may take for each byte of the model.
_MEMORY, _MEMORY_OF_BYTE = 450_000_000, 64

#: The seconds that inference apart may take.
_SECONDS = 10

_START = (
    "import sys; sys.path[:] = {!r}; from onnxreduce_cli.model.safe_inference import main; main()"
)


class _TooMuch:
    """What took more memory than it may.

    Attributes:
        models: those that did in a process apart, by their hash: each opset that a model is planned
            for asks again.
        here: whether one did in this process, whose C library keeps what it had in pieces: to
            take as much again is slow, and what is kept comes on top of it.
    """

    models: ClassVar[set[int]] = set()
    here: ClassVar[bool] = False


def infer_shapes(model: ModelProto, *, data_prop: bool) -> ModelProto | None:
    """Return the model with the types that onnx infers; None if it cannot.

    Args:
        model: the model; its large tensors are not needed.
        data_prop: whether lists of sizes are computed too.
    """
    content = model.SerializeToString()
    if _TooMuch.here or may_end(model, content):
        return _apart(content, data_prop)
    try:
        with _limited(len(content)):
            return onnx.shape_inference.infer_shapes(content, data_prop=data_prop)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, ValueError):
        return None
    except MemoryError:
        _TooMuch.here = True
        return None


def type_error(model: ModelProto) -> str:
    """Return what onnx's full check says against the types of a model; empty for nothing.

    That is so too for a model whose inference may take too much memory.

    Args:
        model: the model; its large tensors are not needed.
    """
    content = model.SerializeToString()
    if _TooMuch.here or may_end(model, content):
        return ""
    try:
        with _limited(len(content)):
            onnx.shape_inference.infer_shapes(content, check_type=True, strict_mode=True)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, ValueError) as error:
        return " ".join(str(error).split()) or type(error).__name__
    except MemoryError:
        _TooMuch.here = True
    return ""


def _limited(size: int) -> AbstractContextManager[None]:
    """Limit what inference takes here for a model of so many bytes.

    The limit is the process's, so that it is left alone where what others allocate might fail.
    """
    if threading.active_count() > 1:
        return nullcontext()
    _raise_once()
    return data_limited(_MEMORY + _MEMORY_OF_BYTE * size)


@cache
def _raise_once() -> None:
    """Let the C++ of onnx raise: the first time takes memory, for want of which it would abort."""
    with suppress(ValueError):
        onnx.shape_inference.infer_shapes(b"\x01")


def _apart(content: bytes, data_prop: bool) -> ModelProto | None:
    key = hash((content, data_prop))
    if key in _TooMuch.models:
        return None
    command = [sys.executable, "-c", _START.format(sys.path), str(int(data_prop))]
    try:
        done = subprocess.run(
            command, input=content, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, ValueError):
        return None
    except subprocess.TimeoutExpired:
        _TooMuch.models.add(key)
        return None
    if done.returncode:
        _TooMuch.models.add(key)
        return None
    return ModelProto.FromString(done.stdout)


def main() -> None:
    """Infer the model on standard input, in a process that may take so much memory and no more."""
    content = sys.stdin.buffer.read()
    _raise_once()
    with data_limited(_MEMORY + _MEMORY_OF_BYTE * len(content)):
        inferred = onnx.shape_inference.infer_shapes(content, data_prop=sys.argv[1] == "1")
    sys.stdout.buffer.write(inferred.SerializeToString())
