"""Contraction: one node at the target opset replaces the nodes of an idiom.

The new node takes the place of the last of them. No other node reads the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import Array
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.errors import node_in_scope
from onnxreduce_cli.idioms.matching import IdiomMatch, NoMatchError, PatternMatch, confirm, matches
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.scope import Scope, subgraphs, with_inner
from onnxreduce_cli.model.graph.values import Dims, numpy_dtype
from onnxreduce_cli.model.types.facts import Facts

if TYPE_CHECKING:
    from onnxreduce_cli.idioms.idiom import Idiom

#: Below this opset operators broadcast in other ways.
_FIRST_SOURCE = 7


@dataclass(frozen=True, slots=True)
class Contraction:
    """Nodes of a scope that become one.

    Attributes:
        idiom: the idiom that the nodes match.
        found: the match.
        absorbed: the nodes that are removed, in order: all but the last.
        around: the scope of the nodes.
    """

    idiom: Idiom
    found: IdiomMatch
    absorbed: tuple[NodeProto, ...]
    around: _IndexedScope

    @property
    def last(self) -> NodeProto:
        """The last of the nodes, which the new one takes the place of."""
        match = self.found.match
        return match.nodes[match.pattern.result]

    def emit(self, context: Context) -> None:
        """Replace the last node.

        Raises:
            NoMatchError: the nodes are not equivalent to the composite operator.
        """
        op_type = self.idiom.op_type
        attributes = dict(self.idiom.condition(context, self.found))
        given = list(self.idiom.make_inputs(context, self.found))
        _check_input_types(context, op_type, given)
        if "axes" in attributes:
            axes = attributes.pop("axes")
            if "axes" in schemas.schema(op_type, context.op.opset).attributes:
                attributes["axes"] = axes or None
            elif axes:
                given.append(context.array(axes, "axes"))
        context.replace(op_type, given, keep=(), **attributes)

    def note(self, context: Context, site: Site) -> None:
        """Note on a site of the model which nodes the emitted ones compute, and what is known."""
        read = {name for item in context.emitted for name in item.node.input}
        site.behind = self.around.behind(self.found.match, read)
        site.stabler = self.idiom.stabler
        if self.idiom.by_sizes:
            site.dims = _dims(context)


def _dims(context: Context) -> dict[str, Dims]:
    """Return the dimensions of the emitted nodes' inputs; equal symbolic ones get one name."""
    from onnxreduce_cli.idioms.sizes import DimensionOrigins

    sizes = DimensionOrigins(context)
    made = {name for item in context.emitted for name in item.node.output}
    found = {}
    for name in dict.fromkeys(name for item in context.emitted for name in item.node.input):
        rank = context.rank(name) if name and name not in made else None
        keys = [sizes.of(name, axis) for axis in range(rank or 0)]
        found[name] = tuple([key if isinstance(key, int) else str(key) for key in keys])
    return {name: dims for name, dims in found.items() if dims}


def _check_input_types(context: Context, op_type: str, inputs: Sequence[str]) -> None:
    """Raise NoMatchError if an operator does not allow the type of one of its inputs."""
    allowed = schemas.allowed_types(op_type, context.op.opset)
    for index, name in enumerate(inputs):
        kind = context.kind(name)
        if name and kind not in allowed[f"in{index}"]:
            said = kind or "of a type that is not known"
            raise NoMatchError(f"{name!r} is {said}, which {op_type} may not take")


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A node that looks like the last one of an idiom, but is not.

    Attributes:
        scope: where the node is.
        node: the node.
        op_type: the operator that the idiom stands for.
        reason: why the idiom does not match.
    """

    scope: Scope
    node: NodeProto
    op_type: str
    reason: str

    def __str__(self) -> str:
        """Return the node, the operator, and why the idiom does not match, in one line."""
        where = node_in_scope(self.scope.describe(self.node), self.scope.label)
        return f"{self.node.op_type} {where} might end a {self.op_type}, but {self.reason}"


class _IndexedScope:
    """The nodes of a scope with what `matching` looks up: producers, constants, ranks, uses."""

    def __init__(
        self,
        facts: Facts,
        scope: Scope,
        reads: Counter[str],
        opset: int,
        nodes: Sequence[NodeProto],
        producers: Mapping[str, NodeProto],
    ) -> None:
        self.opset = opset
        self._facts = facts
        self._scope = scope
        self._reads = reads
        self._producers = producers
        self._positions = {id(node): index for index, node in enumerate(nodes)}

    def others(self, match: PatternMatch) -> tuple[NodeProto, ...]:
        """Return the nodes of a match without the last one, in the order of the scope."""
        nodes = {id(n): n for output, n in match.nodes.items() if output != match.pattern.result}
        return tuple(sorted(nodes.values(), key=lambda node: self._positions[id(node)]))

    def behind(self, match: PatternMatch, given: Collection[str] = ()) -> tuple[NodeProto, ...]:
        """Return these nodes and those that compute the match's other operands from its inputs.

        Args:
            match: the match.
            given: further names that count as inputs.
        """
        nodes = {id(node): node for node in self.others(match)}
        waiting = [match[name] for name in match.pattern.asides]
        given = {*given, *(match[name] for name in match.pattern.inputs)}
        while waiting:
            name = waiting.pop()
            node = None if name in given else self.producer(name)
            if node is not None and id(node) not in nodes:
                nodes[id(node)] = node
                waiting += node.input
        return tuple(sorted(nodes.values(), key=lambda node: self._positions[id(node)]))

    def producer(self, name: str) -> NodeProto | None:
        return self._producers.get(name)

    def constant(self, name: str) -> Array | None:
        found = self._facts.constant(self._scope, name)
        if found is None and name:
            known = self._facts.type(self._scope, name)
            if known is not None and known.dims == (0,):
                # A list of no axes: an input of the model that steps drop, too.
                found = np.empty(0, numpy_dtype(known.elem_type))
        return found

    def reads(self, name: str) -> int:
        return self._reads[name]

    def rank(self, name: str) -> int | None:
        found = self._facts.type(self._scope, name)
        return None if found is None else found.rank


class Contractor:
    """Finds the nodes of a model that match idioms.

    Attributes:
        near_misses: the nodes that look like an idiom's last one, but are not.
    """

    def __init__(self, facts: Facts, operators: frozenset[str], target: int) -> None:
        """Prepare to contract to some operators, at the opset `target`."""
        self.near_misses: list[NearMiss] = []
        self._facts = facts
        self._reads: dict[int, Counter[str]] = {}
        self._by_root: dict[str, list[tuple[Idiom, int]]] = {}
        from onnxreduce_cli.idioms.registry import IDIOMS

        for idiom in IDIOMS:
            if idiom.op_type in operators and idiom.exists(target):
                for index, pattern in enumerate(idiom.patterns):
                    self._by_root.setdefault(pattern.root.op_type, []).append((idiom, index))

    def note_near_miss(
        self, scope: Scope, node: NodeProto, idiom: Idiom, error: NoMatchError
    ) -> None:
        """Note that a node looked like the last one of an idiom, but is not."""
        self.near_misses.append(NearMiss(scope, node, idiom.op_type, str(error)))

    def find(self, scope: Scope) -> Iterator[tuple[NodeProto, list[Contraction]]]:
        """Yield the nodes of a scope that may end an idiom, last first, with their contractions."""
        if not self._by_root or scope.opset is None or scope.opset < _FIRST_SOURCE:
            return
        if self._facts.model.training_info:
            return  # It names values of the graph, which must stay.
        reads, nodes = self._reads_in(scope), scope.nodes
        around = _IndexedScope(self._facts, scope, reads, scope.opset, nodes, scope.producers)
        pairs = zip(reversed(scope.op_types), reversed(nodes), strict=True)
        for op_type, node in pairs:
            if op_type in self._by_root and is_default(node.domain):
                found = list(self._at(scope, node, around, self.near_misses))
                if found:
                    yield node, found

    def find_written(
        self, scope: Scope, nodes: Sequence[NodeProto], outputs: Collection[str], opset: int
    ) -> Iterator[Contraction]:
        """Yield the contractions of nodes that steps wrote, last first.

        Args:
            scope: the scope that the nodes are written into.
            nodes: the nodes, in order.
            outputs: the values that other nodes read.
            opset: the opset of the nodes.
        """
        inner = [*with_inner(nodes)]
        reads = Counter([*outputs, *(name for node in inner for name in node.input)])
        for item in inner:
            for _, graph in subgraphs(item):
                reads.update(output.name for output in graph.output)
        producers = {name: node for node in nodes for name in node.output}
        around = _IndexedScope(self._facts, scope, reads, opset, nodes, producers)
        for node in reversed(nodes):
            if node.op_type in self._by_root and is_default(node.domain):
                yield from self._at(scope, node, around, [])

    def _at(
        self, scope: Scope, node: NodeProto, around: _IndexedScope, near_misses: list[NearMiss]
    ) -> Iterator[Contraction]:
        for idiom, index in self._by_root[node.op_type]:
            for match in matches(idiom.patterns[index], node, around):
                try:
                    found = confirm(match, around, around.rank(match[match.pattern.inputs[0]]))
                except NoMatchError as error:
                    near_misses.append(NearMiss(scope, node, idiom.op_type, str(error)))
                    continue
                yield Contraction(idiom, found, around.others(match), around)

    def _reads_in(self, scope: Scope) -> Counter[str]:
        """Return how often each name is used in a scope's tree, uses as graph outputs included."""
        root = id(scope.root)
        if root not in self._reads:
            counts: Counter[str] = Counter()
            for item in self._facts.tree(scope):
                counts.update(item.outputs)
                for node in item.nodes:
                    counts.update(node.input)
            self._reads[root] = counts
        return self._reads[root]
