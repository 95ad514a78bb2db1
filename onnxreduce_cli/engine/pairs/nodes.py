"""The nodes before a site that its pair runs with it, and nodes that no pair can run."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from onnx import NodeProto, TensorProto

from onnxreduce_cli.engine.pairs.names import made_values
from onnxreduce_cli.engine.pairs.pair import UncheckableError
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.file.tensors import tensors
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.edit import Constants
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, Scope
from onnxreduce_cli.model.graph.used_values import used_values

#: The reason why nodes that draw random numbers are not checked.
RANDOM = "its results are random"

#: How many producers back steps look.
_DEPTH = 3


def refuse_external(node: NodeProto) -> None:
    """Refuse a node with a tensor attribute whose data is not in the model.

    Raises:
        UncheckableError: the node has one.
    """
    if any(tensor.data_location == TensorProto.EXTERNAL for tensor in tensors(node)):
        raise UncheckableError("its tensor is large, or external data, which is not read")


def nodes_behind(site: Site, constants: Constants) -> Sequence[NodeProto]:
    """Return the nodes that compute a site's inputs from others that its replacement reads.

    Args:
        site: the site.
        constants: the constants that steps added to its scope.

    Returns:
        the nodes in order, without the site's own; empty if the node does not depend on the inputs.
    """
    if site.behind:
        return site.behind
    node, read = site.node, set(used_values(site.result))
    wanted = read.difference(made_values(site.result), node.output, node.input, constants.arrays)
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
