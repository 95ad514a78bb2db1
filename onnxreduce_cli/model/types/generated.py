"""The values that a conversion adds to a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy.typing as npt
from onnx import NodeProto

from onnxreduce_cli.model.graph.scope import Scope, subgraphs
from onnxreduce_cli.model.graph.values import ValueType, tensor_type

#: The identity of a value's outermost scope, within which generated names are unique; its name.
GeneratedKey = tuple[int, str]


class GeneratedOutput(NamedTuple):
    """The origin of a generated value.

    Attributes:
        node: the node; its outputs may have other names by now, see `simplification.simplified`.
        opset: the opset of the node.
        scope: its scope.
        place: the index of the value among its outputs.
    """

    node: NodeProto
    opset: int
    scope: Scope
    place: int


class GeneratedValues:
    """The values that one conversion adds.

    Attributes:
        nodes: the nodes that compute them.
        arrays: the generated constants.
        types: the types that are stated or were inferred.
        kinds: the types that follow from an input, as schemas spell them.
        restated: the values of the model whose types replace what is known of them.
    """

    def __init__(self, trees: Mapping[int, Sequence[Scope]]) -> None:
        """Begin with none; `trees` are the model's scopes by the identity of the outermost."""
        self._trees = trees
        self.nodes: dict[GeneratedKey, GeneratedOutput] = {}
        self.arrays: dict[GeneratedKey, npt.NDArray[Any]] = {}
        self.types: dict[GeneratedKey, ValueType | None] = {}
        self.kinds: dict[GeneratedKey, str] = {}
        self.restated: set[GeneratedKey] = set()

    def key(self, scope: Scope, name: str) -> GeneratedKey | None:
        """Return the key of a value that was added; None for other values."""
        key = (id(scope.root), name)
        if key not in self.types and key not in self.nodes:
            return None
        # A `Value` is a string that refers to the facts, and would keep them in memory.
        return key[0], str(name)

    def node(self, scope: Scope, name: str) -> tuple[Scope, NodeProto] | None:
        """Return the generated node that makes a value, with its scope; None for other values."""
        found = self.nodes.get((id(scope.root), name))
        return None if found is None else (found.scope, found.node)

    def declare(self, scope: Scope, node: NodeProto, opset: int, names: Iterable[str]) -> None:
        """Add the named values, which a node computes that is read at `opset`.

        What new branches of an If compute is added too, as its outputs have these types.
        """
        indices = {name: index for index, name in enumerate(node.output)}
        for name in filter(None, map(str, names)):
            key = (id(scope.root), name)
            self.nodes[key] = GeneratedOutput(node, opset, scope, indices[name])
        for label, graph in subgraphs(node) if node.op_type == "If" else ():
            inner = Scope(graph, scope, opset, label, subgraph=True)
            if not self._is_of_model(inner):
                for item in inner.nodes:
                    self.declare(inner, item, opset, item.output)

    def _is_of_model(self, inner: Scope) -> bool:
        """Return whether the graph of a new node has nodes of the model, which may be copies."""
        tree, made = self._trees[id(inner.root)], inner.producers.keys()
        return any(not made.isdisjoint(scope.producers.keys()) for scope in tree)

    def repeat(
        self, scope: Scope, other: Scope, names: Mapping[str, str], nodes: Mapping[int, NodeProto]
    ) -> None:
        """Add values that equal others.

        Args:
            scope: their scope.
            other: the scope of the others.
            names: the name of each value by that of the one that it equals.
            nodes: the nodes that compute them, by the identity of those that compute the others.
        """
        root, of_other = id(scope.root), id(other.root)
        for name, new in names.items():
            made = self.nodes.get((of_other, name))
            if made is not None and id(made.node) in nodes:
                self.nodes[root, new] = made._replace(node=nodes[id(made.node)], scope=scope)
            if (of_other, name) in self.types:
                self.types[root, new] = self.types[of_other, name]

    def take_over(self, scope: Scope, other: Scope, names: Iterable[str]) -> None:
        """Add for a scope the values of another, of equal names and computed by equal nodes."""
        root, of_other = id(scope.root), id(other.root)
        for name in names:
            made = self.nodes.get((of_other, name))
            if made is not None:
                self.nodes[root, name] = made._replace(scope=scope)
            if (of_other, name) in self.types:
                self.types[root, name] = self.types[of_other, name]
            if (of_other, name) in self.arrays:
                self.arrays[root, name] = self.arrays[of_other, name]

    def declare_type(self, scope: Scope, name: str, value_type: ValueType | None) -> None:
        """Note the type of a value."""
        self.types[id(scope.root), str(name)] = value_type

    def define(self, scope: Scope, name: str, array: npt.NDArray[Any], elem_type: int) -> None:
        """Add a constant."""
        self.arrays[id(scope.root), str(name)] = array
        self.declare_type(scope, name, tensor_type(elem_type, array.shape))
