"""The report of a command, as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onnxreduce_cli.model.file.digest import FileDigest
from onnxreduce_cli.serializable import as_plain_data

#: The version of the form of reports. It grows where a key goes or changes its meaning, not where
#: one is added.
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Invocation:
    """How and when a command was called, and with which versions.

    Attributes:
        arguments: the command line, after the program's name.
        options: the values of the command's arguments and options by their names, with defaults and
            the settings of the project filled in; null where a default depends on the model.
        started: when it began, in UTC, as ISO 8601 writes it.
        seconds: how long it took, without the start of Python.
        versions: the versions of onnxreduce, Python, NumPy and onnx, and where models are run that
            of ONNX Runtime; what replaces the version where that cannot be imported.
        files: what the command read and wrote, with SHA-256; of convert each model has its own.
    """

    arguments: tuple[str, ...]
    options: dict[str, Any]
    started: str
    seconds: float
    versions: dict[str, str]
    files: tuple[FileDigest, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The results of a command, of which JSON, JUnit, annotations and pages are renderings.

    Attributes:
        command: the command.
        exit_code: its exit code.
        content: its results, a dataclass; None where it failed before there were any.
        invocation: how and when it was called.
        problem: why it failed as a whole; None where it did not.
    """

    command: str
    exit_code: int
    content: Any
    invocation: Invocation
    problem: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as data that JSON can hold: see ``report/schemas``."""
        import onnx

        from onnxreduce_cli import __version__

        return {
            "format": FORMAT,
            "command": self.command,
            "exit_code": self.exit_code,
            "onnxreduce": __version__,
            "onnx": onnx.__version__,
            "call": as_plain_data(self.invocation),
            "problem": as_plain_data(self.problem),
            **({} if self.content is None else as_plain_data(self.content)),
        }


def as_json(found: Mapping[str, Any]) -> str:
    """Return a report, which is plain data, as JSON text."""
    return json.dumps(found, indent=2, allow_nan=False)
