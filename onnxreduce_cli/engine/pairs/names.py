"""The names in a pair of models, which do not depend on those in the source model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from onnx import NodeProto, TensorProto

from onnxreduce_cli.model.graph.scope import subgraphs
from onnxreduce_cli.model.graph.used_values import declared


class Renaming:
    """New names for those of a source model, so that equal sites become equal models."""

    def __init__(self) -> None:
        """Begin without names; the empty name stays as it is."""
        self._names: dict[str, str] = {"": ""}
        self._counts: dict[str, int] = {}

    def add(self, name: str, prefix: str) -> None:
        """Give a name a new one, the prefix and a number, unless it has one."""
        if name not in self._names:
            count = self._counts[prefix] = self._counts.get(prefix, 0) + 1
            self._names[name] = f"{prefix}{count}"

    def __getitem__(self, name: str) -> str:
        """Return the new name for one that was added."""
        return self._names[name]

    def node(self, node: NodeProto, index: int) -> NodeProto:
        """Return a renamed copy of a node, the index-th of its model, with its subgraphs."""
        copy = NodeProto()
        copy.CopyFrom(node)
        copy.name = f"n{index}"
        waiting = [copy]
        while waiting:
            item = waiting.pop()
            for names in (item.input, item.output):
                names[:] = [self._names.get(name, name) for name in names]
            for _, graph in subgraphs(item):
                waiting += graph.node
                for values in (graph.input, graph.output, graph.value_info):
                    for value in values:
                        value.name = self._names.get(value.name, value.name)
                for tensor in graph.initializer:
                    tensor.name = self._names.get(tensor.name, tensor.name)
                for number, inner in enumerate(graph.node):
                    inner.name = f"{copy.name}_{number}"
                graph.name = "g"
        return copy

    def tensor(self, tensor: TensorProto) -> TensorProto:
        """Return a copy of a tensor by its new name."""
        copy = TensorProto()
        copy.CopyFrom(tensor)
        copy.name = self._names[tensor.name]
        return copy


def made_values(nodes: Iterable[NodeProto]) -> list[str]:
    """Return the names that nodes and their subgraphs define, in order."""
    found: list[str] = []
    for node in nodes:
        found += [name for name in node.output if name]
        for _, graph in subgraphs(node):
            found += declared(graph)
            found += made_values(graph.node)
    return found


def node_key(node: NodeProto, tokens: dict[str, Any]) -> tuple[Any, ...]:
    """Return a key of a node that does not depend on its names, which tokens stand for."""
    return (
        node.domain,
        node.op_type,
        tuple(attribute.SerializeToString() for attribute in node.attribute),
        tuple(tokens[name] for name in node.input),
        tuple(tokens[name] if isinstance(tokens[name], int) else name for name in node.output),
    )
