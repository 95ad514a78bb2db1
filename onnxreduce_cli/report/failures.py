"""The messages and exit codes of failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnxreduce_cli.errors import OnnxreduceError
from onnxreduce_cli.text import joined


@dataclass(frozen=True, slots=True)
class Failure:
    """The message and the exit code of a failure.

    Attributes:
        code: the exit code.
        state: the result for the model, in a few words.
        text: what is wrong, and what to do; one line or several.
    """

    code: int
    state: str
    text: str


def failure(error: Exception) -> Failure:
    """Return the message and exit code for an exception that ended a command."""
    if isinstance(error, OnnxreduceError):
        return Failure(error.exit_code, error.state, _text(error))
    if isinstance(error, OSError):
        # A model that cannot be read is an InvalidModelError: here a file cannot be written.
        name = f"{_name(error.filename)}: " if error.filename is not None else ""
        return Failure(2, "not written", joined([f"Error: {name}{error.strerror or error}"]))
    if isinstance(error, MemoryError):
        return Failure(1, "out of memory", "Error: there is not enough memory for this model")
    lines = [
        f"Error: onnxreduce failed on this input: {type(error).__name__}: {error}",
        "This is a bug in onnxreduce; please report it with the model. Nothing was written.",
    ]
    return Failure(1, "failed", joined(lines))


def reasons(lines: Sequence[str], *, blocked: bool) -> Sequence[str]:
    """Return the lines of a message that give reasons, without the first if it announces them.

    Args:
        lines: the lines.
        blocked: whether the others name nodes in the way.
    """
    announces = len(lines) > 1 and (blocked or lines[0].endswith(":"))
    return lines[1:] if announces else lines


def _text(error: OnnxreduceError) -> str:
    from onnxreduce_cli.verification.whole.results import VerificationError

    if not isinstance(error, VerificationError):
        return f"{error.prefix}{error}"
    from onnxreduce_cli.report.verify import verify_text

    return f"{verify_text(error.report)}\nnothing was written"


def _name(filename: str | bytes | int) -> str:
    return filename.decode(errors="replace") if isinstance(filename, bytes) else str(filename)
