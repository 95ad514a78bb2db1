"""The constants that new nodes read: initializers, or nodes where there are no initializers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from onnx import FunctionProto, NodeProto, TensorProto, numpy_helper

from onnxreduce_cli.engine.node_converter import NodeConverter
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.graph.edit import constant_node, read_by, reference_node
from onnxreduce_cli.model.graph.order import in_order
from onnxreduce_cli.model.graph.scope import Scope

#: An opset at which a Constant holds any dtype and lists of integers.
_CONSTANT_OPSET = 13


class NewConstants(NamedTuple):
    """The constants that new nodes of a scope read.

    Attributes:
        initializers: the constants that become initializers.
        nodes: the constants that become nodes at the target, to be put before all others.
    """

    initializers: list[TensorProto]
    nodes: list[NodeProto]


class ConstantMaker:
    """Makes the constants of one conversion, each of them once."""

    def __init__(self, converter: NodeConverter, target: int) -> None:
        """Prepare; nothing is made yet.

        Args:
            converter: converts nodes to the target; it holds the constants that steps added.
            target: the opset to reach.
        """
        self._converter = converter
        self._opset = max(target, _CONSTANT_OPSET)
        self._made: dict[tuple[int, str], NewConstants] = {}
        #: What the same nodes read, which equal functions share, by identity; with these nodes.
        self._read: dict[tuple[int, ...], tuple[Sequence[Sequence[NodeProto]], NewConstants]] = {}

    def as_nodes(self, scope: Scope) -> bool:
        """Return whether the constants of a scope become nodes.

        A function body has no initializers, and before IR version 4 initializers are inputs too.
        """
        return isinstance(scope.container, FunctionProto) or not self._converter.initializers

    def read_in(self, scope: Scope, results: Sequence[Sequence[NodeProto]]) -> NewConstants:
        """Return the constants that new nodes of a scope read.

        Args:
            scope: the scope.
            results: the nodes that replace its nodes.

        Raises:
            Blocked: the target has no operator that makes one of them.
        """
        constants, found = self._converter.constants(scope), NewConstants([], [])
        if not constants.names:
            return found
        key = (id(constants), *map(id, results)) if scope.function is not None else ()
        if key in self._read:
            return self._read[key][1]
        known: set[str] = set()
        read = read_by(results, constants.names)
        # The nodes that make a constant at the target may read further constants.
        while read:
            known |= read
            new = [self._make(scope, name) for name in constants.names if name in read]
            nodes = [node for made in new for node in made.nodes]
            for made in new:
                found.initializers.extend(made.initializers)
            found.nodes.extend(nodes)
            read = read_by([nodes], constants.names) - known if nodes else set()
        found.nodes[:] = in_order(found.nodes)
        if key:
            self._read[key] = results, found
        return found

    def _make(self, scope: Scope, name: str) -> NewConstants:
        constants, made = self._converter.constants(scope), NewConstants([], [])
        key = (id(constants), name)  # Which scopes with equal nodes share.
        if key in self._made:
            return self._made[key]
        reference = constants.references.get(name)
        if reference is None:
            tensor = numpy_helper.from_array(constants.arrays[name][0], name)
            if not self.as_nodes(scope):
                made.initializers.append(tensor)
                return made
            node = constant_node(tensor)
        else:
            node = reference_node(name, reference)
        site = Site(scope, node)
        made.nodes.extend(self._converter.cross_boundaries(site, scope, node, self._opset))
        made.initializers.extend(site.initializers)
        self._made[key] = made
        return made
