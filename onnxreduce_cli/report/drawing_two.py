"""What pages show of two models that were compared: as graphs, or by running them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import ModelProto, NodeProto

from onnxreduce_cli.diffing.results import Diff
from onnxreduce_cli.model.graph.scope import Scope, scopes
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.report.drawing import (
    DRAWN,
    NODES,
    Drawing,
    Picture,
    Places,
    array_text,
    drawn_node,
    rows,
    sides,
)
from onnxreduce_cli.verification.whole.results import VerifyReport

#: How a page marks the nodes that make the first value that differs.
_FIRST = "makes what differs first"


class _Side:
    """One of two models, looked up to be drawn."""

    def __init__(self, model: ModelProto) -> None:
        self.scopes = scopes(model)
        self._facts = Facts(model, self.scopes)
        self._places = Places()
        self._own = {
            (scope.label, scope.describe(node)): (scope, node)
            for scope in self.scopes
            for node in scope.nodes
        }

    def find(self, scope: str, node: str) -> tuple[Scope, NodeProto] | None:
        """A node by its scope and name, with its scope; None if there is none."""
        return self._own.get((scope, node))

    def told(self, names: Sequence[str]) -> list[tuple[Scope, NodeProto]]:
        """The nodes that a `Divergence` names, those of one scope."""
        wanted = {name.rpartition(" (")[0] for name in names}
        for scope in self.scopes:
            found = [(scope, node) for node in scope.nodes if scope.describe(node) in wanted]
            if found:
                return found
        return []

    def around(self, scope: Scope, nodes: Sequence[NodeProto]) -> list[NodeProto]:
        """The nodes near some."""
        return self._places.around(scope, nodes)

    def constants(self, scope: Scope, nodes: Sequence[NodeProto]) -> dict[str, str]:
        """The constants that some nodes read, by name, as text."""
        found = {
            name: self._facts.constant(scope, name) for node in nodes for name in node.input if name
        }
        return {name: array_text(array) for name, array in found.items() if array is not None}


def verify_picture(report: VerifyReport, a: ModelProto, b: ModelProto | None = None) -> Picture:
    """The first of the models that were compared, and where they differ first.

    Args:
        report: what was found.
        a: the first model.
        b: the second one; None if executors were compared on the first.
    """
    side, divergence = _Side(a), report.divergence
    if divergence is None:
        return Picture(tuple(rows(side.scopes, {})))
    first = side.told(divergence.first_nodes)
    marks = {(scope.label, scope.describe(node)): _FIRST for scope, node in first}
    drawings = []
    if b is not None:
        other = _Side(b)
        before, constants = _around(side, first)
        after, more = _around(other, other.told(divergence.second_nodes))
        drawn = [
            tuple(drawn_node(node, "old" if made else "around") for node, made in found)
            for found in (before, after)
        ]
        titles = divergence.first[0], divergence.second[0]
        drawings = [
            Drawing(divergence.value, "", "", drawn[0], drawn[1], constants | more, 0, titles)
        ]
    return Picture(tuple(rows(side.scopes, marks)), tuple(drawings))


def _around(
    side: _Side, found: Sequence[tuple[Scope, NodeProto]]
) -> tuple[list[tuple[NodeProto, bool]], dict[str, str]]:
    """Some nodes of one scope and those near them, and the constants that all of them read.

    Returns:
        each node, and whether it is one of the given ones; then the constants as text.
    """
    if not found:
        return [], {}
    scope, made = found[0][0], [node for _, node in found[:NODES]]
    beside = side.around(scope, made)
    nodes = [(node, False) for node in beside] + [(node, True) for node in made]
    return nodes, side.constants(scope, [*beside, *made])


def diff_picture(diff: Diff, a: ModelProto, b: ModelProto) -> Picture:
    """Two models with what differs: the nodes of the first and the new ones of the second.

    Of each kind of change, and of each operator that only one has nodes of, one is drawn.
    """
    first, second = _Side(a), _Side(b)
    marks = {(item.scope, item.node): item.summary for item in diff.changes}
    marks |= {(item.scope, item.node): "removed" for item in diff.removed}
    added = {(item.scope, item.node): "added" for item in diff.added}
    new = [row for row in rows(second.scopes, added) if row[-1]]
    drawings = [
        *_changed(diff, first, second),
        *_in_one(diff, first, second),
    ]
    return Picture((*rows(first.scopes, marks), *new), tuple(drawings[:DRAWN]))


def _changed(diff: Diff, first: _Side, second: _Side) -> Iterator[Drawing]:
    """The nodes that others take the place of."""
    others, seen = {scope.label: scope for scope in second.scopes}, set()
    for change in diff.changes:
        key = change.op_type, change.edits, change.result
        found = first.find(change.scope, change.node)
        if found is None or key in seen or change.scope not in others:
            continue
        seen.add(key)
        scope, node = found
        new = _between(node, scope, others[change.scope])
        beside = first.around(scope, [node])
        yield Drawing(
            change.node,
            change.op_type,
            change.scope,
            *sides(beside, [node], new),
            first.constants(scope, [*beside, node]),
            max(0, len(new) - NODES),
        )


def _in_one(diff: Diff, first: _Side, second: _Side) -> Iterator[Drawing]:
    """The nodes that only one model has, and that take no node's place."""
    seen = set()
    for side, nodes in ((first, diff.removed), (second, diff.added)):
        for item in nodes:
            found = side.find(item.scope, item.node)
            if found is None or (side, item.op_type) in seen:
                continue
            seen.add((side, item.op_type))
            scope, node = found
            beside = side.around(scope, [node])
            old, new = ([node], []) if side is first else ([], [node])
            yield Drawing(
                item.node,
                item.op_type,
                item.scope,
                *sides(beside, old, new),
                side.constants(scope, [*beside, node]),
            )


def _between(node: NodeProto, scope: Scope, other: Scope) -> list[NodeProto]:
    """What gives, in another scope, the values that a node gives, from values that both have."""
    known = {name for item in scope.nodes if item is not node for name in item.output}
    found: dict[int, NodeProto] = {}
    waiting = list(node.output)
    while waiting:
        name = waiting.pop()
        maker = other.producers.get(name)
        if maker is not None and name not in known and id(maker) not in found:
            found[id(maker)] = maker
            waiting += maker.input
    return [item for item in other.nodes if id(item) in found]
