"""onnx's shape inference, such that no model makes it take all memory, or end this process.

What a model's lists and ranks may come to is looked at first; a model for which that may be much is
inferred in the worker, within limits of time and memory, and any other here.
"""

from __future__ import annotations

import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto

from onnxreduce_cli.model.inference_bounds import may_take_much
from onnxreduce_cli.worker.process import EndedError, UnansweredError, current_worker

#: The bytes of memory that inference in the worker may take, and more for each byte of the model.
_MEMORY, _MEMORY_OF_BYTE = 450_000_000, 64

#: The seconds that it may take.
_SECONDS = 10

#: How often a call is sent: what came before it may have ended the worker.
_ATTEMPTS = 2

#: The models that ended the worker, by hash: each opset that a model is planned for asks again.
_ending: set[int] = set()


def infer_shapes(model: ModelProto, *, data_prop: bool) -> ModelProto | None:
    """Return the model with the types that onnx infers; None if it cannot.

    Args:
        model: the model; its large tensors are not needed.
        data_prop: whether lists of sizes are computed too.
    """
    content = model.SerializeToString()
    if may_take_much(model):
        return _infer_in_worker(content, data_prop)
    return _infer(content, data_prop)


def _infer(content: bytes, data_prop: bool) -> ModelProto | None:
    try:
        return onnx.shape_inference.infer_shapes(content, data_prop=data_prop)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, ValueError):
        return None
    except MemoryError:  # It asked for more than there is, at once.
        return None
    except DecodeError:  # The shapes that it found nest deeper than protobuf reads.
        return None


def type_error(model: ModelProto) -> str:
    """Return what onnx's full check says against the types of a model; empty for nothing.

    That is so too for a model whose inference may take much memory.

    Args:
        model: the model; its large tensors are not needed.
    """
    if may_take_much(model):
        return ""
    try:
        onnx.shape_inference.infer_shapes(
            model.SerializeToString(), check_type=True, strict_mode=True
        )
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, ValueError) as error:
        return " ".join(str(error).split()) or type(error).__name__
    except (MemoryError, DecodeError):
        return ""
    return ""


def _infer_in_worker(content: bytes, data_prop: bool) -> ModelProto | None:
    """Return what `_infer` does in the worker; None if it ends the worker, or takes too much."""
    key = hash((content, data_prop))
    for _ in range(_ATTEMPTS if key not in _ending else 0):
        try:
            worker = current_worker()
            memory = worker.memory + _MEMORY + _MEMORY_OF_BYTE * len(content)
            inferred: ModelProto | None = worker.call(
                _infer, content, data_prop, seconds=_SECONDS, memory=memory
            )
        except UnansweredError:
            continue  # What came before it ended the worker.
        except EndedError:
            _ending.add(key)
        except OSError:
            pass  # The system starts no process.
        else:
            return inferred
        break
    return None
