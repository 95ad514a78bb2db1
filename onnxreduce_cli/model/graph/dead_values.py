"""Dead values, which nothing reads any more once nodes are replaced, and their nodes."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Protocol

from onnx import NodeProto

from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.folding import OPERATORS
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, Scope, subgraphs


class ReplacedNode(Protocol):
    """A node that other nodes replace."""

    @property
    def scope(self) -> Scope:
        """The scope of the node."""

    @property
    def node(self) -> NodeProto:
        """The node."""

    @property
    def reads(self) -> Sequence[str]:
        """The values that its replacement reads, not counting graphs within."""

    @property
    def with_graphs(self) -> Sequence[NodeProto]:
        """The nodes of its replacement that have graphs."""

    @property
    def dropped(self) -> Sequence[str]:
        """The values that the node reads and its replacement does not."""


#: A value: the identity of the scope that defines it, and its name.
Value = tuple[int, str]

#: Operators whose nodes are removed when nothing reads their outputs.
REMOVABLE = OPERATORS | {"Constant", "QuantizeLinear", "Shape", "Size"}
REMOVABLE |= {"SequenceConstruct", "SplitToSequence"}


class DeadValues:
    """Initializers and nodes whose values only replaced nodes read, and no graph gives."""

    def __init__(self) -> None:
        self._nodes: dict[int, NodeProto] = {}
        self._by_scope: dict[int, tuple[Scope, set[int], set[str]]] = {}
        self._names: list[str] = []

    @property
    def names(self) -> tuple[str, ...]:
        """The values that are removed, in an order that is the same in every run."""
        return tuple(self._names)

    def covers(self, node: NodeProto) -> bool:
        """Return whether the node is dead, and is removed."""
        return id(node) in self._nodes

    @property
    def nodes(self) -> Collection[int]:
        """The identities of the dead nodes."""
        return self._nodes.keys()

    @property
    def scopes(self) -> list[Scope]:
        """The scopes that have dead nodes or values."""
        return [scope for scope, _, _ in self._by_scope.values()]

    def of(self, scope: Scope) -> tuple[set[int], set[str]]:
        """Return the identities of a scope's dead nodes, and the names of its dead values."""
        _, nodes, names = self._by_scope.get(id(scope), (scope, set(), set()))
        return nodes, names

    def add(self, scope: Scope, name: str, node: NodeProto | None) -> None:
        """Mark an initializer, or the node that computes a value, as dead."""
        _, nodes, names = self._by_scope.setdefault(id(scope), (scope, set(), set()))
        names.add(name)
        if node is not None:
            nodes.add(id(node))
            names.update(node.output)
            self._nodes[id(node)] = node
        self._names.append(name)


def dead_values(
    scopes: Sequence[Scope],
    replaced: Sequence[ReplacedNode],
    bound: Iterable[str] = (),
    absorbed: Collection[int] = (),
) -> DeadValues:
    """Find the values and nodes that are dead once nodes are replaced.

    Args:
        scopes: every scope of the model, the main graph's first.
        replaced: the replaced nodes.
        bound: names that the model refers to outside its graphs.
        absorbed: the identities of nodes that are removed together with the replaced ones.
    """
    found = DeadValues()
    by_id = {id(scope): scope for scope in scopes}
    candidates = deque(dict.fromkeys(_dropped_values(replaced)))
    if not candidates:
        return found
    readers = _ReadCounts(by_id, replaced, absorbed)
    readers.count(readers.behind(candidates), bound)
    while candidates:
        value = candidates.popleft()
        scope, name = by_id[value[0]], value[1]
        if name in scope.inputs:
            continue
        node = scope.producer(name)
        values = [(id(scope), output) for output in node.output] if node is not None else [value]
        if any(readers.any(item) for item in values) or (
            node is not None and (found.covers(node) or not readers.may_go(node))
        ):
            continue
        found.add(scope, name, node)
        if node is not None:
            candidates += readers.forget(scope, node)
    return found


def without_unread(nodes: Sequence[NodeProto], outputs: Iterable[str]) -> list[NodeProto]:
    """Return, in order, the nodes that the outputs depend on."""
    needed = {*outputs} - {""}
    kept = []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.output[:]):
            kept.append(node)
            needed.update(node.input[:])
            if node.op_type in GRAPH_OPERATORS:
                needed.update(names_read_within(node))
            needed.discard("")  # An absent input is not an absent output.
    return kept[::-1]


def _dropped_values(replaced: Iterable[ReplacedNode]) -> Iterator[Value]:
    """Yield the values that replaced nodes read and their replacements do not, some repeatedly."""
    for item in replaced:
        for name in item.dropped:
            owner = item.scope.resolve(name)
            if owner is not None:
                yield id(owner), name


def dropped(node: NodeProto, reads: Iterable[str], with_graphs: Iterable[NodeProto]) -> list[str]:
    """Return the values that a node reads and its replacement does not.

    Args:
        node: the node.
        reads: the values that its replacement reads, not counting graphs within.
        with_graphs: the nodes of its replacement that have graphs.
    """
    still = {*reads, *(name for new in with_graphs for name in names_read_within(new))}
    return [name for name in node.input[:] if name and name not in still]


def has_graphs(node: NodeProto) -> bool:
    """Return whether a node may hold graphs, as any node of another domain may."""
    return node.op_type in GRAPH_OPERATORS or not is_default(node.domain)


def names_read(node: NodeProto) -> Iterator[str]:
    """Return the names of the values that a node reads, its subgraphs included."""
    yield from node.input
    yield from names_read_within(node)


def names_read_within(node: NodeProto) -> Iterator[str]:
    """Return the names that a node's subgraphs read, their outputs included."""
    waiting = [graph for _, graph in subgraphs(node)]
    while waiting:
        graph = waiting.pop()
        for inner in graph.node:
            yield from inner.input
            waiting += [item for _, item in subgraphs(inner)]
        yield from (output.name for output in graph.output)


class _ReadCounts:
    """Counts the reads that are left of each value that may be removed."""

    def __init__(
        self,
        scopes: Mapping[int, Scope],
        replaced: Sequence[ReplacedNode],
        absorbed: Collection[int],
    ) -> None:
        self._scopes = scopes
        #: Replaced nodes by their identities.
        self._replacements = {id(item.node): item for item in replaced}
        self._absorbed = absorbed
        self._counts: Counter[Value] = Counter()
        self._resolved: defaultdict[int, dict[str, int]] = defaultdict(dict)

    def may_go(self, node: NodeProto) -> bool:
        """Return whether a node is removed when nothing reads its outputs."""
        return id(node) in self._absorbed or (is_default(node.domain) and node.op_type in REMOVABLE)

    def behind(self, candidates: Iterable[Value]) -> set[str]:
        """Return the names of all values that may be removed as a consequence of the candidates."""
        found: set[Value] = set()
        waiting = list(candidates)
        while waiting:
            value = waiting.pop()
            if value in found:
                continue
            found.add(value)
            scope = self._scopes[value[0]]
            node = scope.producer(value[1])
            if node is None or not self.may_go(node):
                continue
            found.update((value[0], name) for name in node.output)
            for name in self._reads_of(node):
                owner = scope.resolve(name) if name else None
                if owner is not None:
                    waiting.append((id(owner), name))
        return {name for _, name in found}

    def count(self, names: Collection[str], bound: Iterable[str]) -> None:
        """Count the reads of values with given names.

        Args:
            names: the names; reads of other values are not counted.
            bound: names that the model refers to outside its graphs.
        """
        for index, scope in enumerate(self._scopes.values()):
            read = chain(
                bound if index == 0 else (),
                scope.outputs,
                _parameters(scope),
                chain.from_iterable(map(self._reads_of, scope.nodes)),
            )
            self._count(scope, Counter(filter(names.__contains__, read)))

    def _reads_of(self, node: NodeProto) -> list[str]:
        """Return the reads of a node or of its replacement, without the model's subgraphs."""
        replaced = self._replacements.get(id(node))
        if replaced is None:
            return node.input[:]
        found = [*replaced.reads]
        if replaced.with_graphs:
            own = set(names_read_within(node))
            for new in replaced.with_graphs:
                found += [name for name in names_read_within(new) if name not in own]
        return found

    def _count(self, scope: Scope, counts: Mapping[str, int]) -> None:
        """Add the number of reads of each name in a scope."""
        resolved = self._resolved[id(scope)]
        for name, count in counts.items():
            owner = scope.resolve(name) if name else None
            if owner is not None:
                resolved[name] = id(owner)
                self._counts[id(owner), name] += count

    def any(self, value: Value) -> bool:
        """Return whether the value has any read left."""
        return self._counts[value] > 0

    def forget(self, scope: Scope, node: NodeProto) -> list[Value]:
        """Subtract the reads of a node or of its replacement; return the values that it read."""
        values = []
        for name in self._reads_of(node):
            owner_id = self._resolved[id(scope)].get(name)
            if owner_id is not None:
                self._counts[owner_id, name] -= 1
                values.append((owner_id, name))
        return values


def _parameters(scope: Scope) -> Iterator[str]:
    """Yield the scales and zero points that quantization annotations name."""
    for annotation in getattr(scope.container, "quantization_annotation", ()):
        for entry in annotation.quant_parameter_tensor_names:
            yield entry.value
