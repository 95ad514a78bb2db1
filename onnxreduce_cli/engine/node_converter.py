"""Taking one node, and the nodes that replace it, across one opset boundary after another."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from onnx import GraphProto, NodeProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import Workspace
from onnxreduce_cli.engine.conversion_request import ConversionRequest
from onnxreduce_cli.engine.emulation import may_loop
from onnxreduce_cli.engine.simplification import simplified
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.engine.stated_types import state_types, uninferred_types
from onnxreduce_cli.model.domains import is_default
from onnxreduce_cli.model.edit import Constants
from onnxreduce_cli.model.names import Names
from onnxreduce_cli.model.scope import GRAPH_OPERATORS, Scope, by_root, subgraphs
from onnxreduce_cli.model.types.conversion_facts import ConversionFacts
from onnxreduce_cli.model.values import kind_of
from onnxreduce_cli.steps.dispatch import BODY_OPSET, NextStep, body_writer, next_step
from onnxreduce_cli.steps.type_constraints import fit_types

if TYPE_CHECKING:
    from onnxreduce_cli.engine.avoidance import Avoidance, Tried
    from onnxreduce_cli.engine.contraction import Contraction, Contractor, NearMiss


@dataclass(slots=True)
class _Crossing:
    """One step that was taken.

    Attributes:
        context: the node that it took, and the nodes that it emitted.
        description: what it says of itself, for people; may be empty.
        opset: the opset after the step, by which the node is read if it is unchanged.
        expand: the operators still to be replaced by their function bodies.
        tried: what was written in place of what led to the nodes, so far.
    """

    context: Context
    description: str
    opset: int
    expand: Collection[str]
    tried: Tried = frozenset()


#: Nodes that steps may emit for one node of the model.
MOST_NODES = 20_000


class NodeConverter:
    """Takes nodes of some scopes to the target; the model is not touched.

    Attributes:
        facts: what is known of the model's values, and of those that steps emitted.
        swept: how many generated nodes were removed again, as nothing needs them.
    """

    def __init__(
        self,
        scopes: Sequence[Scope],
        facts: ConversionFacts,
        request: ConversionRequest,
        ir_version: int,
    ) -> None:
        """Prepare.

        Args:
            scopes: those of the model; they may become fewer.
            facts: what is known of its values; what steps emit is added.
            request: what is requested: from which opset to which, with which options.
            ir_version: the IR version that the model will have.
        """
        self.facts = facts
        self.swept = 0
        self._scopes = scopes
        self._request = request
        self._ir_version = ir_version
        self._trees: dict[int, list[Scope]] = {}
        self._names: dict[int, Names] = {}
        self._workspaces: dict[int, Workspace] = {}
        self._next_steps: dict[tuple[str, int], NextStep | None] = {}
        self._avoidance: Avoidance | None = None
        if request.runtime is not None:
            from onnxreduce_cli.engine.avoidance import Avoidance

            self._avoidance = Avoidance(request.runtime, request.target)
        self._contractor: Contractor | None = None
        if request.contract:
            from onnxreduce_cli.engine.contraction import Contractor

            self._contractor = Contractor(facts.model, request.contract, request.target)

    @property
    def near_misses(self) -> Sequence[NearMiss]:
        """What looks like an operator to contract to, and is not."""
        return () if self._contractor is None else self._contractor.near

    def next_step(self, op_type: str, opset: int) -> NextStep | None:
        """Return the step across the next boundary that a node cannot pass unseen, if any."""
        key = (op_type, opset)
        if key not in self._next_steps:
            self._next_steps[key] = next_step(op_type, opset, self._request.target)
        return self._next_steps[key]

    def affects(self, op_type: str, opset: int) -> bool:
        """Return whether nodes of an operator may have to change: by a step, or for a runtime."""
        if self.next_step(op_type, opset) is not None:
            return True
        return self._avoidance is not None and self._avoidance.affects(op_type)

    def cross_boundaries(
        self,
        site: Site,
        scope: Scope,
        node: NodeProto,
        opset: int,
        expand: Collection[str],
        tried: Tried = frozenset(),
    ) -> list[NodeProto]:
        """Take a node, and the nodes that replace it, from `opset` to the target.

        Args:
            site: what is done for; descriptions, warnings and initializers are added to it.
            scope: where the node is read.
            node: the site's own node, or one that was generated for it.
            opset: the opset that it is read by.
            expand: operators to replace by their function bodies.
            tried: what was written in place of what led to the node.

        Returns:
            the nodes at the target, in order, without those that are not needed.

        Raises:
            Blocked: there is no way across some boundary.
        """
        done: list[NodeProto] = []
        count, outputs = 0, node.output[:]
        waiting = [(node, opset, expand, tried)]
        while waiting:
            node, opset, expand, tried = waiting.pop()
            crossing = self._cross(site, scope, node, opset, expand, tried)
            if crossing is None:
                done += self._taken(site, scope, node, expand, tried)
                continue
            context = crossing.context
            _note(site, context)
            if context.unchanged:
                waiting.append((node, crossing.opset, crossing.expand, tried))
                continue
            if node is site.node:
                site.say(crossing.description)
            count += len(context.emitted)
            if count > MOST_NODES:
                raise Blocked(f"it would become more than {MOST_NODES:,} nodes")
            successors = _succeed(site, context)
            for emitted, read_at in reversed(context.emitted):
                if emitted.op_type in GRAPH_OPERATORS and emitted not in successors:
                    self._convert_subgraphs(site, scope, emitted, read_at, crossing)
                waiting.append((emitted, read_at, crossing.expand, crossing.tried))
        return self._simplified(site, scope, done, outputs)

    def contracted(self, scope: Scope) -> dict[int, Site]:
        """The sites of a scope where several nodes become one, by the identity of each node."""
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
                site = Site(scope, node, absorbed=contraction.absorbed)
                try:
                    self._contract(site, contraction)
                except NoMatchError as error:
                    contractor.miss(scope, node, contraction.idiom, error)
                    continue
                found |= dict.fromkeys(own, site)
        return found

    def _contract(self, site: Site, contraction: Contraction) -> None:
        """Let one node at the target take the place of several.

        Raises:
            NoMatchError: they do not stand for it after all.
        """
        context = self._context(
            site, site.scope, site.node, site.scope.opset or 0, self._request.target
        )
        contraction.emit(context, site)
        site.result = [item.node for item in context.emitted]
        site.description = ()
        if site.stabler:
            site.say("also right where the original overflowed")

    def _simplified(
        self, site: Site, scope: Scope, nodes: list[NodeProto], outputs: Collection[str]
    ) -> list[NodeProto]:
        """Return the nodes of one graph, read at the target, without those that none needs."""
        if len(nodes) < 2:
            return nodes
        target = self._request.target
        context = self._context(site, scope, site.node, target, target)
        kept = simplified(context, nodes, outputs)
        self.swept += len(nodes) - len(kept)
        return kept

    def _cross(
        self,
        site: Site,
        scope: Scope,
        node: NodeProto,
        opset: int,
        expand: Collection[str],
        tried: Tried,
    ) -> _Crossing | None:
        """Take the next step of a node and return it; None where there is none left."""
        if not is_default(node.domain):
            return None
        target = self._request.target
        following = self.next_step(node.op_type, opset)
        if following is not None:
            context = self._context(site, scope, node, opset, following.opset)
            following.take(context)
            return _Crossing(context, context.description, following.opset, expand, tried)
        if node.op_type in expand:
            context = self._context(site, scope, node, target, BODY_OPSET)
            description = body_writer(node.op_type)(context)
            return _Crossing(context, description, BODY_OPSET, (), tried | {node.op_type})
        if tried:
            # What it stands for may have come with dtypes that its own operator lacks here.
            context = self._context(site, scope, node, target, target)
            fit_types(context, node, target, target)
            if not context.unchanged:
                return _Crossing(context, "", target, expand, tried)
        return None

    def _taken(
        self, site: Site, scope: Scope, node: NodeProto, expand: Collection[str], tried: Tried
    ) -> list[NodeProto]:
        """Return a node at the target, or what is written in its place for the runtime.

        Raises:
            Blocked: the runtime does not take it, nor anything that can be written.
        """
        target, avoidance = self._request.target, self._avoidance
        if avoidance is None or not is_default(node.domain):
            return [node]
        if not avoidance.affects(node.op_type):
            return [node]
        context = self._context(site, scope, node, target, target)
        hit = avoidance.hit(site, context)
        if hit is None:
            return [node]
        before = replace(site)
        failed: list[Blocked] = []
        for found in avoidance.rewritten(hit, context, tried, failed):
            site.say(found.description)
            crossing = _Crossing(found.context, "", target, expand, tried | {found.name})
            try:
                return self._follow(site, scope, crossing)
            except Blocked:
                site.become(before)
        raise avoidance.blocked(hit, failed)

    def _follow(self, site: Site, scope: Scope, crossing: _Crossing) -> list[NodeProto]:
        """Take all that was emitted to the target.

        Raises:
            Blocked: there is no way for some of it.
        """
        _note(site, crossing.context)
        successors = _succeed(site, crossing.context)
        made = []
        for emitted, read_at in crossing.context.emitted:
            if emitted.op_type in GRAPH_OPERATORS and emitted not in successors:
                self._convert_subgraphs(site, scope, emitted, read_at, crossing)
            made += self.cross_boundaries(
                site, scope, emitted, read_at, crossing.expand, crossing.tried
            )
        return made

    def _convert_subgraphs(
        self, site: Site, scope: Scope, emitted: NodeProto, opset: int, crossing: _Crossing
    ) -> None:
        """Take the nodes of a generated node's subgraphs from its opset to the target, at once.

        Those of a graph that is one of the model's, or was converted already, stay as they are.
        """
        target = self._request.target
        for name, graph in subgraphs(emitted):
            if graph.name in crossing.context.taken_over:
                continue
            inner = Scope(graph, scope, opset, f"{emitted.name}.{name}", subgraph=True)
            for item in inner.nodes:
                self.facts.declare(inner, item, opset, item.output)
            for item in inner.nodes:
                if item.op_type in GRAPH_OPERATORS:
                    self._convert_subgraphs(site, inner, item, opset, crossing)
            converted = [
                made
                for item in inner.nodes
                for made in self.cross_boundaries(
                    site, inner, item, opset, crossing.expand, crossing.tried
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
            stated = {output.name for output in graph.output if kind_of(output.type)}
            state_types(graph, uninferred_types(self.facts, target, inner, graph.node, stated))

    def _context(
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
            may_loop=may_loop(site.node.op_type),
        )

    def workspace(self, scope: Scope) -> Workspace:
        """Return the workspace of one of the model's scopes; its whole tree shares the names."""
        workspace = self._workspaces.get(id(scope))
        if workspace is None:
            root = id(scope.root)
            if root not in self._names:
                if root not in self._trees:
                    self._trees = by_root(self._scopes)
                self._names[root] = Names(self._trees[root])
            names = self._names[root]
            workspace = Workspace(self.facts, names, Constants(), self._ir_version, GraphProto())
            self._workspaces[id(scope)] = workspace
        return workspace

    def constants(self, scope: Scope) -> Constants:
        """The constants that steps add to a scope; what replaces its nodes reads them by name."""
        workspace = self._workspaces.get(id(scope))
        return Constants() if workspace is None else workspace.constants


def _note(site: Site, context: Context) -> None:
    site.warnings += tuple([text for text in context.warnings if text not in site.warnings])
    site.initializers += tuple(context.initializers)


def _succeed(site: Site, context: Context) -> list[NodeProto]:
    """Note what takes over the subgraphs of a site's own node, and return what does here."""
    node, successors = context.node, _successors(context)
    if node.op_type in GRAPH_OPERATORS and (node is site.node or node in site.successors):
        site.successors = successors
        site.taken_over = {**site.taken_over, **context.taken_over}
    return successors


def _successors(context: Context) -> list[NodeProto]:
    """Return the emitted nodes that take over the node's subgraphs as a whole, not by name."""
    node = context.node
    if context.taken_over or node.op_type not in GRAPH_OPERATORS:
        return []
    return [item for item, _ in context.emitted if _succeeds(item, node)]


def _succeeds(emitted: NodeProto, node: NodeProto) -> bool:
    if emitted.op_type == node.op_type:
        return True
    return (node.op_type, emitted.op_type, emitted.name) == ("Scan", "Loop", node.name)
