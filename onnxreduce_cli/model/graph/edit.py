"""Edits of a model in place, which leave everything else as it was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy.typing as npt
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
)

from onnxreduce_cli.model.graph.domains import default_imports, is_default
from onnxreduce_cli.model.graph.scope import Scope, subgraphs


class Constants:
    """The constants that steps add to one scope; equal values share one."""

    def __init__(self) -> None:
        self._names: dict[tuple[Any, ...], str] = {}
        self.arrays: dict[str, tuple[npt.NDArray[Any], int]] = {}
        self.references: dict[str, AttributeProto] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the values that the constants define."""
        return (*self.arrays, *self.references)

    def add(self, key: tuple[Any, ...], name: str) -> None:
        """Register the name of a new constant under a key."""
        self._names[key] = name

    def get(self, key: tuple[Any, ...]) -> str | None:
        """Return the name of the constant with a key; None if there is none yet."""
        return self._names.get(key)


class Edits:
    """The edits of one scope.

    Attributes:
        replaced: the replacement of each replaced node, by the identity of the latter.
        originals: the replaced nodes by their identity.
        successors: the nodes of each replacement that take over the subgraphs of the replaced node.
        taken_over: for each replacement, the names of graphs anywhere within it, with the names of
            the attributes of the replaced node whose graphs they take over.
        initializers: initializers that replace nodes.
        first: nodes to put before all others.
        removed_nodes: identities of the nodes to remove.
        removed_values: names of the values to remove, with their types and annotations.
    """

    def __init__(self) -> None:
        self.replaced: dict[int, Sequence[NodeProto]] = {}
        self.originals: dict[int, NodeProto] = {}
        self.successors: dict[int, Sequence[NodeProto]] = {}
        self.taken_over: dict[int, Mapping[str, str]] = {}
        self.initializers: list[TensorProto] = []
        self.first: list[NodeProto] = []
        self.removed_nodes: set[int] = set()
        self.removed_values: set[str] = set()

    def replace(
        self,
        node: NodeProto,
        result: Sequence[NodeProto],
        successors: Sequence[NodeProto],
        taken_over: Mapping[str, str],
        initializers: Sequence[TensorProto],
    ) -> None:
        """Replace `node` by `result` and `initializers`."""
        self.replaced[id(node)] = result
        self.originals[id(node)] = node
        if successors:
            self.successors[id(node)] = successors
        if taken_over:
            self.taken_over[id(node)] = taken_over
        self.initializers += initializers

    def remove(self, going: tuple[set[int], set[str]]) -> None:
        """Remove nodes and values, by identity and by name."""
        self.removed_nodes |= going[0]
        self.removed_values |= going[1]


def apply_edits(scope: Scope, edits: Edits) -> None:
    """Edit one scope's container in place; its inner scopes are edited already."""
    container = scope.container
    if isinstance(container, GraphProto):
        container.initializer.extend(edits.initializers)
    _edit_nodes(scope, edits)
    if edits.removed_values:
        _remove_values(container, edits.removed_values)


def _give_graphs(edits: Edits, key: int, planned: NodeProto, new: NodeProto) -> None:
    """Give a new node the graphs of the one that it replaces, which are edited already.

    Args:
        edits: the edits of the scope.
        key: the identity of the node that is replaced.
        planned: a node of its replacement.
        new: this node, or a copy of it.
    """
    node = edits.originals[key]
    if any(item is planned for item in edits.successors.get(key, ())):
        _give_subgraphs(node, new)
    if key in edits.taken_over:
        graphs = {item.name: item.g for item in node.attribute}
        taken_over = {name: graphs[source] for name, source in edits.taken_over[key].items()}
        _take_over_within(new, taken_over)


def _give_subgraphs(node: NodeProto, successor: NodeProto) -> None:
    """Give the node that replaces another its subgraphs.

    Inputs and outputs that a step added to a graph stay, with the nodes that make the outputs;
    so do the nodes that make what was an input before.
    """
    for attribute in node.attribute:
        if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
            for copy in successor.attribute:
                if copy.name == attribute.name:
                    if _interface(copy.g) == _interface(attribute.g):
                        copy.CopyFrom(attribute)
                    else:
                        _take_over(copy.g, attribute.g)


def _take_over_within(node: NodeProto, done: Mapping[str, GraphProto]) -> None:
    """Let graphs in a node, at any depth, take over edited graphs, given by their names."""
    for _, graph in subgraphs(node):
        if graph.name in done:
            _take_over(graph, done[graph.name])
        else:
            for inner in graph.node:
                _take_over_within(inner, done)


def _take_over(graph: GraphProto, done: GraphProto) -> None:
    """Replace a graph's content by an edited graph; keep its name, and what a step added to it.

    The added nodes are found by the inputs and outputs: they make inputs of the edited graph that
    are no inputs here, and outputs here that it has not.
    """
    given = GraphProto.FromString(graph.SerializeToString())
    wanted = _names(done.input) - _names(given.input)
    first: list[NodeProto] = []
    for node in reversed(given.node):
        if not wanted.isdisjoint(node.output):
            first.insert(0, node)
            wanted.update(node.input)
    added = _names(given.output) - _names(done.output)
    last = [node for node in given.node if not added.isdisjoint(node.output)]
    # Copied once only: nested graphs may be large.
    graph.Clear()
    graph.node.extend(first)
    graph.MergeFrom(done)
    graph.node.extend(last)
    graph.name = given.name
    del graph.input[:], graph.output[:]
    graph.input.extend(given.input)
    typed = {output.name: output for output in done.output}
    for output in given.output:
        graph.output.append(output if output.HasField("type") else typed.get(output.name, output))


def _interface(graph: GraphProto) -> tuple[set[str], set[str]]:
    return _names(graph.input), _names(graph.output)


def _names(values: Iterable[ValueInfoProto]) -> set[str]:
    return {value.name for value in values}


def reference_node(name: str, attribute: AttributeProto) -> NodeProto:
    """Return a Constant node, int64 of [n], with the attribute that a reference refers to."""
    node = NodeProto(op_type="Constant", name=name, output=[name])
    node.attribute.add(
        name="value_ints", ref_attr_name=attribute.ref_attr_name, type=AttributeProto.INTS
    )
    return node


def constant_node(tensor: TensorProto) -> NodeProto:
    """Return a Constant node whose output is a tensor, under the tensor's name."""
    return helper.make_node("Constant", [], [tensor.name], name=tensor.name, value=tensor)


def read_by(results: Iterable[Sequence[NodeProto]], names: Iterable[str]) -> set[str]:
    """Return the given names that new nodes read, at any depth."""
    unread, found = set(names), set[str]()
    for result in results:
        if len(found) == len(unread):
            break
        waiting = [*result]
        while waiting:
            node = waiting.pop()
            found |= unread.intersection(node.input[:])
            for _, graph in subgraphs(node):
                waiting += graph.node
                found |= unread.intersection([output.name for output in graph.output])
    return found


def _edit_nodes(scope: Scope, edits: Edits) -> None:
    in_place = scope.misplaced is None and not edits.first and not edits.removed_nodes
    if in_place and all(len(result) == 1 for result in edits.replaced.values()):
        for key, (new,) in edits.replaced.items():
            _give_graphs(edits, key, new, new)
            edits.originals[key].CopyFrom(new)
        return
    # Messages that stay are moved, never copied: they may hold weights.
    nodes = scope.container.node
    order: dict[int, int] = {}
    kept: list[NodeProto] = []
    position = 0

    def append(node: NodeProto, replaced: int | None = None) -> None:
        nonlocal position
        new = nodes.add()
        new.CopyFrom(node)
        if replaced is not None:
            _give_graphs(edits, replaced, node, new)
        order[id(new)] = position
        kept.append(new)
        position += 1

    for node in edits.first:
        append(node)
    for node in scope.nodes:
        new_nodes = edits.replaced.get(id(node))
        if id(node) in edits.removed_nodes:
            continue
        if new_nodes is None:
            order[id(node)] = position
            position += 1
        else:
            for new in new_nodes:
                append(new, id(node))
    nodes.sort(key=lambda node: order.get(id(node), position))
    del nodes[position:]


def put_in_order(scope: Scope) -> None:
    """Sort a container's nodes topologically, as in its scope."""
    if scope.misplaced is not None:
        places = {id(node): place for place, node in enumerate(scope.nodes)}
        scope.container.node.sort(key=lambda node: places[id(node)])


def _remove_values(container: GraphProto | FunctionProto, names: set[str]) -> None:
    _remove(container.value_info, names)
    if isinstance(container, GraphProto):
        _remove(container.initializer, names)
        for index in reversed(range(len(container.sparse_initializer))):
            if container.sparse_initializer[index].values.name in names:
                del container.sparse_initializer[index]
        for index in reversed(range(len(container.quantization_annotation))):
            if container.quantization_annotation[index].tensor_name in names:
                del container.quantization_annotation[index]


def _remove(named, names: set[str]) -> None:  # type: ignore[no-untyped-def]  # a repeated field
    for index in reversed(range(len(named))):
        if named[index].name in names:
            del named[index]


def set_opset(owner: ModelProto | FunctionProto, opset: int) -> None:
    """Import the default domain at `opset`, if it is imported at all."""
    entries = default_imports(owner)
    for entry in entries:
        entry.version = opset
    # Up to IR version 2 there are no imports, which means opset 1.
    implied = isinstance(owner, ModelProto) and owner.ir_version < 3 and not entries
    if implied and opset != 1:
        owner.opset_import.add(version=opset)


def set_ir_version(model: ModelProto, scopes: Sequence[Scope], ir_version: int) -> None:
    """Set the IR version; below 4, declare initializers as those versions do.

    Up to IR version 3 a graph's initializers are listed among its inputs, which subgraphs cannot
    do, as their inputs are given by their operator: there they become Constant nodes. In the main
    graph Constant nodes that only subgraphs read become initializers: ONNX Runtime turns them into
    initializers, and looks for these among the inputs.
    """
    model.ir_version = ir_version
    if ir_version >= 4:
        return
    for scope in scopes:
        graph = scope.container
        if not isinstance(graph, GraphProto):
            continue
        if scope.parent is None:
            _move_outer_constants(graph)
        declared = {value.name for value in graph.input}
        undeclared = [tensor for tensor in graph.initializer if tensor.name not in declared]
        if scope.parent is None:
            for tensor in undeclared:
                dims = list(tensor.dims)
                graph.input.append(
                    helper.make_tensor_value_info(tensor.name, tensor.data_type, dims)
                )
        elif undeclared:
            nodes = [constant_node(tensor) for tensor in undeclared]
            nodes += graph.node
            copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
            del graph.node[:]
            graph.node.extend(copies)
            _remove(graph.initializer, {tensor.name for tensor in undeclared})


def _move_outer_constants(graph: GraphProto) -> None:
    """Turn Constant nodes that no node of the graph itself reads into initializers."""
    going = outer_constants(graph.node, [output.name for output in graph.output])
    for index in reversed(going):
        node = graph.node[index]
        tensor = graph.initializer.add()
        tensor.CopyFrom(next(item.t for item in node.attribute if item.name == "value"))
        tensor.name = node.output[0]
        del graph.node[index]


def outer_constants(nodes: Sequence[NodeProto], outputs: Iterable[str]) -> list[int]:
    """Return the indices of Constant nodes, with a tensor, that no node of the graph itself reads.

    Args:
        nodes: the nodes of the graph.
        outputs: its outputs.
    """
    read = {*outputs, *(name for node in nodes for name in node.input)}
    return [
        index
        for index, node in enumerate(nodes)
        if node.op_type == "Constant"
        and is_default(node.domain)
        and node.output
        and node.output[0] not in read
        and any(item.name == "value" for item in node.attribute)
    ]
