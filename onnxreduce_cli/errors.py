"""The exceptions that users of the library meet, and what stands in the way of a conversion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from onnxreduce_cli.text import joined, printable, shortened

#: Longer reasons and paths of scopes are cut in messages.
_LONGEST = 1000


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
        scope, reason = shortened(self.scope, _LONGEST), shortened(self.reason, _LONGEST)
        place = f" in {scope}" if scope else ""
        advice = f"; {self.advice}" if self.advice else ""
        what = f"{shortened(self.op_type)} node" if self.op_type else "node"
        node = shortened(self.node)
        return printable(f"{what} {node} (opset {self.opset}){place}: {reason}{advice}")


class OnnxreduceError(Exception):
    """What this library raises where it cannot do what it was asked for.

    Attributes:
        exit_code: how a command ends that meets it.
        state: what it says of a model, in a few words.
        prefix: what its message begins with where people read it.
    """

    exit_code: int = 1
    state: str = "failed"
    prefix: ClassVar[str] = "Error: "

    def __init__(self, *lines: str) -> None:
        """Join the lines of the message, in which nothing is left that a terminal obeys."""
        super().__init__(joined(lines))


class UsageError(OnnxreduceError, ValueError):
    """What was asked for makes no sense, or is refused."""

    exit_code = 2
    state = "refused"


class InvalidModelError(OnnxreduceError, ValueError):
    """The input is no readable ONNX model, or one that contradicts itself."""

    exit_code = 2
    state = "unreadable"


class ConversionError(OnnxreduceError, RuntimeError):
    """The model cannot be converted.

    Attributes:
        message: what is wrong, without the blockers.
        blockers: every node that cannot reach the target, each with its reason.
    """

    state = "cannot be converted"
    prefix = ""

    def __init__(self, message: str, blockers: tuple[Blocker, ...] = ()) -> None:
        """Join `message` and one line for each blocker."""
        super().__init__(message, *(str(blocker) for blocker in blockers))
        self.message = message
        self.blockers = blockers


class CheckError(ConversionError):
    """What would replace some nodes does not compute the same: a bug in onnxreduce.

    Attributes:
        folder: what reproduces it: a folder for each distinct site, with both tiny models.
    """

    state = "failed its check"

    def __init__(self, lines: Sequence[str], folder: str) -> None:
        """Join the lines of the message, and keep the folder."""
        OnnxreduceError.__init__(self, *lines)
        self.message, self.blockers = lines[0], ()
        self.folder = folder


class UncheckedError(ConversionError):
    """Some replacements could not be checked, and the conversion was to be strict."""

    state = "not checked"


@contextmanager
def about(name: str) -> Iterator[None]:
    """Let what is wrong with a model be told with its file's name."""
    try:
        yield
    except (InvalidModelError, ConversionError) as error:
        if printable(name) in str(error):
            raise
        if type(error) is InvalidModelError:
            raise InvalidModelError(f"{name}: {error}") from error
        if type(error) is ConversionError:
            raise ConversionError(f"{name}: {error.message}", error.blockers) from error
        raise
