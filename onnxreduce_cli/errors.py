"""The exceptions that users of the library meet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnxreduce_cli.verification import VerifyReport


@dataclass(frozen=True)
class Blocker:
    """One node that cannot reach the target opset.

    Attributes:
        node: the node's name, or a description by its first output where it has none.
        op_type: its operator.
        opset: the opset that its scope is read by; 0 where the scope imports none.
        scope: where it is: empty for the main graph, else the path of subgraphs or the function.
        reason: why it cannot be converted.
        advice: what the user can do; may be empty.
    """

    node: str
    op_type: str
    opset: int
    scope: str
    reason: str
    advice: str = ""

    def __str__(self) -> str:
        """One line: node, operator, opset, place, reason, advice."""
        place = f" in {self.scope}" if self.scope else ""
        advice = f"; {self.advice}" if self.advice else ""
        what = f"{self.op_type} node" if self.op_type else "node"
        return f"{what} {self.node} (opset {self.opset}){place}: {self.reason}{advice}"


class UsageError(ValueError):
    """What was asked for makes no sense, or is refused."""


class InvalidModelError(ValueError):
    """The input is no readable ONNX model, or one that contradicts itself."""


class ConversionError(RuntimeError):
    """The model cannot be converted.

    Attributes:
        blockers: every node that cannot reach the target, each with its reason.
    """

    def __init__(self, message: str, blockers: tuple[Blocker, ...] = ()) -> None:
        """Join `message` and one line for each blocker."""
        super().__init__("\n".join([message, *(str(blocker) for blocker in blockers)]))
        self.blockers = blockers


class CheckError(ConversionError):
    """What would replace some nodes does not compute the same: a bug in onnxreduce.

    Attributes:
        folder: what reproduces it: a folder for each distinct site, with both tiny models.
    """

    def __init__(self, message: str, folder: str) -> None:
        """Keep the message and the folder."""
        super().__init__(message)
        self.folder = folder


class VerificationError(ConversionError):
    """The converted model is not the same function as the original, or nothing could tell.

    Attributes:
        report: how the two models compare.
    """

    def __init__(self, report: VerifyReport) -> None:
        """Keep the report."""
        super().__init__("the converted model could not be verified")
        self.report = report


@contextmanager
def about(name: str) -> Iterator[None]:
    """Let what is wrong with a model be told with its file's name."""
    try:
        yield
    except (InvalidModelError, ConversionError) as error:
        if type(error) not in (InvalidModelError, ConversionError) or name in str(error):
            raise
        raise type(error)(f"{name}: {error}") from error
