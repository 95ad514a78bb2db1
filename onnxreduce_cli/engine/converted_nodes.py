"""The nodes of a model as it will be, with all that may be asked about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from functools import partial

from onnx import NodeProto

from onnxreduce_cli.emit.node_facts import Lookups, NodeFacts
from onnxreduce_cli.engine.plan import SitePlan
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.domains import is_default
from onnxreduce_cli.model.node_names import UNTOLD
from onnxreduce_cli.model.scope import GRAPH_OPERATORS, Scope, subgraphs
from onnxreduce_cli.targets.elsewhere import Alike


def converted_nodes(plan: SitePlan, op_types: Collection[str] | None = None) -> Iterable[Alike]:
    """The nodes of the default domain, of some operators or of all, that a finished plan leads to.

    Those of functions that are alike are there once, with how many functions that are. They are
    asked about before the plan is applied.
    """
    changed = [site for site in plan.sites if site.blocked is None and site.like is None]
    gone = {*plan.dead.nodes, *[id(site.node) for site in changed]}
    times = Counter(map(id, plan.input.alike.values()))
    for scope in plan.input.distinct_scopes:
        for group in _kept(plan, scope, gone, op_types):
            yield group._replace(times=1 + times[id(scope)])
    templates: dict[int, list[Site]] = {}
    for site in changed:
        template = site.template
        # Of what a template is filled with for other nodes all but the data is the same.
        if template is None or not template.keeps_data_alone:
            for group in _results(plan, site, op_types):
                yield group._replace(times=1 + times[id(site.scope)])
        elif op_types is None or template.op_type in op_types:
            try:
                templates[id(template)].append(site)
            except KeyError:
                templates[id(template)] = [site]
    for sites in templates.values():
        yield _of_template(plan, sites)._replace(times=1 + times[id(sites[0].scope)])


def _kept(
    plan: SitePlan, scope: Scope, gone: Collection[int], op_types: Collection[str] | None
) -> Iterator[Alike]:
    """The nodes of a scope that stay as they are, by what differs in more than the first input."""
    nodes, calls = scope.nodes, plan.facts.calls
    for group in scope.groups:
        op_type, first = scope.op_types[group[0]], nodes[group[0]]
        if op_types is not None and op_type not in op_types:
            continue
        if not is_default(first.domain):
            continue
        if calls.functions and calls.function_at(scope, group[0]) is not None:
            continue
        left = [place for place in group if id(nodes[place]) not in gone] if gone else group
        for places in _by_operands(scope, left):
            node_of = partial(_node_at, scope, places)
            types = partial(_types, plan, scope, places)
            yield Alike(op_type, len(places), partial(_facts, plan, scope, node_of), types)


def _by_operands(scope: Scope, places: Sequence[int]) -> Iterable[list[int]]:
    """Tell nodes at some places apart by what they read after the first input."""
    _, *further = scope.node_names.input_numbers
    read = [map(column.__getitem__, places) for column in further]
    found: dict[Hashable, list[int]] = {}
    for place, numbers in zip(places, zip(*read, strict=True), strict=True):
        key = tuple(scope.nodes[place].input[1:]) if UNTOLD in numbers else numbers
        try:
            found[key].append(place)
        except KeyError:
            found[key] = [place]
    return found.values()


def _results(plan: SitePlan, site: Site, op_types: Collection[str] | None) -> Iterator[Alike]:
    """The nodes that take the place of one, each by itself."""
    opset, workspace = plan.request.target, plan.converter.workspace(site.scope)
    # Graphs of the node itself are scopes of their own.
    own = site.node.op_type in GRAPH_OPERATORS
    for scope, node in _placed(site.scope, site.result, None if own else opset):
        if (op_types is None or node.op_type in op_types) and is_default(node.domain):
            facts = NodeFacts(node, scope, opset, workspace, Lookups())
            yield Alike(node.op_type, 1, [facts].__getitem__)


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


def _of_template(plan: SitePlan, sites: Sequence[Site]) -> Alike:
    """The nodes that one template is filled for."""
    scope, template = sites[0].scope, sites[0].template
    assert template is not None
    ask = partial(_facts, plan, scope, partial(_result_of, sites))
    types = partial(_types, plan, scope, [site.place for site in sites])
    return Alike(template.op_type, len(sites), ask, types)


def _types(plan: SitePlan, scope: Scope, places: Sequence[int]) -> Sequence[Hashable] | None:
    """For each of some nodes what is equal for those that read and make values of the same types.

    Nodes of a template do what those did that it is filled for.
    """
    groups = plan.facts.model.groups(scope)
    return None if groups is None else [groups[place] for place in places]


def _node_at(scope: Scope, places: Sequence[int], index: int) -> NodeProto:
    return scope.nodes[places[index]]


def _result_of(sites: Sequence[Site], index: int) -> NodeProto:
    return sites[index].result[0]


def _facts(
    plan: SitePlan, scope: Scope, node_of: Callable[[int], NodeProto], index: int
) -> NodeFacts:
    node, workspace = node_of(index), plan.converter.workspace(scope)
    return NodeFacts(node, scope, plan.request.target, workspace, Lookups())
