"""A node with graphs in graphs, to a depth: what nests deeper gives values from outside instead.

A node that nests deeper is a site of its own, or stays as it is. So the work of checking all sites
of a model does not grow with its size times the depth of its graphs.
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx import AttributeProto, GraphProto, NodeProto, TypeProto

from onnxreduce_cli.model.scope import subgraphs
from onnxreduce_cli.model.types.conversion_facts import ConversionFacts
from onnxreduce_cli.verification.errors import UncheckableError
from onnxreduce_cli.verification.site_types import type_proto

#: How many graphs there are at most around a node within one that is checked.
DEEPEST = 2


class Nesting:
    """A node of a model, cut where more than `DEEPEST` graphs nest in it.

    Attributes:
        node: the model's own where nothing nests deeper, else a copy.
        types: by name those of the values in place of what nodes that nest deeper give.
    """

    def __init__(self, facts: ConversionFacts, node: NodeProto) -> None:
        """Cut it.

        Args:
            facts: what is known of the values of the model.
            node: the node.

        Raises:
            UncheckableError: what a node gives that nests deeper is no tensor, or of unknown type.
        """
        self.node = node
        self.types: dict[str, TypeProto] = {}
        self._facts = facts
        levels = _levels(node)
        if any(True for inner in levels[-1] for _ in subgraphs(inner)):
            nodes = [inner for level in levels for inner in level]
            self._taken = {name for inner in nodes for name in (*inner.input, *inner.output)}
            self.node = self._cut(node, 0)

    def _cut(self, node: NodeProto, depth: int) -> NodeProto:
        """A copy of a node that has `depth` graphs around it."""
        copy = NodeProto(op_type=node.op_type, name=node.name, domain=node.domain)
        copy.input.extend(node.input)
        copy.output.extend(node.output)
        for attribute in node.attribute:
            if attribute.type != AttributeProto.GRAPH:
                copy.attribute.append(attribute)
            else:
                new = copy.attribute.add(name=attribute.name, type=attribute.type)
                self._cut_graph(attribute.g, new.g, depth + 1)
        return copy

    def _cut_graph(self, graph: GraphProto, copy: GraphProto, depth: int) -> None:
        copy.name = graph.name
        copy.input.extend(graph.input)
        copy.output.extend(graph.output)
        copy.initializer.extend(graph.initializer)
        copy.sparse_initializer.extend(graph.sparse_initializer)
        copy.value_info.extend(graph.value_info)
        for node in graph.node:
            if not any(True for _ in subgraphs(node)):
                copy.node.append(node)
            elif depth < DEEPEST:
                copy.node.append(self._cut(node, depth))
            else:
                copy.node.extend(self._instead(graph, node))

    def _instead(self, graph: GraphProto, node: NodeProto) -> Iterator[NodeProto]:
        """Nodes that give values from outside under the names of what a node in a graph gives."""
        scope = self._facts.model.inner(graph)
        assert scope is not None
        for name in filter(None, node.output):
            known = self._facts.type(scope, name)
            if known is None or not known.elem_type:
                raise UncheckableError(
                    f"more than {DEEPEST} graphs nest in it, and of what type {name!r} is in the "
                    "innermost is not known"
                )
            given = f"outside{len(self.types)}"
            while given in self._taken:
                given += "_"
            self.types[given] = type_proto(known, known.dims)
            yield NodeProto(op_type="Identity", name=given, input=[given], output=[name])


def _levels(node: NodeProto) -> list[list[NodeProto]]:
    """The node, the nodes of its graphs, those of theirs, and so on to `DEEPEST`."""
    levels = [[node]]
    for _ in range(DEEPEST):
        inner = [
            item for outer in levels[-1] for _, graph in subgraphs(outer) for item in graph.node
        ]
        levels.append(inner)
    return levels
