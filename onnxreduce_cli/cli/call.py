"""How and when the program was called, and with which versions."""

from __future__ import annotations

import platform
import time
from dataclasses import dataclass
from importlib import import_module

import click

from onnxreduce_cli import __version__
from onnxreduce_cli.runtime_module import RuntimeMissingError, import_onnxruntime

#: The key by which the program's context notes how it was called.
_KEY = f"{__name__}.call"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the program.

    Attributes:
        arguments: the command line, after the program's name.
        started: when, in seconds since the epoch.
        begun: the same, by the clock of `time.perf_counter`.
    """

    arguments: tuple[str, ...]
    started: float
    begun: float


def note_call(context: click.Context, arguments: list[str]) -> None:
    """Take note of a call that begins."""
    context.meta[_KEY] = Call(tuple(arguments), time.time(), time.perf_counter())


def current_call() -> Call:
    """Return the call that the current context is of."""
    found: Call = click.get_current_context().meta[_KEY]
    return found


def versions(*, with_runtime: bool = True) -> dict[str, str]:
    """Return the versions that a report or a bug report needs, by names, and the platform.

    Args:
        with_runtime: whether that of ONNX Runtime is one of them, which takes its import.
    """
    found = {"onnxreduce": __version__, "onnx": import_module("onnx").__version__}
    if with_runtime:
        try:
            found["onnxruntime"] = import_onnxruntime().__version__
        except RuntimeMissingError as error:
            found["onnxruntime"] = str(error)
    found["numpy"] = import_module("numpy").__version__
    return {**found, "python": platform.python_version(), "platform": platform.platform()}
