"""What is in the way of a model, asked for many opsets and runtimes: once of nodes that are alike.

Such a plan is of the first nodes of their kinds. What is in its way is what is in that of a plan of
every node: nodes that cannot be converted are planned one by one, as are those that are told by
more than their own values, and where the model contradicts itself every node is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from onnx import ModelProto, NodeProto

from onnxreduce_cli.engine.alike_nodes import AlikeNodes, alike_nodes
from onnxreduce_cli.engine.conversion import check_source
from onnxreduce_cli.engine.pause import collector_paused
from onnxreduce_cli.engine.plan import SitePlan
from onnxreduce_cli.engine.planning import completed, make_plan
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.engine.subject import Route, Subject
from onnxreduce_cli.errors import Blocker, InvalidModelError
from onnxreduce_cli.model.dead_values import REMOVABLE, dead_values, reads
from onnxreduce_cli.model.domains import default_opset
from onnxreduce_cli.model.gate import admit
from onnxreduce_cli.model.scope import Scope
from onnxreduce_cli.targets.requirement import Target


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a plan comes to.

    Attributes:
        blockers: every node that cannot be converted.
        operators: those of the nodes that take the place of others.
    """

    blockers: tuple[Blocker, ...]
    operators: frozenset[str]


class Reach:
    """A model, and what is in its way.

    Attributes:
        facts: what is known of its values.
        own: its opset; None where it imports no default domain.
    """

    def __init__(self, model: ModelProto, base_dir: str = "") -> None:
        """Take in a model; nothing is planned yet.

        Raises:
            InvalidModelError: the model contradicts itself.
            ConversionError: it is of an opset that the installed onnx does not know.
        """
        self.facts = admit(model, base_dir)
        check_source(model, self.facts.scopes)
        self.own = default_opset(model)
        self._subject = Subject(model, self.facts.scopes, self.facts)
        self._alike: dict[int, list[AlikeNodes]] = {}
        self._is_sound = True

    def to(self, opset: int) -> Outcome:
        """Plan the conversion to an opset.

        Raises:
            InvalidModelError: the model contradicts itself.
        """
        with collector_paused():
            plan = self._plan(opset, None, every=True)
            made = frozenset(name for site in plan.sites for name in site.operators)
            return Outcome(plan.blockers, made)

    def suits(self, runtime: Target, opset: int) -> bool:
        """Return whether nothing is in the way of a conversion for a runtime to an opset.

        Raises:
            InvalidModelError: the model contradicts itself.
        """
        # Where functions block, it is counted how many nodes do without them.
        with collector_paused():
            return not self._plan(opset, runtime, every=bool(self.facts.model.functions)).blocked

    def _plan(self, opset: int, runtime: Target | None, *, every: bool) -> SitePlan:
        """Plan by kinds of nodes, or each node where that would not tell.

        Args:
            opset: the opset to reach.
            runtime: where the model is to run; None for anywhere.
            every: whether each node that blocks has a site, not each kind of them.
        """
        route = Route(self.own, opset, frozenset(), "auto", runtime=runtime)
        if self._is_sound:
            try:
                return completed(_PlanOfKinds(self, self._subject, route, every=every))
            except InvalidModelError:
                # Here nodes are compared of which other plans compare one for all.
                self._is_sound = False
            except _UnlikeError:
                pass
        return make_plan(self._subject, route)

    def alike(self, scope: Scope) -> list[AlikeNodes]:
        """The nodes of the default domain of a scope, those that are alike together."""
        if id(scope) not in self._alike:
            self._alike[id(scope)] = alike_nodes(self.facts, scope)
        return self._alike[id(scope)]


def _stated(scope: Scope) -> set[str]:
    """The values in reach of a graph that nodes make, and of which the model states the types."""
    found = set() if scope.parent is None else _stated(scope.parent)
    return found | (scope.declared.keys() - scope.inputs - scope.initializers.keys())


class _UnlikeError(Exception):
    """What holds for one node may not hold for those that it stands for."""


class _PlanOfKinds(SitePlan):
    """A plan in which one site stands for those of all nodes that are like its own."""

    def __init__(self, reach: Reach, subject: Subject, route: Route, *, every: bool) -> None:
        self._reach, self._every = reach, every
        #: Those that a node stands for, by its identity.
        self._stood_for: dict[int, AlikeNodes] = {}
        super().__init__(subject, route)
        if any(id(site.node) in self._stood_for for site in self.blocked if every):
            raise _UnlikeError

    def _plan_scope(self, scope: Scope) -> None:
        if scope.opset is None or scope.function is not None:
            super()._plan_scope(scope)
            return
        before = len(self.sites)
        places: dict[int, int] = {}
        waiting = [
            nodes
            for nodes in self._reach.alike(scope)
            if self.carrier.attends(nodes.op_type, scope.opset)
        ]
        while waiting:
            nodes = waiting.pop()
            site = self._plan_first(nodes, places)
            parts = nodes.parts(site.lookups) if len(nodes.places) > 1 else [nodes]
            same, *others = [nodes] if parts is None else parts
            waiting += others
            if parts is None or (site.blocked is not None and self._every):
                for place in same.places[1:]:
                    self._plan_at(scope, place, places)
            elif site.blocked is not None:
                self._block_alike(same, places)
            elif len(same.places) > 1:
                self._stood_for[id(site.node)] = same
                self._refuse_contradictions_of(same, site)
        self.sites[before:] = sorted(self.sites[before:], key=lambda site: places[id(site.node)])

    def _block_alike(self, nodes: AlikeNodes, places: dict[int, int]) -> None:
        """Plan the first nodes of those that block as the first of them does, by their types."""
        for part in nodes.in_full():
            if part.places[0] != nodes.places[0]:
                self._plan_first(part, places)
            self._stood_for[id(part.first)] = part

    def _plan_first(self, nodes: AlikeNodes, places: dict[int, int]) -> Site:
        return self._plan_at(nodes.scope, nodes.places[0], places)

    def _plan_at(self, scope: Scope, place: int, places: dict[int, int]) -> Site:
        node = scope.nodes[place]
        places[id(node)] = place
        return self._plan_node(scope, node, scope.signatures[place])

    def _refuse_contradictions_of(self, nodes: AlikeNodes, site: Site) -> None:
        """Refuse nodes that cannot be there with what was looked up for the first of them."""
        known, scope, root = site.lookups, nodes.scope, nodes.root
        if not known.types or root.sound:
            return
        for part in root.in_full():
            first = Site(scope, part.first, lookups=known)
            self.soundness.refuse_contradictions(first, scope.signatures[part.places[0]])
        stated = _stated(scope)
        for node in root.nodes if stated else ():
            if not stated.isdisjoint(node.input[:]):
                self.soundness.refuse_false_shapes(scope, node)
        root.sound = True

    def finish(self) -> None:
        """Leave out nodes that are dead now: nothing is in their way."""
        if not any(site.node.op_type in REMOVABLE for site in self.sites):
            return
        done = [site for site in self.sites if site.blocked is None]
        replaced = [item for site in done for item in self._replaced(site)]
        self.dead = dead_values(self.subject.scopes, replaced, self.subject.bound())
        self.sites = [
            site for site in self.sites if not all(map(self.dead.covers, self._nodes_of(site)))
        ]

    def _nodes_of(self, site: Site) -> Iterable[NodeProto]:
        nodes = self._stood_for.get(id(site.node))
        return [site.node] if nodes is None else nodes.nodes

    def _replaced(self, site: Site) -> Iterator[Site]:
        """The nodes that a site stands for, each with nodes that read what its own become to read.

        Those after the first are left out where what they read is read on.
        """
        yield site
        nodes = self._stood_for.get(id(site.node))
        given = site.node.input[:]
        read = {"", *(name for made in site.result for name in reads(made))}
        if nodes is None or read.issuperset(given):
            return
        kept = [place for place, name in enumerate(given) if name in read]
        for node in islice(nodes.nodes, 1, None):
            inputs = node.input[:]
            made = NodeProto(input=[inputs[place] for place in kept])
            yield Site(site.scope, node, made=[made])
