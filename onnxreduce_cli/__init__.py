"""Move ONNX models between opsets: nothing lost, nothing guessed, everything checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnxreduce_cli.api.by_name import FileOptions, PreparationOptions
    from onnxreduce_cli.api.file_conversion import Converted
    from onnxreduce_cli.api.library import (
        convert,
        convert_file,
        convert_version,
        diff,
        plan,
        run,
        verify,
    )
    from onnxreduce_cli.diffing.results import Diff, Difference, DiffNode
    from onnxreduce_cli.engine.changes import Change
    from onnxreduce_cli.engine.description import Inlined, OperatorCoverage, Plan, Specialised
    from onnxreduce_cli.errors import (
        Blocker,
        CheckError,
        ConversionError,
        InvalidModelError,
        MissingModelError,
        OnnxreduceError,
        OnnxreduceWarning,
        UncheckedError,
        UsageError,
    )
    from onnxreduce_cli.report.data import InspectedModel
    from onnxreduce_cli.report.lookups import inspect, ops
    from onnxreduce_cli.report.reference import OperatorList, TargetList
    from onnxreduce_cli.verification.compare.values import Tolerance
    from onnxreduce_cli.verification.errors import (
        CannotRunError,
        InputError,
        RunFailedError,
    )
    from onnxreduce_cli.verification.whole.results import VerificationError, VerifyReport

__version__ = "0.1.0"

__all__ = [
    "Blocker",
    "CannotRunError",
    "Change",
    "CheckError",
    "ConversionError",
    "Converted",
    "Diff",
    "DiffNode",
    "Difference",
    "FileOptions",
    "Inlined",
    "InputError",
    "InspectedModel",
    "InvalidModelError",
    "MissingModelError",
    "OnnxreduceError",
    "OnnxreduceWarning",
    "OperatorCoverage",
    "OperatorList",
    "Plan",
    "PreparationOptions",
    "RunFailedError",
    "Specialised",
    "TargetList",
    "Tolerance",
    "UncheckedError",
    "UsageError",
    "VerificationError",
    "VerifyReport",
    "convert",
    "convert_file",
    "convert_version",
    "diff",
    "inspect",
    "ops",
    "plan",
    "run",
    "verify",
]

_HOMES = {
    "Blocker": "errors",
    "CannotRunError": "verification.errors",
    "Change": "engine.changes",
    "CheckError": "errors",
    "ConversionError": "errors",
    "Converted": "api.file_conversion",
    "Diff": "diffing.results",
    "DiffNode": "diffing.results",
    "Difference": "diffing.results",
    "FileOptions": "api.by_name",
    "Inlined": "engine.description",
    "InputError": "verification.errors",
    "InspectedModel": "report.data",
    "InvalidModelError": "errors",
    "MissingModelError": "errors",
    "OnnxreduceError": "errors",
    "OnnxreduceWarning": "errors",
    "OperatorCoverage": "engine.description",
    "OperatorList": "report.reference",
    "Plan": "engine.description",
    "PreparationOptions": "api.by_name",
    "RunFailedError": "verification.errors",
    "Specialised": "engine.description",
    "TargetList": "report.reference",
    "Tolerance": "verification.compare.values",
    "UncheckedError": "errors",
    "UsageError": "errors",
    "VerificationError": "verification.whole.results",
    "VerifyReport": "verification.whole.results",
    "convert": "api.library",
    "convert_file": "api.library",
    "convert_version": "api.library",
    "diff": "api.library",
    "inspect": "report.lookups",
    "ops": "report.lookups",
    "plan": "api.library",
    "run": "api.library",
    "verify": "api.library",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that the command line starts at once."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__})
