"""Branches of If nodes: which one a constant condition takes, and its nodes in place of the If."""

from __future__ import annotations

from typing import NamedTuple

from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, ValueInfoProto

from onnxreduce_cli.model.graph.edit import constant_node
from onnxreduce_cli.model.graph.names import Names
from onnxreduce_cli.model.graph.renaming import Renaming, names_made
from onnxreduce_cli.model.graph.scope import Scope


class PlacedBranch(NamedTuple):
    """A branch that takes the place of its If.

    Attributes:
        nodes: its nodes, with names that are unique where they go.
        initializers: its initializers; a function gets nodes for them.
        infos: the types that it states of its values.
    """

    nodes: list[NodeProto]
    initializers: list[TensorProto]
    infos: list[ValueInfoProto]


def branch(node: NodeProto, condition: bool) -> tuple[str, GraphProto]:
    """Return the branch of an If that a condition takes, with its name."""
    wanted = "then_branch" if condition else "else_branch"
    return wanted, next(item.g for item in node.attribute if item.name == wanted)


def can_place(graph: GraphProto) -> bool:
    """Return whether all of a branch can stand outside of it."""
    return not graph.sparse_initializer and not graph.quantization_annotation


def placed(scope: Scope, node: NodeProto, graph: GraphProto, names: Names) -> PlacedBranch:
    """Return what takes the place of an If: a copy of one of its branches.

    Names derive from the If's; its outputs keep theirs.

    Args:
        scope: the scope of the If.
        node: the If.
        graph: the branch.
        names: where new names come from.
    """
    copy = GraphProto()
    copy.CopyFrom(graph)
    base = node.name or next((name for name in node.output if name), "If")
    made_by_nodes = {name for item in copy.node for name in item.output}
    given: dict[str, str] = {}
    same: list[tuple[str, str]] = []
    for value, outer in zip(copy.output, node.output, strict=False):
        if outer and value.name in made_by_nodes and value.name not in given:
            given[value.name] = outer
        elif outer:
            same.append((value.name, outer))
    for name in names_made(copy):
        if name not in given:
            given[name] = names.fresh(f"{base}_{name}")
    renaming = Renaming(given, base, names, closed=False)
    for item in copy.node:
        renaming.node(item)
    for tensor in copy.initializer:
        tensor.name = given[tensor.name]
    stated = {info.name: info for info in (*copy.value_info, *copy.output)}
    for info in stated.values():
        info.name = given.get(info.name, info.name)
    nodes = [*copy.node]
    for name, outer in same:
        nodes.append(
            NodeProto(
                op_type="Identity",
                name=names.fresh(f"{base}_{outer}"),
                input=[given.get(name, name)],
                output=[outer],
            )
        )
    initializers = [*copy.initializer]
    if isinstance(scope.container, FunctionProto):
        nodes = [*map(constant_node, initializers), *nodes]
        initializers = []
    known = {*node.output}
    infos = [info for name, info in stated.items() if name in given and info.name not in known]
    return PlacedBranch(nodes, initializers, infos)
