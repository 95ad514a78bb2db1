"""A model's main graph as a network of values."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import NodeProto

from onnxreduce_cli.model.used_values import used_values
from onnxreduce_cli.verification.running.source import Source

#: Operators that read nothing but the shape of their input.
OF_SHAPES = frozenset({"Shape", "Size"})

#: No more nodes are named than these.
_NAMED = 12


class ValueGraph:
    """The values of a model's main graph, and what each is made from.

    Attributes:
        nodes: the nodes.
        positions: by the identity of a node, its position among those.
        producers: the node that makes each value.
        order: the values in topological order.
    """

    def __init__(self, source: Source) -> None:
        self.producers: dict[str, NodeProto] = {}
        # Kept, so that no other object gets the identity of one.
        self.nodes = list(source.skeleton.graph.node)
        self.positions = {id(node): index for index, node in enumerate(self.nodes)}
        for node in self.nodes:
            for name in node.output:
                if name:
                    self.producers[name] = node
        self.order = list(self.producers)

    @staticmethod
    def reads(node: NodeProto) -> list[str]:
        """The names that a node reads, its subgraphs included."""
        return used_values([node])

    def ancestors(self, name: str) -> set[str]:
        """Every value that `name` is made from, itself left out."""
        found: set[str] = set()
        waiting = [name]
        while waiting:
            node = self.producers.get(waiting.pop())
            for read in used_values([node]) if node is not None else ():
                if read not in found:
                    found.add(read)
                    waiting.append(read)
        return found

    def nodes_behind(self, names: Iterable[str]) -> set[int]:
        """The nodes, by their positions, that values are made by, directly or not."""
        found: set[int] = set()
        seen: set[str] = set()
        waiting = list(names)
        while waiting:
            node = self.producers.get(waiting.pop())
            position = None if node is None else self.positions[id(node)]
            if node is None or position is None or position in found:
                continue
            found.add(position)
            fresh = [name for name in used_values([node]) if name not in seen]
            seen.update(fresh)
            waiting += fresh
        return found

    def sources(self, name: str, known: set[str]) -> set[str]:
        """Return the values among `known` that `name` is computed from with none between."""
        return self.walk(name, known)[0]

    def made(self, name: str, known: set[str]) -> tuple[str, ...]:
        """The nodes that make `name` from values among `known`, in order."""
        nodes = {id(node) for node in self.walk(name, known)[1]}
        ordered: dict[int, NodeProto] = {}
        for value in self.order:
            node = self.producers[value]
            if id(node) in nodes:
                ordered[id(node)] = node
        names = [f"{_called(node)} ({node.op_type})" for node in ordered.values()]
        return tuple(names[-_NAMED:])

    def walk(self, name: str, known: set[str]) -> tuple[set[str], list[NodeProto]]:
        """Return the values among `known` that `name` is computed from, and the nodes between."""
        ends: set[str] = set()
        nodes: list[NodeProto] = []
        waiting, seen = [name], {name}
        while waiting:
            node = self.producers.get(waiting.pop())
            if node is None:
                continue
            nodes.append(node)
            for read in used_values([node]):
                if read in known:
                    ends.add(read)
                elif read not in seen:
                    seen.add(read)
                    waiting.append(read)
        return ends, nodes


def _called(node: NodeProto) -> str:
    return node.name or next((name for name in node.output if name), "without a name")
