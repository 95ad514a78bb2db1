"""The nodes before a site's own, where a step looked past it to what they read."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from onnx import NodeProto

from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.domains import is_default
from onnxreduce_cli.model.edit import Constants
from onnxreduce_cli.model.scope import GRAPH_OPERATORS, Scope
from onnxreduce_cli.verification.reads import reads
from onnxreduce_cli.verification.site_names import made

#: How many nodes back steps look.
_DEPTH = 3


def nodes_behind(site: Site, after: Sequence[NodeProto], constants: Constants) -> list[NodeProto]:
    """The nodes between the values that what replaces a node reads and the node itself.

    Args:
        site: the site.
        after: what replaces its node.
        constants: those that steps added to its scope.

    Returns:
        the nodes in order, without the site's own; empty if the values do not lead to it.
    """
    node, read = site.node, set(reads(after))
    wanted = read.difference(made(after), node.output, node.input, constants.arrays)
    wanted -= constants.references.keys()
    found = _leading(site.scope, node, wanted) if wanted else []
    # What both read would have to be made on both sides.
    return found if read.isdisjoint(made(found)) else []


def _leading(scope: Scope, node: NodeProto, wanted: AbstractSet[str]) -> list[NodeProto]:
    """The nodes in a scope that lead from some values to a node.

    Args:
        scope: the scope of the node.
        node: the node.
        wanted: the names of the values.

    Returns:
        the nodes in order, without `node` itself; empty if none of the values leads to it.
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
