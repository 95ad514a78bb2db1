"""Renaming of nodes and graphs that move into another graph."""

from __future__ import annotations

from onnx import GraphProto, NodeProto

from onnxreduce_cli.model.graph.names import Names
from onnxreduce_cli.model.graph.scope import subgraphs


class Renaming:
    """New names for the values and nodes of a body that takes the place of a node.

    Attributes:
        given: the new names by the old ones.
    """

    def __init__(self, given: dict[str, str], base: str, names: Names, *, closed: bool) -> None:
        """Prepare the renaming.

        Args:
            given: the new names that are settled by the old ones; others are added.
            base: what new names begin with.
            names: where new names come from.
            closed: whether the body reads nothing from around it, as a function does; else names
                that are not in `given` stay.
        """
        self.given = given
        self._base = base
        self._names = names
        self._closed = closed

    def node(self, node: NodeProto) -> None:
        """Rename a node and its inputs and outputs, in its subgraphs too."""
        self._node(node, self.given)

    def _node(self, node: NodeProto, given: dict[str, str]) -> None:
        node.input[:] = [self._actual(name, given) for name in node.input]
        node.output[:] = [self._actual(name, given) for name in node.output]
        if node.name:
            node.name = self._names.fresh(f"{self._base}_{node.name}")
        for configuration in node.device_configurations:
            for spec in configuration.sharding_spec:
                spec.tensor_name = self._actual(spec.tensor_name, given)
        for _, graph in subgraphs(node):
            self._graph(graph, dict(given))

    def _graph(self, graph: GraphProto, given: dict[str, str]) -> None:
        tensors = [*graph.initializer, *(sparse.values for sparse in graph.sparse_initializer)]
        # A name that the graph defines again is its own from here on.
        for name in names_made(graph):
            given.pop(name, None)
        for tensor in tensors:
            tensor.name = self._actual(tensor.name, given)
        for value in (*graph.input, *graph.output, *graph.value_info):
            value.name = self._actual(value.name, given)
        for annotation in graph.quantization_annotation:
            annotation.tensor_name = self._actual(annotation.tensor_name, given)
            for entry in annotation.quant_parameter_tensor_names:
                entry.value = self._actual(entry.value, given)
        for node in graph.node:
            self._node(node, given)

    def _actual(self, name: str, given: dict[str, str]) -> str:
        if name not in given:
            if not self._closed:
                return name
            given[name] = self._names.fresh(f"{self._base}_{name}")
        return given[name]


def names_made(graph: GraphProto) -> list[str]:
    """Return the names that a graph defines: inputs, initializers and outputs of its nodes."""
    made = [value.name for value in graph.input]
    made += [tensor.name for tensor in graph.initializer]
    made += [sparse.values.name for sparse in graph.sparse_initializer]
    made += [name for node in graph.node for name in node.output if name]
    return made
