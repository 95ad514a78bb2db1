"""The values that nodes use, their subgraphs included."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import GraphProto, NodeProto

from onnxreduce_cli.model.graph.scope import subgraphs


def used_values(nodes: Iterable[NodeProto]) -> list[str]:
    """Return the names that nodes read, or their subgraphs from outside themselves, each once."""
    found: dict[str, None] = {}
    for node in nodes:
        found.update(dict.fromkeys(name for name in node.input if name))
        for _, graph in subgraphs(node):
            own = {*declared(graph), *(name for item in graph.node for name in item.output)}
            inner = [*used_values(graph.node), *(value.name for value in graph.output)]
            found.update(dict.fromkeys(name for name in inner if name not in own))
    return list(found)


def declared(graph: GraphProto) -> list[str]:
    """Return the names of a graph's inputs and initializers."""
    names = [value.name for value in graph.input]
    return names + [tensor.name for tensor in graph.initializer]
