"""The nodes of a model as it will be, with all that may be asked about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import partial

from onnx import NodeProto

from onnxreduce_cli.emit.node_facts import Lookups, NodeFacts
from onnxreduce_cli.engine.plan import SitePlan
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.domains import is_default
from onnxreduce_cli.model.facts import Facts
from onnxreduce_cli.model.scope import GRAPH_OPERATORS, Scope, with_inner
from onnxreduce_cli.targets.elsewhere import Alike


def converted_nodes(plan: SitePlan, op_types: Collection[str] | None = None) -> Iterable[Alike]:
    """The nodes of the default domain, of some operators or of all, that a finished plan leads to.

    Those of functions that are alike are there once, with how many functions that are. They are
    asked about before the plan is applied.
    """
    calls = plan.facts.calls
    sites = {id(s.node): s for s in plan.sites if s.blocked is None and s.like is None}
    found: dict[Hashable, _Group] = {}
    for scope in plan.subject.distinct_scopes:
        ask = partial(_facts, plan, scope)
        #: By what tells nodes that are alike; None where they are left out.
        own: dict[Hashable, _Group | None] = {}
        rows = zip(scope.nodes, scope.op_types, scope.signatures, scope.node_inputs, strict=True)
        for place, (node, op_type, signature, inputs) in enumerate(rows):
            site = sites.get(id(node)) if sites else None
            if site is not None:
                _add_result(found, site, place, ask, op_types)
                continue
            if op_types is not None and op_type not in op_types:
                continue
            if plan.dead.covers(node):
                continue
            # Without a signature it is like no other.
            read = inputs[1:] if inputs is not None else tuple(node.input[1:])
            key = (id(node) if signature is None else signature, read)
            try:
                kept = own[key]
            except KeyError:
                taken = is_default(node.domain) and (
                    not calls.functions or calls.function_of(node) is None
                )
                kept = own[key] = _Group(op_type, ask) if taken else None
                if kept is not None:
                    found[id(kept)] = kept
            if kept is not None:
                kept.add(node, scope, place)
    facts, times = plan.facts.model, Counter(map(id, plan.subject.alike.values()))
    return [group.alike(facts, times) for group in found.values()]


class _Group:
    """Nodes that differ in names, first input and outputs alone.

    Each is at its place in a scope as given, or takes the place of what is there.
    """

    def __init__(self, op_type: str, ask: Callable[[NodeProto], NodeFacts]) -> None:
        self._op_type, self._ask = op_type, ask
        self._nodes: list[NodeProto] = []
        self._places: list[tuple[Scope, int]] = []

    def add(self, node: NodeProto, scope: Scope, place: int) -> None:
        self._nodes.append(node)
        self._places.append((scope, place))

    def alike(self, facts: Facts, times: Mapping[int, int]) -> Alike:
        """The group with how many functions there are, beside that of a scope, that are like it."""
        scope, _ = self._places[0]  # All are in one.
        types = partial(self._types, facts)
        return Alike(self._op_type, self._nodes, self._ask, types, 1 + times.get(id(scope), 0))

    def _types(self, facts: Facts) -> Sequence[Hashable]:
        """For each node what is equal for those that read and make values of the same types."""
        scopes = {id(scope): scope for scope, _ in self._places}
        known = {key: facts.groups(scope) for key, scope in scopes.items()}
        groups = [(known[id(scope)], place) for scope, place in self._places]
        return [None if group is None else group[place] for group, place in groups]


def _add_result(
    found: dict[Hashable, _Group],
    site: Site,
    place: int,
    ask: Callable[[NodeProto], NodeFacts],
    op_types: Collection[str] | None,
) -> None:
    """Add the nodes that take the place of one."""
    template = site.template
    group = None if template is None else found.get(id(template))
    if group is not None:
        group.add(site.result[0], site.scope, place)
        return
    # Of what a template was filled with for other nodes all but the data is the same.
    if template is not None and template.keeps_data_alone:
        if op_types is None or template.op_type in op_types:
            found[id(template)] = group = _Group(template.op_type, ask)
            group.add(site.result[0], site.scope, place)
        return
    # Graphs of the node itself are scopes of their own.
    own = site.node.op_type in GRAPH_OPERATORS
    for node in site.result if own else with_inner(site.result):
        if (op_types is None or node.op_type in op_types) and is_default(node.domain):
            found[id(node)] = group = _Group(node.op_type, ask)
            group.add(node, site.scope, place)


def _facts(plan: SitePlan, scope: Scope, node: NodeProto) -> NodeFacts:
    return NodeFacts(node, scope, plan.route.target, plan.carrier.workspace(scope), Lookups())
