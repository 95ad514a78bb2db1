"""onnx's shape inference, guarded against models on which it takes all memory or ends the process.

Such models, see `inference_bounds`, are inferred in the worker, within limits of time and memory,
and all others in this process.
"""

from __future__ import annotations

import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto

from onnxreduce_cli.model.types.inference_bounds import may_take_much

#: The bytes of memory that inference in the worker may take, and more for each byte of the model.
_MEMORY, _MEMORY_OF_BYTE = 400_000_000, 64

#: The seconds that it may take.
_SECONDS = 10

#: How often a call is sent: an earlier call may have ended the worker.
_ATTEMPTS = 2

#: Hashes of the models that ended the worker: a model is inferred again for each target opset.
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
    except MemoryError:  # It requested more than there is, at once.
        return None
    except DecodeError:  # The shapes that it found nest deeper than protobuf reads.
        return None


def type_error(model: ModelProto) -> str:
    """Return the error of onnx's strict type check of a model; empty if there is none.

    A model whose inference may take much memory is not checked.

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
    """Return what `_infer` returns in the worker; None if it ends the worker or takes too much."""
    # Few models need it, and it takes as long to import as to plan a small one.
    from onnxreduce_cli.worker.process import EndedError, UnansweredError, current_worker

    key = hash((content, data_prop))
    for _ in range(_ATTEMPTS if key not in _ending else 0):
        try:
            worker = current_worker()
            memory = worker.memory + _MEMORY + _MEMORY_OF_BYTE * len(content)
            inferred: ModelProto | None = worker.call(
                _infer, content, data_prop, seconds=_SECONDS, memory=memory
            )
        except UnansweredError:
            continue  # An earlier call ended the worker.
        except EndedError:
            _ending.add(key)
        except OSError:
            pass  # The system starts no process.
        else:
            return inferred
        break
    return None
