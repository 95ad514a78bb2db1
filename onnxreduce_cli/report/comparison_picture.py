"""Pictures of two models that were compared, as graphs or by running them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import ModelProto, NodeProto

from onnxreduce_cli.diffing.results import Diff
from onnxreduce_cli.model.graph.scope import Scope, scopes
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.report.drawing import (
    DRAWN,
    NODES,
    ChangeDrawing,
    ModelPicture,
    ValueUses,
    array_text,
    drawn_node,
    rows,
    sides,
)
from onnxreduce_cli.verification.whole.results import VerifyReport

#: The mark of the nodes that compute the first value that differs.
_FIRST = "makes what differs first"


class _PicturedModel:
    """One of two models, with what is looked up to draw it."""

    def __init__(self, model: ModelProto) -> None:
        self.scopes = scopes(model)
        self._facts = Facts(model, self.scopes)
        self._places = ValueUses()
        self._own = {
            (scope.label, scope.describe(node)): (scope, node)
            for scope in self.scopes
            for node in scope.nodes
        }

    def find(self, scope: str, node: str) -> tuple[Scope, NodeProto] | None:
        """Return a node and its scope by the names of both; None if there is none."""
        return self._own.get((scope, node))

    def named_nodes(self, names: Sequence[str]) -> list[tuple[Scope, NodeProto]]:
        """Return the nodes that a `Divergence` names, each with its scope, which is one."""
        wanted = {name.rpartition(" (")[0] for name in names}
        for scope in self.scopes:
            found = [(scope, node) for node in scope.nodes if scope.describe(node) in wanted]
            if found:
                return found
        return []

    def around(self, scope: Scope, nodes: Sequence[NodeProto]) -> list[NodeProto]:
        """Return the nodes near the given ones."""
        return self._places.around(scope, nodes)

    def constants(self, scope: Scope, nodes: Sequence[NodeProto]) -> dict[str, str]:
        """Return the constants that nodes read, by name, as text."""
        found = {
            name: self._facts.constant(scope, name) for node in nodes for name in node.input if name
        }
        return {name: array_text(array) for name, array in found.items() if array is not None}


def verify_picture(
    report: VerifyReport, a: ModelProto, b: ModelProto | None = None
) -> ModelPicture:
    """Return the picture of the first model, with the first value that differs.

    Args:
        report: the results of the comparison.
        a: the first model.
        b: the second one; None if executors were compared on the first.
    """
    side, divergence = _PicturedModel(a), report.divergence
    if divergence is None:
        return ModelPicture(tuple(rows(side.scopes, {})))
    first = side.named_nodes(divergence.first_nodes)
    marks = {(scope.label, scope.describe(node)): _FIRST for scope, node in first}
    drawings = []
    if b is not None:
        other = _PicturedModel(b)
        before, constants = _around(side, first)
        after, more = _around(other, other.named_nodes(divergence.second_nodes))
        drawn = [
            tuple(drawn_node(node, "old" if made else "around") for node, made in found)
            for found in (before, after)
        ]
        titles = divergence.first[0], divergence.second[0]
        drawings = [
            ChangeDrawing(divergence.value, "", "", drawn[0], drawn[1], constants | more, 0, titles)
        ]
    return ModelPicture(tuple(rows(side.scopes, marks)), tuple(drawings))


def _around(
    side: _PicturedModel, found: Sequence[tuple[Scope, NodeProto]]
) -> tuple[list[tuple[NodeProto, bool]], dict[str, str]]:
    """Return nodes of one scope with the nodes near them, and the constants that all read.

    Returns:
        each node, and whether it is one of the given ones; then the constants as text.
    """
    if not found:
        return [], {}
    scope, made = found[0][0], [node for _, node in found[:NODES]]
    beside = side.around(scope, made)
    nodes = [(node, False) for node in beside] + [(node, True) for node in made]
    return nodes, side.constants(scope, [*beside, *made])


def diff_picture(diff: Diff, a: ModelProto, b: ModelProto) -> ModelPicture:
    """Return the picture of two models: the nodes of the first, the new nodes of the second.

    One change of each kind is drawn, and one added and one removed node of each operator.
    """
    first, second = _PicturedModel(a), _PicturedModel(b)
    marks = {(item.scope, item.node): item.summary for item in diff.changes}
    marks |= {(item.scope, item.node): "removed" for item in diff.removed}
    added = {(item.scope, item.node): "added" for item in diff.added}
    new = [row for row in rows(second.scopes, added) if row[-1]]
    drawings = [
        *_changed(diff, first, second),
        *_in_one(diff, first, second),
    ]
    return ModelPicture((*rows(first.scopes, marks), *new), tuple(drawings[:DRAWN]))


def _changed(diff: Diff, first: _PicturedModel, second: _PicturedModel) -> Iterator[ChangeDrawing]:
    """Draw one node of each kind of change, with the nodes that replace it."""
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
        yield ChangeDrawing(
            change.node,
            change.op_type,
            change.scope,
            *sides(beside, [node], new),
            first.constants(scope, [*beside, node]),
            max(0, len(new) - NODES),
        )


def _in_one(diff: Diff, first: _PicturedModel, second: _PicturedModel) -> Iterator[ChangeDrawing]:
    """Draw one added and one removed node of each operator."""
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
            yield ChangeDrawing(
                item.node,
                item.op_type,
                item.scope,
                *sides(beside, old, new),
                side.constants(scope, [*beside, node]),
            )


def _between(node: NodeProto, scope: Scope, other: Scope) -> list[NodeProto]:
    """Return the nodes of another scope that compute a node's outputs from common values."""
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
