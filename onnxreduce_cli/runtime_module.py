"""The module of ONNX Runtime, whichever package it is from.

onnxruntime, onnxruntime-gpu, onnxruntime-directml and others share one module: what is imported
counts, and not what is installed by which name.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


class RuntimeMissingError(Exception):
    """ONNX Runtime cannot be imported; the message says why, and begins after its name."""


def import_onnxruntime() -> ModuleType:
    """Import ONNX Runtime.

    Raises:
        RuntimeMissingError: it cannot be imported.
    """
    try:
        module = import_module("onnxruntime")
    except ModuleNotFoundError as error:
        if error.name != "onnxruntime":
            raise RuntimeMissingError(f"cannot be imported: {error}") from error
        raise RuntimeMissingError("is not installed: pip install onnxruntime") from error
    except ImportError as error:
        raise RuntimeMissingError(f"cannot be imported: {error}") from error
    # Where two packages held it and one is removed, a folder is left, which Python imports.
    if not hasattr(module, "InferenceSession"):
        mended = "pip install --force-reinstall onnxruntime"
        raise RuntimeMissingError(f"is installed in part only: {mended}")
    return module
