"""Changes of nodes as data, one by one and equal ones grouped."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from onnxreduce_cli.errors import node_in_scope
from onnxreduce_cli.serializable import Serializable
from onnxreduce_cli.text import (
    LISTED,
    common_text,
    html_table,
    listed,
    printable,
    shortened,
    without_values,
)

#: Where there are more groups of changes, those that differ in values alone become one.
_KINDS = 12

#: If more operators than this take a node's place, only the first ones are named.
_NAMED = 4


class ContractionKey(NamedTuple):
    """What a contraction is called in each plan of a model.

    Attributes:
        scope: the label of the scope of its nodes.
        outputs: the outputs of the last one.
        op_type: the operator that they are contracted to.
    """

    scope: str
    outputs: tuple[str, ...]
    op_type: str


@dataclass(frozen=True, repr=False)
class Change(Serializable):
    """One node that the conversion rewrites.

    Attributes:
        node: the node's name, or a description by its first output where it has none.
        op_type: its operator.
        scope: where it is: empty for the main graph, else the path of subgraphs or the function.
        edits: how the node itself changed, such as ``axes [-1] → attribute``; may be empty where
            other operators take its place.
        result: the operators of the nodes that take its place.
        warnings: remarks that a user should read.
        nodes: how many nodes take its place, those in their subgraphs included.
        control_flow: the operators with subgraphs (If, Loop, Scan) that take its place.
        absorbed: the operators of the nodes before it that are removed with it, where one node
            takes the place of them all.
    """

    EXTRA_FIELDS: ClassVar = ("summary",)

    node: str
    op_type: str
    scope: str
    edits: tuple[str, ...]
    result: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    nodes: int = 1
    control_flow: tuple[str, ...] = ()
    absorbed: tuple[str, ...] = ()

    def followed_by(self, later: Change) -> Change:
        """Return this change combined with a later one of the node's replacement.

        Args:
            later: the change of the replacement, which has the node's name.
        """
        place = self.result.index(later.op_type) if later.op_type in self.result else 0
        return replace(
            self,
            edits=(*self.edits, *later.edits),
            result=(*self.result[:place], *later.result, *self.result[place + 1 :]),
            warnings=(*self.warnings, *later.warnings),
            nodes=self.nodes + later.nodes - 1,
            control_flow=tuple(sorted((*self.control_flow, *later.control_flow))),
            absorbed=(*self.absorbed, *later.absorbed),
        )

    @property
    def stays(self) -> bool:
        """True if the node is as it was, and there is only a warning."""
        return not self.edits and self.result == (self.op_type,)

    def __repr__(self) -> str:
        """Return the change in one line: the node and its replacement."""
        return printable(f"<Change {self.summary}: {shortened(self.node)}>")

    @property
    def summary(self) -> str:
        """The change in one line: ``ReduceMean: axes [-1] → attribute``."""
        return _summary(self.op_type, [self])

    def _repr_html_(self) -> str:
        return html_table(self.to_dict().items())


class ChangeGroup(NamedTuple):
    """Changes of several nodes of one operator that are equal, or differ only in values.

    Attributes:
        changes: the changes, at least one.
    """

    changes: tuple[Change, ...]

    @property
    def summary(self) -> str:
        """The changes in one line: ``29 LayerNormalization → ReduceMean, ... (+232 nodes)``."""
        return _summary(f"{len(self.changes):,} {self.changes[0].op_type}", self.changes)

    @property
    def names(self) -> str:
        """The names of the first nodes, and how many follow."""
        first = self.changes[:LISTED]
        return listed([node_in_scope(item.node, item.scope) for item in first], len(self.changes))


def grouped(changes: Sequence[Change]) -> list[ChangeGroup]:
    """Group equal changes, in the order of the first of each group.

    If that leaves many groups, changes that differ in values alone are grouped too.
    """
    found = _groups_by(changes, _exact_key)
    return found if len(found) <= _KINDS else _groups_by(changes, _key_without_values)


def _exact_key(change: Change) -> Hashable:
    return change.op_type, change.edits, change.result, change.absorbed


def _key_without_values(change: Change) -> Hashable:
    edits = tuple(map(without_values, change.edits))
    return change.op_type, edits, change.result, change.absorbed


def _groups_by(changes: Iterable[Change], key: Callable[[Change], Hashable]) -> list[ChangeGroup]:
    groups: dict[Hashable, list[Change]] = {}
    for change in changes:
        groups.setdefault(key(change), []).append(change)
    return [ChangeGroup(tuple(group)) for group in groups.values()]


def _summary(op_types: str, changes: Sequence[Change]) -> str:
    """Return changes in one line: the new operators, how many more nodes these are, the edits."""
    texts = dict.fromkeys([change.edits for change in changes])
    edits = "; ".join(
        dict.fromkeys(common_text(same_edit) for same_edit in zip(*texts, strict=True))
    )
    became = _result_text(changes[0])
    added = sum(change.nodes - 1 - len(change.absorbed) for change in changes)
    if added:
        became += f" ({added:+,} {'node' if abs(added) == 1 else 'nodes'})"
    if not became:
        return f"{op_types}: {edits or 'unchanged'}"
    return f"{op_types}{became}" + (f"; {edits}" if edits else "")


def _result_text(change: Change) -> str:
    """Return the operators that take a node's place; empty for one node of its own operator."""
    result, absorbed = change.result, change.absorbed
    if absorbed:
        return f" with {_operators_text(absorbed)} before it → {_operators_text(result)}"
    if result == (change.op_type,):
        return ""
    return f" → {_operators_text(result)}" if result else " → an initializer"


def _operators_text(op_types: tuple[str, ...]) -> str:
    return ", ".join(op_types if len(op_types) <= _NAMED else (*op_types[: _NAMED - 1], "..."))
