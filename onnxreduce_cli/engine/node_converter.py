"""Conversion of one node, and of the nodes that replace it, across opset boundaries."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from onnx import GraphProto, NodeProto

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.blocked import Blocked, NotTaken
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import Workspace
from onnxreduce_cli.engine.conversion_request import ConversionRequest
from onnxreduce_cli.engine.emulation import may_loop
from onnxreduce_cli.engine.memo import Memo
from onnxreduce_cli.engine.simplification import simplified
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.engine.soundness import Soundness
from onnxreduce_cli.engine.stated_types import state_types, uninferred_types
from onnxreduce_cli.model.graph.domains import LEARNING, MICROSOFT, is_default, operator_name
from onnxreduce_cli.model.graph.edit import Constants
from onnxreduce_cli.model.graph.names import Names
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, Scope, by_root, subgraphs
from onnxreduce_cli.model.graph.values import kind_of
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.model.types.questions import Questions
from onnxreduce_cli.steps.dispatch import (
    BODY_OPSET,
    NextStep,
    body_writer,
    expandable_operators,
    is_of_runtime,
    next_step,
)
from onnxreduce_cli.steps.type_constraints import fit_types

if TYPE_CHECKING:
    from onnxreduce_cli.engine.avoidance import AttemptedRewrites, Avoidance
    from onnxreduce_cli.engine.contraction import Contraction, Contractor, NearMiss


@dataclass(slots=True)
class _CrossedBoundary:
    """One boundary that a node has crossed.

    Attributes:
        context: the node before the step, and the nodes that the step emitted.
        description: the step's own description, for people; may be empty.
        opset: the opset after the step, which an unchanged node is read at.
        expanded: the operators that were expanded on the way to the nodes, each with the opset that
            it was read by.
        tried: the rewrites that led to the nodes so far.
    """

    context: Context
    description: str
    opset: int
    expanded: Mapping[str, int]
    tried: AttemptedRewrites = frozenset()


class _Waiting(NamedTuple):
    """A node that is to be converted to the target.

    Attributes:
        node: the node.
        opset: the opset that it is read at.
        expanded: see `_CrossedBoundary`.
        tried: the rewrites that led to it.
    """

    node: NodeProto
    opset: int
    expanded: Mapping[str, int]
    tried: AttemptedRewrites


#: How many nodes steps may emit for one node of the model.
MOST_EMITTED_NODES = 20_000


@dataclass(slots=True)
class Drafts:
    """What plans of one model to several opsets share.

    Attributes:
        facts: the types and constants of the model's values and of emitted ones.
        sites: what became of nodes, by the identity of the node; None for a single plan.
        names: the names in use, by the identity of the outermost scope.
        workspaces: the workspaces, by the identity of the scope.
    """

    facts: Facts
    sites: dict[int, Site] | None = None
    names: dict[int, Names] = field(default_factory=dict)
    workspaces: dict[int, Workspace] = field(default_factory=dict)


class NodeConverter:
    """Converts nodes to the target opset; the model is not edited.

    Attributes:
        facts: the types and constants of the model's values and of emitted ones.
        initializers: whether graphs hold constants as initializers.
        soundness: refuses nodes that contradict the facts.
        swept: how many generated nodes were removed again, as nothing reads them.
    """

    def __init__(
        self,
        scopes: Sequence[Scope],
        drafts: Drafts,
        request: ConversionRequest,
        initializers: bool,
    ) -> None:
        """Prepare.

        Args:
            scopes: the scopes of the model; they may become fewer.
            drafts: the facts of its values, and what was written for them; more is added.
            request: the opsets and options of the conversion.
            initializers: whether graphs hold constants as initializers, which needs IR version 4.
        """
        self.facts = facts = drafts.facts
        self.soundness = Soundness(facts)
        self.swept = 0
        self._scopes = scopes
        self._drafts = drafts
        self._request = request
        self.initializers = initializers
        self._trees: dict[int, list[Scope]] = {}
        self._next_steps: dict[tuple[str, int], NextStep | None] = {}
        self._affected: dict[tuple[str, int], bool] = {}
        self._avoidance: Avoidance | None = None
        if request.runtime is not None:
            from onnxreduce_cli.engine.avoidance import Avoidance

            self._avoidance = Avoidance(request.runtime, request.target)
        self._memo = Memo(facts)
        self._contractor: Contractor | None = None
        if request.contract:
            from onnxreduce_cli.engine.contraction import Contractor

            self._contractor = Contractor(facts, request.contract, request.target)

    @property
    def target(self) -> int:
        """The opset that nodes are converted to."""
        return self._request.target

    @property
    def asked(self) -> Collection[str]:
        """The operators of which the outcome depends on the runtime."""
        return () if self._avoidance is None else self._avoidance.asked

    @property
    def near_misses(self) -> Sequence[NearMiss]:
        """The nodes that look like an operator to contract to, but are not."""
        return () if self._contractor is None else self._contractor.near_misses

    def next_step(self, op_type: str, opset: int) -> NextStep | None:
        """Return the step across the next boundary that affects an operator; None if none does."""
        key = (op_type, opset)
        if key not in self._next_steps:
            self._next_steps[key] = next_step(op_type, opset, self._request.target)
        return self._next_steps[key]

    def next_learning_step(self, node: NodeProto, opset: int) -> NextStep | None:
        """Return the next step of a node of ai.onnx.ml, of which `opset` is the version."""
        target = self._request.learning_target(opset)
        return next_step(node.op_type, opset, target, LEARNING)

    def affects(self, op_type: str, opset: int) -> bool:
        """Return whether a step or the runtime may require the model's nodes of one to change."""
        key = (op_type, opset)
        if key not in self._affected:
            may_be, avoidance = self.facts.occurring_types.may_be, self._avoidance
            step = next_step(op_type, opset, self._request.target, may_be=may_be)
            self._affected[key] = step is not None or (
                avoidance is not None and avoidance.affects_given(op_type, may_be)
            )
        return self._affected[key]

    def convert(self, site: Site, opset: int) -> None:
        """Give a site what takes its node's place: as in an earlier plan, or else by its steps.

        Args:
            site: the site.
            opset: the opset of its node.

        Raises:
            Blocked: there is no way across some boundary.
        """
        sites, key = self._drafts.sites, id(site.node)
        if sites is None or not is_default(site.node.domain):
            self._convert(site, opset)
            return
        earlier = sites.get(key)
        if earlier is not None and self._is_right(earlier):
            site.restore(earlier)
        else:
            try:
                self._convert(site, opset)
            except Blocked as error:
                site.blocked = error.kept()
            sites[key] = replace(site)
        if site.blocked is not None:
            raise site.blocked

    def _is_right(self, earlier: Site) -> bool:
        """Return whether what became of a node on the way to another opset is right for this."""
        known = earlier.lookups
        return (
            known.initializers in (None, self.initializers)
            and all((self.target >= opset) is found for opset, found in known.reached.items())
            and all(self._opset_after(*read) == opset for read, opset in known.steps.items())
        )

    def _opset_after(self, op_type: str, opset: int) -> int | None:
        """Return the opset that the next step of an operator leads to; None if none is left."""
        step = self.next_step(op_type, opset)
        return None if step is None else step.opset

    def _convert(self, site: Site, opset: int) -> None:
        """Give a site what takes its node's place: what an equal one got, or else by its steps."""
        scope, node = site.scope, site.node
        key = self._memo.key(scope, node, opset)
        if key is None:
            site.result = self.cross_boundaries(site, scope, node, opset)
            return
        kept = self._memo.find(key, scope, node)
        if kept is not None:
            self.swept += kept.swept
            self._memo.write(kept, site, self.workspace(scope))
            return
        questions, before = Questions(scope), self.swept
        with self.facts.noting(questions):
            try:
                site.result = self.cross_boundaries(site, scope, node, opset)
            except Blocked as error:
                site.blocked = error.kept()
            swept = self.swept - before
            # It asks for types and constants of the node, which equal nodes are asked for, too.
            site.is_sound = self.soundness.problem(site) is None
        if site.is_sound:
            self._memo.keep(key, site, questions, swept)
        if site.blocked is not None:
            raise site.blocked

    def cross_boundaries(
        self,
        site: Site,
        scope: Scope,
        node: NodeProto,
        opset: int,
        expanded: Mapping[str, int] = MappingProxyType({}),
        tried: AttemptedRewrites = frozenset(),
    ) -> list[NodeProto]:
        """Convert a node, and the nodes that replace it, from `opset` to the target.

        Args:
            site: the site that the node belongs to; it gets descriptions, warnings and
                initializers.
            scope: the scope of the node.
            node: the site's own node, or one that was generated for it.
            opset: the opset of the node.
            expanded: the operators that were expanded on the way to the node; see
                `_CrossedBoundary`.
            tried: the rewrites that led to the node.

        Returns:
            the nodes at the target, in order, without redundant ones.

        Raises:
            Blocked: there is no way across some boundary.
        """
        return self._crossed(site, scope, [_Waiting(node, opset, expanded, tried)], node.output[:])

    def _crossed(
        self, site: Site, scope: Scope, waiting: list[_Waiting], outputs: Collection[str]
    ) -> list[NodeProto]:
        """Convert nodes of a site to the target; `outputs` must keep their names."""
        items = self._at_all_boundaries(site, scope, waiting, outputs)
        if self._avoidance is None:
            return [item.node for item in items]
        return self._avoiding(site, scope, items, outputs)

    def _at_all_boundaries(
        self, site: Site, scope: Scope, waiting: list[_Waiting], outputs: Collection[str]
    ) -> list[_Waiting]:
        """Take nodes of a site across all boundaries, whatever the runtime."""
        done: list[_Waiting] = []
        count = 0
        waiting.reverse()
        while waiting:
            item = waiting.pop()
            node, opset, expanded, tried = item
            crossing = self._cross(site, scope, node, opset, expanded, tried)
            if crossing is None:
                done.append(item)
                continue
            context = crossing.context
            _add_notes(site, context)
            if context.unchanged:
                waiting.append(_Waiting(node, crossing.opset, crossing.expanded, tried))
                continue
            if node is site.node:
                site.say(crossing.description)
            count += len(context.emitted)
            if count > MOST_EMITTED_NODES:
                raise Blocked(f"it would become more than {MOST_EMITTED_NODES:,} nodes")
            waiting += reversed(self._emitted(site, scope, crossing))
        ways = {id(item.node): item for item in done}
        nodes = self._simplified(site, scope, [item.node for item in done], outputs)
        return [ways[id(node)] for node in nodes]

    def at_target(
        self, site: Site, scope: Scope, context: Context, tried: AttemptedRewrites
    ) -> list[NodeProto]:
        """Return at the target, whatever the runtime, what a context emitted for its node.

        Args:
            site: the site that the node belongs to.
            scope: the scope of the node.
            context: the node and the emitted nodes.
            tried: the rewrites that led to the emitted nodes.

        Raises:
            Blocked: there is no way across some boundary.
        """
        _add_notes(site, context)
        crossing = _CrossedBoundary(context, "", context.source_opset, MappingProxyType({}), tried)
        waiting = self._emitted(site, scope, crossing)
        items = self._at_all_boundaries(site, scope, waiting, context.node.output[:])
        return [item.node for item in items]

    def _emitted(self, site: Site, scope: Scope, crossing: _CrossedBoundary) -> list[_Waiting]:
        """Return the nodes that were emitted, with their subgraphs at the target."""
        context = crossing.context
        successors = _note_successors(site, context)
        for emitted, read_at in context.emitted:
            if emitted.op_type in GRAPH_OPERATORS and emitted not in successors:
                self._convert_subgraphs(site, scope, emitted, read_at, crossing)
        return [
            _Waiting(emitted, read_at, crossing.expanded, crossing.tried)
            for emitted, read_at in context.emitted
        ]

    def contracted(self, scope: Scope) -> dict[int, Site]:
        """Return the contracted sites of a scope by the identity of each of their nodes."""
        contractor = self._contractor
        if contractor is None:
            return {}
        from onnxreduce_cli.idioms.matching import NoMatchError

        found: dict[int, Site] = {}
        for node, contractions in contractor.find(scope):
            for contraction in contractions:
                own = {id(item) for item in (node, *contraction.absorbed)}
                if not own.isdisjoint(found):
                    continue
                op_type = contraction.idiom.op_type
                site = Site(scope, node, absorbed=contraction.absorbed, contraction=op_type)
                try:
                    reason = self._request.uncontracted.get(site.contraction_key)
                    if reason is not None:
                        raise NoMatchError(reason)
                    self._contract(site, contraction)
                except NoMatchError as error:
                    contractor.note_near_miss(scope, node, contraction.idiom, error)
                    continue
                found |= dict.fromkeys(own, site)
        return found

    def _contract(self, site: Site, contraction: Contraction) -> None:
        """Replace the nodes of a contraction by one node at the target.

        Raises:
            NoMatchError: they are not equivalent to it after all.
        """
        context = self.context(
            site, site.scope, site.node, site.scope.opset or 0, self._request.target
        )
        contraction.emit(context)
        self._refuse_for_runtime(site, context)
        contraction.note(context, site)
        site.result = [item.node for item in context.emitted]
        site.description = ()
        if site.stabler:
            site.say("also right where the original overflowed")

    def contract_written(self, site: Site) -> None:
        """Contract the nodes that replace a site's node, as a second conversion would."""
        contractor, nodes = self._contractor, list(site.result)
        if contractor is None or len(nodes) < 2:
            return
        from onnxreduce_cli.idioms.matching import NoMatchError

        target, outputs = self._request.target, site.node.output[:]
        more = True
        while more:
            more = False
            for contraction in contractor.find_written(site.scope, nodes, outputs, target):
                last = contraction.last
                context = self.context(site, site.scope, last, target, target)
                try:
                    contraction.emit(context)
                    self._refuse_for_runtime(site, context)
                except NoMatchError:
                    continue
                _add_notes(site, context)
                gone = {id(node) for node in contraction.absorbed}
                made = [item.node for item in context.emitted]
                nodes = [
                    new
                    for node in nodes
                    if id(node) not in gone
                    for new in (made if node is last else [node])
                ]
                more = True
                break
        site.result = nodes

    def _refuse_for_runtime(self, site: Site, context: Context) -> None:
        """Refuse a contraction to nodes that the runtime computes wrong or does not take.

        Raises:
            NoMatchError: there is such a node.
        """
        avoidance, target = self._avoidance, self._request.target
        if avoidance is None:
            return
        from onnxreduce_cli.idioms.matching import NoMatchError

        for emitted, _ in context.emitted:
            made = self.context(site, site.scope, emitted, target, target)
            problem = avoidance.problem(made)
            if problem is not None:
                raise NoMatchError(f"{avoidance.label} would not do: it {problem.what}")

    def _simplified(
        self, site: Site, scope: Scope, nodes: list[NodeProto], outputs: Collection[str]
    ) -> list[NodeProto]:
        """Return the nodes of one graph at the target, without redundant ones."""
        if len(nodes) < 2:
            return nodes
        target = self._request.target
        context = self.context(site, scope, site.node, target, target)
        kept = simplified(context, nodes, outputs)
        self.swept += len(nodes) - len(kept)
        return kept

    def _cross(
        self,
        site: Site,
        scope: Scope,
        node: NodeProto,
        opset: int,
        expanded: Mapping[str, int],
        tried: AttemptedRewrites,
    ) -> _CrossedBoundary | None:
        """Take a node's next step, and return the crossed boundary; None if no step is left."""
        if node.domain == LEARNING:
            learned = self.next_learning_step(node, opset)
            if learned is None:
                return None
            context = self.context(site, scope, node, opset, learned.opset)
            learned.take(context)
            return _CrossedBoundary(context, context.description, learned.opset, expanded, tried)
        if not is_default(node.domain):
            if not self.expands_domain(node):
                return None
            context = self.context(site, scope, node, opset, opset)
            description = body_writer(MICROSOFT)(context)
            return _CrossedBoundary(context, description, opset, expanded, tried)
        target = self._request.target
        op_type = node.op_type
        # What is expanded in several steps does not go up again between them.
        following = None if op_type in expanded else self.next_step(op_type, opset)
        site.lookups.steps[op_type, opset] = following and following.opset
        if following is not None:
            context = self.context(site, scope, node, opset, following.opset)
            following.take(context)
            if context.unchanged and node.input and not node.input[-1]:
                _drop_absent_inputs(context, following.opset)
            return _CrossedBoundary(context, context.description, following.opset, expanded, tried)
        if self.expands(op_type, opset):
            read_at = opset if op_type in expanded else target
            context = self.context(site, scope, node, read_at, BODY_OPSET)
            description = self._expand(context, expanded)
            expanded = {**expanded, op_type: read_at}
            return _CrossedBoundary(context, description, BODY_OPSET, expanded, tried | {op_type})
        if tried:
            # A rewrite may have brought dtypes that the operator does not allow at the target.
            context = self.context(site, scope, node, target, target)
            fit_types(context, node, target, target)
            if not context.unchanged:
                return _CrossedBoundary(context, "", target, expanded, tried)
        return None

    def expands(self, op_type: str, opset: int) -> bool:
        """Return whether nodes of an operator of the default domain are to be expanded."""
        expand = self._request.options.expand
        return op_type in expand or (MICROSOFT in expand and is_of_runtime(op_type, opset))

    def expands_domain(self, node: NodeProto) -> bool:
        """Return whether a node of ONNX Runtime's domain is to be written in the default domain."""
        if node.domain != MICROSOFT:
            return False
        expand, name = self._request.options.expand, operator_name(node)
        if name in expand or MICROSOFT in expand:
            return True
        runtime = self._request.runtime
        return (
            runtime is not None
            and runtime.answer(MICROSOFT, node.op_type, 1).value == "not taken"
            and name in expandable_operators()
        )

    def _expand(self, context: Context, expanded: Mapping[str, int]) -> str:
        """Replace a node that is to be expanded by others, and return a description.

        Raises:
            Blocked: it cannot be replaced, or what takes its place leads back to it.
        """
        op_type, read_at = context.node.op_type, context.source_opset
        advice = f"leave {op_type} out of --expand"
        if read_at < expanded.get(op_type, read_at + 1):
            try:
                description = body_writer(op_type)(context)
            except Blocked as error:
                reason = f"it cannot be expanded: {error.reason}"
                raise Blocked(
                    reason, advice, dtype_of=error.dtype_of, rank_of=error.rank_of
                ) from error
            if not context.unchanged:
                return description
        raise Blocked(
            f"it cannot be expanded: at opset {self._request.target} it takes {op_type} itself",
            advice,
        )

    def _avoiding(
        self, site: Site, scope: Scope, items: Sequence[_Waiting], outputs: Collection[str]
    ) -> list[NodeProto]:
        """Return nodes at the target, with those rewritten that the runtime must not get.

        Raises:
            Blocked: the runtime takes neither some node nor any rewrite of it.
        """
        nodes: list[NodeProto] = []
        refused: list[NotTaken] = []
        beside = [item.node for item in items]
        for item in items:
            try:
                nodes += self._at_target(site, scope, item, beside)
            except NotTaken as error:
                refused.append(error.kept())
        if refused:
            found = refused[0].together_with(refused[1:])
            if not is_default(site.node.domain):
                assert self._avoidance is not None
                raise self._avoidance.blocked_form(site.node, found)
            raise found
        if len(nodes) == len(items):
            return nodes
        return self._simplified(site, scope, nodes, outputs)

    def _at_target(
        self, site: Site, scope: Scope, item: _Waiting, beside: Sequence[NodeProto]
    ) -> list[NodeProto]:
        """Return a node at the target, or the nodes that replace it for the runtime.

        `beside` are the nodes of the site, with it, that may read what it computes.

        Raises:
            Blocked: the runtime takes neither the node nor any rewrite of it.
        """
        node, _, expanded, tried = item
        target, avoidance = self._request.target, self._avoidance
        assert avoidance is not None
        if not is_default(node.domain) or not avoidance.affects(node.op_type):
            return [node]
        context = self.context(site, scope, node, target, target)
        context.beside = beside if node is not site.node else ()
        hit = avoidance.hit(site, context)
        if hit is None:
            return [node]
        before = replace(site)
        failed: list[Blocked] = []
        for found in avoidance.rewrites(hit, context, tried, failed):
            site.say(found.description)
            crossing = _CrossedBoundary(found.context, "", target, expanded, tried | {found.name})
            _add_notes(site, crossing.context)
            try:
                return self._crossed(
                    site, scope, self._emitted(site, scope, crossing), node.output[:]
                )
            except Blocked as error:
                failed.append(error.kept())
                site.restore(before)
        raise avoidance.blocked(site, hit, context, failed)

    def _convert_subgraphs(
        self, site: Site, scope: Scope, emitted: NodeProto, opset: int, crossing: _CrossedBoundary
    ) -> None:
        """Convert the nodes of a generated node's subgraphs from its opset to the target, in place.

        A subgraph that is one of the model's, or was converted already, stays as it is.
        """
        for name, graph in subgraphs(emitted):
            if graph.name in crossing.context.taken_over:
                continue
            inner = Scope(graph, scope, opset, f"{emitted.name}.{name}", subgraph=True)
            for item in inner.nodes:
                self.facts.generated.declare(inner, item, opset, item.output)
            for item in inner.nodes:
                if item.op_type in GRAPH_OPERATORS:
                    self._convert_subgraphs(site, inner, item, opset, crossing)
            converted = [
                made
                for item in inner.nodes
                for made in self.cross_boundaries(
                    site, inner, item, opset, crossing.expanded, crossing.tried
                )
            ]
            outputs = [output.name for output in graph.output]
            result = self._simplified(site, inner, converted, outputs)
            if len(result) != len(inner.nodes) or any(
                new is not old for new, old in zip(result, inner.nodes, strict=True)
            ):
                copies = [NodeProto.FromString(item.SerializeToString()) for item in result]
                del graph.node[:]
                graph.node.extend(copies)
            target = crossing.context.target_opset
            stated = {output.name for output in graph.output if kind_of(output.type)}
            state_types(graph, uninferred_types(self.facts, target, inner, graph.node, stated))

    def context(
        self, site: Site, scope: Scope, node: NodeProto, source_opset: int, opset: int
    ) -> Context:
        """Return the context of one of a site's nodes, read at one opset and written at another."""
        return Context(
            node,
            scope,
            source_opset,
            opset,
            self._request.target,
            site.base,
            self.workspace(site.scope),
            site.lookups,
            takes_initializers=self.initializers,
            may_loop=may_loop(site.node.op_type),
        )

    def workspace(self, scope: Scope) -> Workspace:
        """Return the workspace of one of the model's scopes; its whole tree shares the names."""
        found = self._drafts
        workspace = found.workspaces.get(id(scope))
        if workspace is None:
            root = id(scope.root)
            if root not in found.names:
                if root not in self._trees:
                    self._trees = by_root(self._scopes)
                found.names[root] = Names(self._trees[root])
            names = found.names[root]
            workspace = Workspace(self.facts, names, Constants(), GraphProto())
            found.workspaces[id(scope)] = workspace
        return workspace

    def take_over(self, scope: Scope, other: Scope, swept: int) -> None:
        """Generate for a scope what was generated for another, of a function with an equal body.

        Args:
            scope: the scope.
            other: the other one.
            swept: how many nodes generated for that were removed again.
        """
        self.swept += swept
        workspace = self._drafts.workspaces.get(id(other))
        if workspace is not None:
            self._drafts.workspaces[id(scope)] = workspace
            self.facts.generated.take_over(scope, other, workspace.names.taken)

    def constants(self, scope: Scope) -> Constants:
        """Return the constants that steps add to a scope, which new nodes read by name."""
        workspace = self._drafts.workspaces.get(id(scope))
        return Constants() if workspace is None else workspace.constants


def _drop_absent_inputs(context: Context, opset: int) -> None:
    """Leave out the last inputs, which are empty, where the definition at `opset` has fewer."""
    given = list(context.node.input)
    while len(given) > schemas.schema(context.node.op_type, opset).max_input and not given[-1]:
        given.pop()
    if len(given) < len(context.node.input):
        context.replace(inputs=given)


def _add_notes(site: Site, context: Context) -> None:
    site.warnings += tuple([text for text in context.warnings if text not in site.warnings])
    site.initializers += tuple(context.initializers)
    site.is_of_finite |= context.is_of_finite


def _note_successors(site: Site, context: Context) -> list[NodeProto]:
    """Note which nodes take over the subgraphs of a site's own node, and return those emitted."""
    node, successors = context.node, _successors(context)
    if node.op_type in GRAPH_OPERATORS and (node is site.node or node in site.successors):
        site.successors = successors
        site.taken_over = {**site.taken_over, **context.taken_over}
    return successors


def _successors(context: Context) -> list[NodeProto]:
    """Return the emitted nodes that take over all of the node's subgraphs, not some by name."""
    node = context.node
    if context.taken_over or node.op_type not in GRAPH_OPERATORS:
        return []
    return [item for item, _ in context.emitted if _is_successor(item, node)]


def _is_successor(emitted: NodeProto, node: NodeProto) -> bool:
    if emitted.op_type == node.op_type:
        return True
    return (node.op_type, emitted.op_type, emitted.name) == ("Scan", "Loop", node.name)
