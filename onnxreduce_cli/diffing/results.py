"""The differences of two models as data."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

from onnxreduce_cli.engine.changes import Change
from onnxreduce_cli.serializable import Serializable
from onnxreduce_cli.text import count, html_table


@dataclass(frozen=True)
class Difference(Serializable):
    """A difference between two models.

    Attributes:
        name: what differs: the domain of an import, the name of a value, a field of the model.
        before: what the first model has; empty where it has none.
        after: what the second model has; empty where it has none.
        scope: where it is: empty for the model and its main graph, else the path of subgraphs or
            the function.
    """

    name: str
    before: str
    after: str
    scope: str = ""


@dataclass(frozen=True)
class DiffNode(Serializable):
    """A node that only one of the models has.

    Attributes:
        node: its name, or a description by its first output where it has none.
        op_type: its operator.
        scope: where it is: empty for the main graph, else the path of subgraphs or the function.
    """

    node: str
    op_type: str
    scope: str = ""


@dataclass(frozen=True)
class Diff(Serializable):
    """The differences of two models as graphs; none where one is a copy of the other.

    Attributes:
        a: the first model's name.
        b: the second's.
        imports: domains that are imported at other versions, or by one model alone.
        model: the IR version and other fields of the model and of its graphs.
        inputs: inputs with another type, or of one model alone.
        outputs: outputs with another type, or of one model alone.
        functions: model-local functions that only one has, or with other inputs or outputs.
        changes: nodes of the first that were changed or replaced, as a `Plan` has them.
        added: nodes that only the second has, and that replace none of the first.
        removed: nodes that only the first has, and that nothing replaces.
        constants: initializers and Constant nodes with another content.
        renamed: nodes, and initializers of equal content, with another name.
        values: value infos of other values with another type, or of one model alone.
        metadata: fields of nodes that do not change what these compute, each with the number of
            nodes that differ in it.
    """

    EXTRA_FIELDS: ClassVar = ("differs",)

    a: str
    b: str
    imports: tuple[Difference, ...] = ()
    model: tuple[Difference, ...] = ()
    inputs: tuple[Difference, ...] = ()
    outputs: tuple[Difference, ...] = ()
    functions: tuple[Difference, ...] = ()
    changes: tuple[Change, ...] = ()
    added: tuple[DiffNode, ...] = ()
    removed: tuple[DiffNode, ...] = ()
    constants: tuple[Difference, ...] = ()
    renamed: tuple[Difference, ...] = ()
    values: tuple[Difference, ...] = ()
    metadata: tuple[tuple[str, int], ...] = ()

    @property
    def differs(self) -> bool:
        """True if anything differs."""
        return any(getattr(self, item.name) for item in fields(self)[2:])

    def __repr__(self) -> str:
        """Return the names of the models and the number of differences."""
        number = sum(len(getattr(self, item.name)) for item in fields(self)[2:])
        return f"<Diff {self.a} and {self.b}: {count(number, 'difference')}>"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, ...]] = [("what", "name", "before", "after")]
        for field in fields(self)[2:]:
            rows += [(field.name, *_cells(item)) for item in getattr(self, field.name)]
        return html_table(rows, repr(self)[1:-1])


def _cells(item: Difference | Change | DiffNode | tuple[str, int]) -> tuple[str, str, str]:
    """Return a difference as a row: its name, and what either model has."""
    if isinstance(item, Difference):
        return item.name, item.before, item.after
    if isinstance(item, Change):
        return item.node, item.op_type, item.summary
    if isinstance(item, DiffNode):
        return item.node, item.op_type, ""
    return item[0], count(item[1], "node"), ""
