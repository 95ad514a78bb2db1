"""What became of nodes: those of the first model that differ, each with what takes its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from onnx import NodeProto, TensorProto

from onnxreduce_cli.diffing.aligning import Pair, attributes_of, inputs_of
from onnxreduce_cli.diffing.content import small_array, tensor_text
from onnxreduce_cli.diffing.results import Difference, DiffNode
from onnxreduce_cli.engine.changes import Change
from onnxreduce_cli.engine.differences import differences
from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.dead_values import names_read
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, Scope, called_key, with_inner
from onnxreduce_cli.text import listed

#: What says nothing of what a node computes.
_SAYING = ("name", "doc_string", "metadata_props", "device_configurations")

#: Operators that make constants from nothing, or from shapes.
_CONSTANT = frozenset({"Constant", "Shape", "Size"})


class Nodes:
    """The nodes of a pair of scopes, compared.

    Attributes:
        changes: the first scope's nodes that something takes the place of.
        added: the second's that take no node's place.
        removed: the first's that nothing takes the place of.
        constants: Constant nodes that only one has.
        renamed: nodes that have another name.
        metadata: the fields that say nothing of what nodes compute, with how many nodes differ.
    """

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._a, self._b = pair.a, pair.b
        self.metadata: Counter[str] = Counter()
        self.renamed: list[Difference] = []
        self._same = {id(node) for node in self._a.nodes if self._is_same(node)}
        alike = {id(pair.nodes[key]) for key in pair.nodes}
        self._values = {*self._a.producers, *self._a.inputs, *self._a.initializers}
        #: Nodes of the second that the first has none for, and that no change has taken.
        self._new = {id(node): node for node in self._b.nodes if id(node) not in alike}
        self._places = {
            id(node): place
            for scope in (self._a, self._b)
            for place, node in enumerate(scope.nodes)
        }
        self._gone = self._vanished()
        self._static = _static(self._a)
        self._constants = _added_constants(self._a, self._b)
        self.changes = tuple(self._changes())
        self.constants = tuple(self._constant_nodes())
        self.removed = tuple(
            DiffNode(self._a.describe(node), node.op_type, self._a.label)
            for node in self._gone.values()
            if not _is_constant(node)
        )
        self.added = tuple(
            DiffNode(self._b.describe(node), node.op_type, self._b.label)
            for node in self._new.values()
            if not _is_constant(node)
        )

    def _is_same(self, node: NodeProto) -> bool:
        """Return whether a node is in both scopes, and computes the same from the same values."""
        other = self._pair.nodes.get(id(node))
        if other is None:
            return False
        if node == other:
            return True
        for field in _SAYING:
            mine, its = getattr(node, field), getattr(other, field)
            if mine != its:
                self.metadata[field] += 1
                if field == "name":
                    before, after = self._a.describe(node), self._b.describe(other)
                    self.renamed.append(Difference(node.op_type, before, after, self._a.label))
        return (
            called_key(node) == called_key(other)
            and inputs_of(node, {}) == inputs_of(other, {})
            and list(node.output) == list(other.output)
            and attributes_of(node) == attributes_of(other)
        )

    def _vanished(self) -> dict[int, NodeProto]:
        """The nodes of the first scope of which the second has neither the node nor what it makes.

        By their identities.
        """
        made = self._b.producers.keys() | self._b.initializers.keys()
        return {
            id(node): node
            for node in self._a.nodes
            if id(node) not in self._pair.nodes and made.isdisjoint(node.output)
        }

    def _changes(self) -> Iterator[Change]:
        for node in self._a.nodes:
            if id(node) in self._same or id(node) in self._gone:
                continue
            other = self._pair.nodes.get(id(node))
            result = self._in_place_of(node, other)
            absorbed = self._absorbed(node)
            edits = list(self._edits(node, result))
            if not edits and other is not None and len(result) == 1:
                edits = list(_other_edits(node, other))
            yield Change(
                self._a.describe(node),
                node.op_type,
                self._a.label,
                tuple(edits),
                tuple(item.op_type for item in result),
                (),
                _size(result) - (_size([node]) - 1 if node.op_type in GRAPH_OPERATORS else 0),
                _control_flow(node, result),
                tuple(item.op_type for item in absorbed),
            )

    def _in_place_of(self, node: NodeProto, other: NodeProto | None) -> list[NodeProto]:
        """Return the second scope's nodes that make what a node of the first made, in order."""
        found: dict[int, NodeProto] = {}
        made = self._b.producers
        waiting = [made[name] for name in node.output if name in made]
        waiting += [other] if other is not None else []
        while waiting:
            item = waiting.pop()
            if id(item) in found or not (item is other or id(item) in self._new):
                continue
            self._new.pop(id(item), None)
            found[id(item)] = item
            for name in names_read(item):
                if name in made and (name not in self._values or name in node.output):
                    maker = made[name]
                    waiting += [maker] if not _is_constant(maker) else []
        return sorted(found.values(), key=lambda item: self._places[id(item)])

    def _absorbed(self, node: NodeProto) -> list[NodeProto]:
        """Return the nodes before one that vanished with it, but for what made constants."""
        found: dict[int, NodeProto] = {}
        made = self._a.producers
        waiting = list(names_read(node))
        while waiting:
            name = waiting.pop()
            maker = made.get(name)
            if maker is None or name in self._static or self._gone.pop(id(maker), None) is None:
                continue
            found[id(maker)] = maker
            waiting += names_read(maker)
        return sorted(found.values(), key=lambda item: self._places[id(item)])

    def _edits(self, node: NodeProto, result: list[NodeProto]) -> Iterator[str]:
        opsets = self._a.opset or 0, self._b.opset or 0
        other = self._pair.nodes.get(id(node))
        if other is not None and other.name != node.name:
            # Told by its name, which is another.
            result = [_called(item, node.name) if item is other else item for item in result]
        return differences(node, result, opsets, self._constants)

    def _constant_nodes(self) -> Iterator[Difference]:
        for nodes, scope, added in ((self._gone, self._a, False), (self._new, self._b, True)):
            for node in nodes.values():
                if _is_constant(node):
                    text, name = _constant_text(node), scope.describe(node)
                    before, after = ("", text) if added else (text, "")
                    yield Difference(name, before, after, scope.label)


def _is_constant(node: NodeProto) -> bool:
    return node.op_type == "Constant" and not node.domain


def _constant_text(node: NodeProto) -> str:
    value = attributes.find(node, "value")
    if value is not None and not value.ref_attr_name:
        return f"Constant {tensor_text(value.t)}"
    return "Constant"


def _static(scope: Scope) -> set[str]:
    """The values of a scope that depend on constants and on shapes alone."""
    found = set(scope.initializers)
    for node in scope.nodes:
        known = node.op_type in _CONSTANT or (
            len(node.input) > 0 and all(name in found for name in node.input if name)
        )
        if known and not node.domain:
            found.update(node.output)
    return found


def _added_constants(a: Scope, b: Scope) -> Mapping[str, tuple[Any, int]]:
    """The constants of few elements that the second scope alone has, by name."""
    tensors = dict(_tensors(b))
    for name in dict(_tensors(a)):
        tensors.pop(name, None)
    found = {name: (small_array(tensor), tensor.data_type) for name, tensor in tensors.items()}
    return {name: item for name, item in found.items() if item[0] is not None}


def _tensors(scope: Scope) -> Iterator[tuple[str, TensorProto]]:
    yield from scope.initializers.items()
    for node in scope.nodes:
        value = attributes.find(node, "value") if _is_constant(node) else None
        if value is not None and not value.ref_attr_name:
            yield node.output[0], value.t


def _other_edits(node: NodeProto, other: NodeProto) -> Iterator[str]:
    """Tell what differs that no operator's definition knows of."""
    if called_key(node) != called_key(other):
        yield f"overload {node.overload!r} → {other.overload!r}"
    for what, mine, its in (
        ("inputs", node.input, other.input),
        ("outputs", node.output, other.output),
    ):
        if list(mine) != list(its):
            yield f"{what} {listed(list(mine)) or 'none'} → {listed(list(its)) or 'none'}"


def _called(node: NodeProto, name: str) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.name = name
    return copy


def _size(nodes: Iterable[NodeProto]) -> int:
    return sum(1 for _ in with_inner(nodes))


def _control_flow(node: NodeProto, result: list[NodeProto]) -> tuple[str, ...]:
    if node.op_type in GRAPH_OPERATORS:
        return ()
    found = [item.op_type for item in with_inner(result)]
    return tuple(sorted(op_type for op_type in found if op_type in GRAPH_OPERATORS))
