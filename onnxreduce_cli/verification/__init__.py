"""Verifying models: are two of them the same function, do executors agree on one."""

from __future__ import annotations

from onnxreduce_cli.verification.compare import Errors, Tolerance
from onnxreduce_cli.verification.data import read_inputs, write_inputs
from onnxreduce_cli.verification.equivalence import run, verify
from onnxreduce_cli.verification.errors import CannotRunError, InputError, RunFailedError
from onnxreduce_cli.verification.results import VerifyReport

__all__ = [
    "CannotRunError",
    "Errors",
    "InputError",
    "RunFailedError",
    "Tolerance",
    "VerifyReport",
    "read_inputs",
    "run",
    "verify",
    "write_inputs",
]
