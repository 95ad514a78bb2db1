"""The nodes of a pair: the site's own, without references to attributes, and those before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from onnx import AttributeProto, NodeProto, TensorProto, helper

from onnxreduce_cli.engine.pairs.names import made_values
from onnxreduce_cli.engine.pairs.pair import UncheckableError
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.file.tensors import tensors
from onnxreduce_cli.model.graph.attributes import bind
from onnxreduce_cli.model.graph.calls import UNKNOWN, Calls
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.edit import Constants
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, Scope, with_inner
from onnxreduce_cli.model.graph.used_values import used_values

#: The reason why nodes that draw random numbers are not checked.
RANDOM = "its results are random"

#: How many producers back steps look.
_DEPTH = 3


def bound_node(calls: Calls, scope: Scope, node: NodeProto) -> NodeProto:
    """Return a copy of a node without doc strings, with its attribute references resolved.

    Args:
        calls: the calls of the model's functions.
        scope: the scope of the node.
        node: the node.

    Raises:
        UncheckableError: an attribute depends on the function's callers.
    """
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.doc_string = ""
    del copy.metadata_props[:]
    values = {}
    for attribute in _references(copy):
        value = calls.resolve_attribute(scope, attribute)
        if value is UNKNOWN:
            raise UncheckableError(
                f"its attribute {attribute.name!r} is set by the function's callers"
            )
        if value is not None:
            values[attribute.ref_attr_name] = helper.make_attribute(
                attribute.name, value, attr_type=attribute.type or None
            )
    if values or any(True for _ in _references(copy)):
        bind(copy, values)
    return copy


def _references(node: NodeProto) -> Iterator[AttributeProto]:
    """Yield the attributes of a node, subgraphs included, that refer to a function's attribute."""
    for item in with_inner([node]):
        for attribute in item.attribute:
            if attribute.ref_attr_name:
                yield attribute


def refuse_external(node: NodeProto) -> None:
    """Refuse a node with a tensor attribute whose data is not in the model.

    Raises:
        UncheckableError: the node has one.
    """
    if any(tensor.data_location == TensorProto.EXTERNAL for tensor in tensors(node)):
        raise UncheckableError("its tensor is large, or external data, which is not read")


def nodes_behind(site: Site, after: Sequence[NodeProto], constants: Constants) -> list[NodeProto]:
    """Return the nodes between the inputs of a node's replacement and the node itself.

    Args:
        site: the site.
        after: the nodes that replace its node.
        constants: the constants that steps added to its scope.

    Returns:
        the nodes in order, without the site's own; empty if the node does not depend on the inputs.
    """
    node, read = site.node, set(used_values(after))
    wanted = read.difference(made_values(after), node.output, node.input, constants.arrays)
    wanted -= constants.references.keys()
    found = _nodes_between(site.scope, node, wanted) if wanted else []
    # A value that both models read would have to be computed in both.
    return found if read.isdisjoint(made_values(found)) else []


def _nodes_between(scope: Scope, node: NodeProto, wanted: AbstractSet[str]) -> list[NodeProto]:
    """Return the nodes of a scope between some values and a node.

    Args:
        scope: the scope of the node.
        node: the node.
        wanted: the names of the values.

    Returns:
        the nodes in order, without `node` itself; empty if it depends on none of the values.
    """
    found: dict[int, NodeProto] = {}

    def leads(item: NodeProto, depth: int) -> bool:
        reached = item is not node and not wanted.isdisjoint(item.input)
        for name in item.input if depth else ():
            producer = scope.producers.get(name)
            if producer is not None and is_plain(producer) and leads(producer, depth - 1):
                found[id(producer)] = producer
                reached = True
        return reached

    def is_plain(item: NodeProto) -> bool:
        return is_default(item.domain) and item.op_type not in GRAPH_OPERATORS

    leads(node, _DEPTH)
    return list(found.values())
