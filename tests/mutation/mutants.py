"""The small changes that Cosmic Ray's operators make: a comparison, a number, a condition."""

from __future__ import annotations
import __future__

import ast
import difflib
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import CodeType

import parso
from cosmic_ray import mutating, plugins
from cosmic_ray.ast import ast_nodes, get_ast

ROOT = Path(__file__).parents[2]

#: Annotations and decorators are no behaviour, docstrings are left alone anyway. Of names, small
#: integers, and whatever else there is one object of, "==" is the same as "is".
LEFT_OUT = re.compile(
    "core/(RemoveDecorator|ReplaceBinaryOperator_BitOr_.*"
    "|ReplaceComparisonOperator_(Eq_Is|Is_Eq|NotEq_IsNot|IsNot_NotEq))"
)


@dataclass(frozen=True)
class Part:
    """A statement of a file, at its top level, with the comments before it.

    Attributes:
        path: the file, relative to the root.
        before: the text of the file before it; `after` what follows.
        text: its own.
    """

    path: str
    before: str
    text: str
    after: str

    @property
    def first(self) -> int:
        """The number of its first line."""
        return self.before.count("\n") + 1

    def compiled(self, text: str) -> CodeType:
        """Other text in its place, compiled as a part of the file is."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # Such as of "is" beside a number.
            return compile(
                "\n" * (self.first - 1) + text,
                str(ROOT / self.path),
                "exec",
                flags=__future__.annotations.compiler_flag,
                dont_inherit=True,
            )

    @cached_property
    def code(self) -> CodeType:
        """It as it is, compiled."""
        return self.compiled(self.text)

    @cached_property
    def statements(self) -> list[range]:
        """The lines of each statement in it; of those with a body, without the body."""
        found = []
        for node in ast.walk(ast.parse("\n" * (self.first - 1) + self.text)):
            if isinstance(node, ast.stmt | ast.excepthandler):
                body = getattr(node, "body", None)
                end = body[0].lineno if body else (node.end_lineno or node.lineno) + 1
                found.append(range(node.lineno, max(end, node.lineno + 1)))
        return found


@dataclass(frozen=True)
class Mutant:
    """A change to a file.

    Attributes:
        part: what is changed of it.
        operator: what Cosmic Ray calls the kind of change.
        occurrence: which of those in the part.
        line: the number of the line in the file.
    """

    part: Part
    operator: str
    occurrence: int
    line: int

    @property
    def name(self) -> str:
        """What tells it from others."""
        return f"{self.part.path}:{self.line} {self.operator} {self.occurrence}"

    @cached_property
    def text(self) -> str:
        """The part with the change."""
        kind = plugins.get_operator(self.operator)
        changed: str | None = mutating.mutate_code(self.part.text, kind(), self.occurrence)
        assert changed is not None
        return changed

    @property
    def change(self) -> list[str]:
        """The lines that it takes away, which begin with "-", and those that it adds, with "+"."""
        before, after = self.part.text.splitlines(), self.text.splitlines()
        lines = [*difflib.unified_diff(before, after, n=0, lineterm="")][2:]
        return [line for line in lines if not line.startswith("@@")]

    @property
    def is_python(self) -> bool:
        """False for a few changes of operators: of ``~a & ~b`` to ``~a not ~b``, for one."""
        try:
            self.part.compiled(self.text)
        except SyntaxError:
            return False
        return True

    @property
    def lines(self) -> range:
        """Those of the statement that is changed: which of them runs may depend on the change."""
        around = [lines for lines in self.part.statements if self.line in lines]
        return min(around, key=len, default=range(self.line, self.line + 1))


def parts(path: str) -> Iterator[Part]:
    """The statements of a file."""
    code = (ROOT / path).read_text(encoding="utf-8")
    start = 0
    for node in parso.parse(code).children:
        end = start + len(node.get_code())
        yield Part(path, code[:start], code[start:end], code[end:])
        start = end


def mutants(path: str) -> Iterator[Mutant]:
    """All changes to a file."""
    names = [name for name in plugins.operator_names() if not LEFT_OUT.fullmatch(name)]
    kinds = {name: plugins.get_operator(name) for name in names}
    operators = {name: kind() for name, kind in kinds.items() if not kind.arguments()}
    for part in parts(path):
        nodes = list(ast_nodes(get_ast(part.text)))
        for name, operator in operators.items():
            spots = (spot for node in nodes for spot in operator.mutation_positions(node))
            for occurrence, (start, _) in enumerate(spots):
                yield Mutant(part, name, occurrence, part.first + start[0] - 1)
