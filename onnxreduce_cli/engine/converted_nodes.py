"""The nodes of a model as it will be, with all that may be asked about them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from onnx import NodeProto

from onnxreduce_cli.emit.node_facts import Lookups, NodeFacts
from onnxreduce_cli.engine.plan import SitePlan
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.domains import is_default
from onnxreduce_cli.model.scope import GRAPH_OPERATORS, Scope, subgraphs


def converted_nodes(plan: SitePlan, op_types: Collection[str] | None = None) -> Iterable[NodeFacts]:
    """The nodes of the default domain, of some operators or of all, that a finished plan leads to.

    They are asked about before the plan is applied.
    """
    changed = [site for site in plan.sites if site.blocked is None]
    gone = {*plan.dead.nodes, *[id(site.node) for site in changed]}
    for scope in plan.input.scopes:
        for node, op_type in zip(scope.nodes, scope.op_types, strict=True):
            if id(node) in gone or (op_types is not None and op_type not in op_types):
                continue
            if is_default(node.domain) and plan.facts.calls.function_of(node) is None:
                yield _asked(plan, scope, scope, node)
    for site in changed:
        yield from _results(plan, site, op_types)


def _results(plan: SitePlan, site: Site, op_types: Collection[str] | None) -> Iterator[NodeFacts]:
    """The nodes that take the place of one."""
    # Graphs of the node itself are scopes of their own.
    own = site.node.op_type in GRAPH_OPERATORS
    for scope, node in _placed(site.scope, site.result, None if own else plan.request.target):
        if (op_types is None or node.op_type in op_types) and is_default(node.domain):
            yield _asked(plan, site.scope, scope, node)


def _placed(
    scope: Scope, nodes: Iterable[NodeProto], opset: int | None
) -> Iterator[tuple[Scope, NodeProto]]:
    """Generated nodes, each with its scope; with those in their graphs if read at an opset."""
    for node in nodes:
        yield scope, node
        if opset is not None:
            for name, graph in subgraphs(node):
                inner = Scope(graph, scope, opset, f"{node.name}.{name}", subgraph=True)
                yield from _placed(inner, inner.nodes, opset)


def _asked(plan: SitePlan, around: Scope, scope: Scope, node: NodeProto) -> NodeFacts:
    """A node of a scope, within one of the model's, to be asked about."""
    workspace = plan.converter.workspace(around)
    return NodeFacts(node, scope, plan.request.target, workspace, Lookups())
