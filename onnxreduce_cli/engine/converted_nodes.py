"""The nodes of a model as it will be, with all that may be asked about them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from functools import partial

from onnx import NodeProto

from onnxreduce_cli.emit.node_facts import Lookups, NodeFacts
from onnxreduce_cli.engine.plan import SitePlan
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.domains import is_default
from onnxreduce_cli.model.scope import GRAPH_OPERATORS, Scope, with_inner
from onnxreduce_cli.targets.elsewhere import Alike


def converted_nodes(plan: SitePlan, op_types: Collection[str] | None = None) -> Iterable[Alike]:
    """The nodes of the default domain, of some operators or of all, that a finished plan leads to.

    They are asked about before the plan is applied.
    """
    calls = plan.facts.calls
    sites = {id(site.node): site for site in plan.sites if site.blocked is None}
    found: dict[Hashable, Alike] = {}
    for scope in plan.subject.scopes:
        ask = partial(_facts, plan, scope)
        for node, op_type, signature in zip(
            scope.nodes, scope.op_types, scope.signatures, strict=True
        ):
            site = sites.get(id(node))
            if site is not None:
                _add_result(found, site, ask, op_types)
                continue
            if op_types is not None and op_type not in op_types:
                continue
            if not is_default(node.domain) or plan.dead.covers(node):
                continue
            if not calls.functions or calls.function_of(node) is None:
                # Without a signature it is like no other.
                key = (id(scope), signature or id(node), *node.input[1:])
                found.setdefault(key, Alike(op_type, [], ask)).nodes.append(node)
    return found.values()


def _add_result(
    found: dict[Hashable, Alike],
    site: Site,
    ask: Callable[[NodeProto], NodeFacts],
    op_types: Collection[str] | None,
) -> None:
    """Add the nodes that take the place of one."""
    template = site.template
    group = None if template is None else found.get(id(template))
    if group is not None:
        group.nodes.append(site.result[0])
        return
    # Of what a template was filled with for other nodes all but the data is the same.
    if template is not None and template.keeps_data_alone:
        if op_types is None or template.op_type in op_types:
            found[id(template)] = Alike(template.op_type, [site.result[0]], ask)
        return
    # Graphs of the node itself are scopes of their own.
    own = site.node.op_type in GRAPH_OPERATORS
    for node in site.result if own else with_inner(site.result):
        if (op_types is None or node.op_type in op_types) and is_default(node.domain):
            found[id(node)] = Alike(node.op_type, [node], ask)


def _facts(plan: SitePlan, scope: Scope, node: NodeProto) -> NodeFacts:
    return NodeFacts(node, scope, plan.route.target, plan.carrier.workspace(scope), Lookups())
