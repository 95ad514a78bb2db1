"""The exceptions that users of the library meet, and the blockers of a conversion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from onnxreduce_cli.serializable import Serializable
from onnxreduce_cli.text import (
    common_text,
    count,
    html_table,
    joined,
    listed,
    printable,
    shortened,
    without_values,
)

#: Longer reasons and paths of scopes are cut: in messages, and where Python shows objects.
_LONGEST = 1000
_SHORT = 60

#: How many different reasons for which nodes block are shown at most.
_REASONS = 10


@dataclass(frozen=True, repr=False)
class Blocker(Serializable):
    """A node that cannot reach the target opset.

    Attributes:
        node: the node's name, or a description by its first output where it has none.
        op_type: its operator.
        opset: the opset that its scope imports; 0 where it imports none.
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
        """Return one line: operator, node, opset, scope, reason, advice."""
        scope, reason = shortened(self.scope, _LONGEST), shortened(self.reason, _LONGEST)
        place = f" in {scope}" if scope else ""
        advice = f"; {self.advice}" if self.advice else ""
        what = f"{shortened(self.op_type)} node" if self.op_type else "node"
        node = shortened(self.node)
        return printable(f"{what} {node} (opset {self.opset}){place}: {reason}{advice}")

    def __repr__(self) -> str:
        """Return the node, its operator and opset, and the beginning of the reason."""
        node, reason = shortened(self.node, _SHORT), shortened(self.reason, _SHORT)
        return printable(f"<Blocker {self.op_type}-{self.opset} {node!r}: {reason}>")

    def _repr_html_(self) -> str:
        return html_table(self.to_dict().items())


def blocker_lines(blockers: Sequence[Blocker]) -> list[str]:
    """Describe blockers, with one line for all that have the same reason.

    Reasons are the same if they differ only in names and numbers that they quote. After the first
    ten the others are counted.
    """
    groups: dict[tuple[str, str], list[Blocker]] = {}
    for blocker in blockers:
        key = without_values(blocker.reason), without_values(blocker.advice)
        groups.setdefault(key, []).append(blocker)
    first, rest = [*groups.values()][:_REASONS], [*groups.values()][_REASONS:]
    lines = [str(group[0]) if len(group) == 1 else _group_line(group) for group in first]
    if rest:
        nodes = count(sum(map(len, rest)), "node")
        lines.append(f"and {count(len(rest), 'other reason')}, of {nodes}; --verbose lists all")
    return lines


def _group_line(group: Sequence[Blocker]) -> str:
    kinds = Counter(shortened(blocker.op_type) for blocker in group)
    operators = [f"{number:,} {op_type}" for op_type, number in kinds.most_common()]
    opsets = ", ".join(map(str, sorted({blocker.opset for blocker in group})))
    names = listed([node_in_scope(blocker.node, blocker.scope) for blocker in group])
    reason = shortened(common_text([blocker.reason for blocker in group]), _LONGEST)
    advice = common_text([blocker.advice for blocker in group], lists=True)
    end = f"; {advice}" if advice else ""
    what = f"{operators[0]} nodes (opset {opsets})"
    if len(operators) > 1:
        what = f"{len(group):,} nodes ({listed(operators)}; opset {opsets})"
    return printable(f"{what} {names}: {reason}{end}")


def node_in_scope(node: str, scope: str) -> str:
    """Return a node's name, followed by its scope unless that is the main graph."""
    return f"{node} in {shortened(scope)}" if scope else node


class OnnxreduceError(Exception):
    """The base class of the exceptions of this library.

    Attributes:
        exit_code: the exit code of a command that it ends.
        state: the result for the model, in a few words.
        prefix: the text before its message where the command line shows it.
        so_far: a `Converted` that says how far the conversion of a file got; None before its
            start.
    """

    exit_code: int = 1
    state: str = "failed"
    so_far: Any = None
    prefix: ClassVar[str] = "Error: "

    def __init__(self, *lines: str) -> None:
        """Join the lines of the message, with control characters escaped."""
        super().__init__(joined(lines))


class OnnxreduceWarning(UserWarning):
    """The result of a function is right as far as is known, but something is to be looked at."""


class UsageError(OnnxreduceError, ValueError):
    """The options make no sense, or what they ask for is refused."""

    exit_code = 2
    state = "refused"


class InvalidModelError(OnnxreduceError, ValueError):
    """The input is not a readable ONNX model, or an invalid one."""

    exit_code = 2
    state = "unreadable"


class MissingModelError(InvalidModelError, FileNotFoundError):
    """There is no such file."""


class ConversionError(OnnxreduceError, RuntimeError):
    """The model cannot be converted.

    Attributes:
        message: what is wrong, without the blockers.
        blockers: every node that cannot reach the target, each with its reason.
    """

    state = "cannot be converted"
    prefix = ""

    def __init__(self, message: str, blockers: tuple[Blocker, ...] = ()) -> None:
        """Join `message` and one line for each reason of the blockers."""
        super().__init__(message, *blocker_lines(blockers))
        self.message = message
        self.blockers = blockers


class CheckError(ConversionError):
    """The replacement of some nodes computes other values than these: a bug in onnxreduce.

    Attributes:
        folder: the folder with both tiny models of each distinct site, to reproduce it.
        report: the `SiteReport`, which includes the sites that agree.
    """

    state = "failed its check"

    def __init__(self, lines: Sequence[str], folder: str, report: Any = None) -> None:
        """Join the lines of the message, and keep the folder and the report."""
        OnnxreduceError.__init__(self, *lines)
        self.message, self.blockers = lines[0], ()
        self.folder = folder
        self.report = report


class UncheckedError(ConversionError):
    """Some replacements could not be checked, and the conversion was asked to be strict.

    Attributes:
        report: the `SiteReport`.
    """

    state = "not checked"
    report: Any = None

    def __init__(self, *lines: str) -> None:
        """Join the lines of the message."""
        OnnxreduceError.__init__(self, *lines)
        self.message, self.blockers = lines[0], ()


class OutOfMemoryError(OnnxreduceError, MemoryError):
    """A model takes more memory than it is allowed."""

    state = "out of memory"


@contextmanager
def errors_about(name: str) -> Iterator[None]:
    """Put a file's name before the messages of errors about the model in it."""
    try:
        yield
    except (InvalidModelError, ConversionError) as error:
        if printable(name) in str(error):
            raise
        if type(error) is InvalidModelError:
            raise InvalidModelError(f"{name}: {error}") from error
        if type(error) is ConversionError:
            named = ConversionError(f"{name}: {error.message}", error.blockers)
            named.so_far = error.so_far
            raise named from error
        raise
