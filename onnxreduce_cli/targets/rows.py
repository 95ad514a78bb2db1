"""Runtimes as data: rows of versions, facts with their sources, and quirks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from onnxreduce_cli.targets.versions import Version, VersionCondition

SourceKind = Literal["measured", "document", "error text"]
Effect = Literal["wrong", "refused"]


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a fact.

    Attributes:
        kind: whether it was measured, read in a document, or reported as an error text.
        where: what was measured, the document, or where the error was reported.
        date: when, as ``2026-11-22``.
    """

    kind: SourceKind
    where: str
    date: str

    def __str__(self) -> str:
        """``measured, 2026-11-22: lab/measured.json``."""
        return f"{self.kind}, {self.date}: {self.where}"


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing known of some versions of a runtime.

    Attributes:
        value: a number, a text, or a list; None where it is not known.
        source: its source; None where it is not known.
    """

    value: int | str | tuple[str, ...] | None
    source: Source | None

    def __str__(self) -> str:
        """Return the value as a table shows it."""
        if self.value is None:
            return "not known"
        return ", ".join(self.value) if isinstance(self.value, tuple) else str(self.value)


#: The names of the facts of a row, each with its heading in tables.
FACTS = {
    "oldest": "oldest opset",
    "newest": "newest opset",
    "best": "best opset",
    "ir": "newest IR version",
    "ml": "newest ai.onnx.ml",
    "functions": "functions",
    "external_data": "external data",
    "dtypes": "dtypes",
}


@dataclass(frozen=True, slots=True)
class Quirk:
    """Something that a runtime gets wrong, or refuses, though it takes the opset.

    Attributes:
        versions: the conditions on the version of the runtime that has it.
        operators: the operators that it concerns.
        opsets: the first and the last opset of a model that it concerns; None for any later.
        form: the form of the node, a name of `forms.FORMS`.
        effect: whether the runtime computes something else, or refuses the model.
        what: what the runtime does, as users read it.
        source: the source of this.
    """

    versions: tuple[VersionCondition, ...]
    operators: frozenset[str]
    opsets: tuple[int, int | None]
    form: str
    effect: Effect
    what: str
    source: Source

    def at(self, opset: int) -> bool:
        """Return whether it concerns models of an opset."""
        return is_within(opset, self.opsets)

    @property
    def where(self) -> str:
        """Return the opsets as text; empty for all."""
        first, last = self.opsets
        if last is None:
            return f"from opset {first} on" if first > 1 else ""
        if first == last:
            return f"at opset {first}"
        return f"at opsets {first} to {last}" if first > 1 else f"up to opset {last}"


@dataclass(frozen=True, slots=True)
class VersionFacts:
    """The facts of one series of versions, and of those after it up to the next row.

    Attributes:
        version: the series, such as 1.14 for 1.14.0 and 1.14.1.
        facts: one for each name of `FACTS`.
        quirks: the quirks of these versions.
        note: a remark; may be empty.
    """

    version: Version
    facts: dict[str, Fact]
    quirks: Sequence[Quirk]
    note: str = ""

    def number(self, name: str) -> int | None:
        """Return a fact that is a number; None where it is not known."""
        value = self.facts[name].value
        return value if isinstance(value, int) else None


@cache
def opset_range(text: str) -> tuple[int, int | None]:
    """Read ``13-17``, ``18-``, ``-12`` or ``16``: the first opset and the last, None for any.

    Raises:
        ValueError: it is no such range.
    """
    first, dash, last = text.partition("-")
    if not dash:
        return (int(first), int(first)) if first else (1, None)
    return int(first or 1), int(last) if last else None


def is_within(opset: int, opsets: tuple[int, int | None]) -> bool:
    """Return whether an opset is in a range."""
    first, last = opsets
    return first <= opset and (last is None or opset <= last)


@dataclass(frozen=True, slots=True)
class Runtime:
    """A runtime.

    Attributes:
        name: its name in a requirement.
        title: its full name.
        rows: the oldest first.
        aliases: other names that people give it.
    """

    name: str
    title: str
    rows: Sequence[VersionFacts]
    aliases: Sequence[str] = ()

    def span(self, versions: Collection[Version]) -> str:
        """Return versions as text, such as ``2022.1, 2025.4 to 2026.4``; empty for all."""
        if len(versions) == len(self.rows):
            return ""
        runs: list[list[Version]] = [[]]
        for row in self.rows:
            if row.version in versions:
                runs[-1].append(row.version)
            elif runs[-1]:
                runs.append([])
        ends = [(run[0], run[-1]) for run in runs if run]
        return ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in ends)
