"""Comparing models: whether two compute the same, and whether executors agree on one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnxreduce_cli.verification.compare.values import Errors, Tolerance
    from onnxreduce_cli.verification.errors import (
        CannotRunError,
        InputError,
        RunFailedError,
    )
    from onnxreduce_cli.verification.inputs.files import read_inputs, write_inputs
    from onnxreduce_cli.verification.running.limits import Limits, limited
    from onnxreduce_cli.verification.whole.equivalence import run, verify
    from onnxreduce_cli.verification.whole.results import VerificationError, VerifyReport

__all__ = [
    "CannotRunError",
    "Errors",
    "InputError",
    "Limits",
    "RunFailedError",
    "Tolerance",
    "VerificationError",
    "VerifyReport",
    "limited",
    "read_inputs",
    "run",
    "verify",
    "write_inputs",
]

_HOMES = {
    "CannotRunError": "errors",
    "Errors": "compare.values",
    "InputError": "errors",
    "Limits": "running.limits",
    "RunFailedError": "errors",
    "Tolerance": "compare.values",
    "VerificationError": "whole.results",
    "VerifyReport": "whole.results",
    "limited": "running.limits",
    "read_inputs": "inputs.files",
    "run": "whole.equivalence",
    "verify": "whole.equivalence",
    "write_inputs": "inputs.files",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: the executors take long, and errors need none."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
