"""The values of a model's main graph, and the nodes that compute them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Set

from onnx import NodeProto

from onnxreduce_cli.model.graph.used_values import used_values
from onnxreduce_cli.verification.running.source import ModelSource

#: The most nodes that are named.
_NAMED = 12


class ValueGraph:
    """The values of a model's main graph, each with the node that computes it.

    Attributes:
        nodes: the nodes.
        positions: by the identity of a node, its position among them.
        producers: by value, the node that computes it.
        order: the values in topological order.
    """

    def __init__(self, source: ModelSource) -> None:
        self.producers: dict[str, NodeProto] = {}
        # Kept, so that no other object gets the identity of one.
        self.nodes = list(source.skeleton.graph.node)
        self.positions = {id(node): index for index, node in enumerate(self.nodes)}
        for node in self.nodes:
            for name in node.output:
                if name:
                    self.producers[name] = node
        self.order = list(self.producers)
        self._used: dict[int, list[str]] = {}

    def reads(self, node: NodeProto) -> list[str]:
        """Return the values that a node uses, its subgraphs included."""
        position = self.positions[id(node)]
        if position not in self._used:
            self._used[position] = used_values([node])
        return self._used[position]

    def nodes_between(
        self, names: Iterable[str], known: Collection[str] = ()
    ) -> Iterator[NodeProto]:
        """Yield each node that computes `names` from values among `known`, or from inputs."""
        waiting, seen = list(names), set[int]()
        while waiting:
            node = self.producers.get(waiting.pop())
            if node is not None and id(node) not in seen:
                seen.add(id(node))
                yield node
                waiting += [name for name in self.reads(node) if name not in known]

    def ancestors(self, name: str) -> set[str]:
        """Return every value that `name` is computed from."""
        return {read for node in self.nodes_between([name]) for read in self.reads(node)}

    def nodes_behind(self, names: Iterable[str]) -> set[int]:
        """Return the positions of the nodes that values are computed by."""
        return {self.positions[id(node)] for node in self.nodes_between(names)}

    def sources(self, name: str, known: Set[str]) -> set[str]:
        """Return the values among `known` that `name` is computed from with none between."""
        nodes = self.nodes_between([name], known)
        return {read for node in nodes for read in self.reads(node) if read in known}

    def made(self, name: str, known: Set[str]) -> tuple[str, ...]:
        """Return the nodes that compute `name` from values among `known`, in order."""
        positions = sorted(self.positions[id(node)] for node in self.nodes_between([name], known))
        nodes = [self.nodes[position] for position in positions]
        return tuple(f"{_called(node)} ({node.op_type})" for node in nodes[-_NAMED:])


def _called(node: NodeProto) -> str:
    return node.name or next((name for name in node.output if name), "without a name")
