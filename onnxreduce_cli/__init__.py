"""Move ONNX models between opsets: nothing lost, nothing guessed, everything checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnxreduce_cli.api import convert, plan, run, verify
    from onnxreduce_cli.engine.description import Change, Inlined, Plan, Specialised
    from onnxreduce_cli.errors import (
        Blocker,
        CheckError,
        ConversionError,
        InvalidModelError,
        OnnxreduceError,
        UncheckedError,
        UsageError,
    )
    from onnxreduce_cli.verification.compare import Tolerance
    from onnxreduce_cli.verification.errors import CannotRunError, InputError, RunFailedError
    from onnxreduce_cli.verification.results import VerifyReport

__version__ = "0.1.0"

__all__ = [
    "Blocker",
    "CannotRunError",
    "Change",
    "CheckError",
    "ConversionError",
    "Inlined",
    "InputError",
    "InvalidModelError",
    "OnnxreduceError",
    "Plan",
    "RunFailedError",
    "Specialised",
    "Tolerance",
    "UncheckedError",
    "UsageError",
    "VerifyReport",
    "convert",
    "plan",
    "run",
    "verify",
]

_HOMES = {
    "Blocker": "errors",
    "CannotRunError": "verification.errors",
    "Change": "engine.description",
    "CheckError": "errors",
    "ConversionError": "errors",
    "Inlined": "engine.description",
    "InputError": "verification.errors",
    "InvalidModelError": "errors",
    "OnnxreduceError": "errors",
    "Plan": "engine.description",
    "RunFailedError": "verification.errors",
    "Specialised": "engine.description",
    "Tolerance": "verification.compare",
    "UncheckedError": "errors",
    "UsageError": "errors",
    "VerifyReport": "verification.results",
    "convert": "api",
    "plan": "api",
    "run": "api",
    "verify": "api",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that the command line starts at once."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
