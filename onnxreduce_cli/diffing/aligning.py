"""The same names for the same values: the second model's are renamed to the first one's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, MutableSequence
from dataclasses import dataclass, field

from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, ValueInfoProto

from onnxreduce_cli.diffing.content import content_key
from onnxreduce_cli.model.graph.names import without_absent_last
from onnxreduce_cli.model.graph.scope import Scope, called_key, subgraphs, with_inner

#: From a node to what pairs it with another; None for nothing.
_Key = Callable[[NodeProto], Hashable]

#: Names of values in the second model, each with that in the first.
Names = dict[str, str]


@dataclass(slots=True)
class Pair:
    """A scope of the first model and the one that it is compared with in the second.

    Attributes:
        a: the scope of the first model.
        b: that of the second, its values renamed.
        nodes: by the identity of a node of `a` the node of `b` that is the same, maybe changed.
        renamed: what has another name in `b`: before, and after.
    """

    a: Scope
    b: Scope
    nodes: dict[int, NodeProto] = field(default_factory=dict)
    renamed: list[tuple[str, str]] = field(default_factory=list)


def align(a: Scope, b: Scope) -> Iterator[Pair]:
    """Pair the nodes of two scopes and of the graphs within them, and rename `b`'s values.

    Nodes are paired by their names, or those of what they make, where they are of one operator;
    then by structure: of one operator, with equal attributes, that read the same.

    Yields:
        each pair of scopes, the outer one first.
    """
    waiting: list[tuple[Scope, Scope, Names]] = [(a, b, {})]
    while waiting:
        a, b, outer = waiting.pop()
        pair = Pair(a, b)
        names = _Alignment(pair, outer).names
        inner = list(_inner(pair))
        waiting += [(first, second, names) for first, second in reversed(inner)]
        _rename(b, names, {id(second.container) for _, second in inner})
        yield pair


def _inner(pair: Pair) -> Iterator[tuple[Scope, Scope]]:
    """Return the scopes of graphs within paired nodes, those of one attribute together."""
    for node in pair.a.nodes:
        other = pair.nodes.get(id(node))
        graphs = dict(subgraphs(other)) if other is not None else {}
        for name, graph in subgraphs(node):
            if name in graphs:
                yield _within(pair.a, node, name, graph), _within(pair.b, node, name, graphs[name])


def _within(scope: Scope, node: NodeProto, name: str, graph: GraphProto) -> Scope:
    where = f"{node.name or node.op_type}.{name}"
    label = f"{scope.label} > {where}" if scope.label else where
    return Scope(graph, scope, scope.opset, label, True, node)


class _Alignment:
    """Finds the pairs of nodes of one pair of scopes, and the names of what they make."""

    def __init__(self, pair: Pair, outer: Names) -> None:
        self._pair = pair
        #: Of values of `b` that have another name in `a`, and of those that make room for them.
        self.names = dict(outer)
        self._taken: set[int] = set()
        a, b = pair.a, pair.b
        self._in_a = {*a.inputs, *a.initializers, *a.producers}
        self._in_b = {*b.inputs, *b.initializers, *b.producers}
        for name in self._in_b:
            # It hides one of an outer scope.
            self.names.pop(name, None)
        #: Whoever runs a model knows what it gives by name; other graphs give by position.
        self._fixed = a.outputs & b.outputs if a.parent is None and a.function is None else set()
        self._by_position()
        self._initializers()
        self._by_key(_named)
        self._by_key(_making)
        self._by_structure()
        self._make_room()

    def _by_position(self) -> None:
        """Pair what functions and inner graphs take and give, of which the position counts."""
        a, b = self._pair.a, self._pair.b
        if a.parent is None and a.function is None:
            return
        if len(a.inputs) == len(b.inputs):
            self.names.update(zip(names_of(b, "input"), names_of(a, "input"), strict=True))
        for mine, its in zip(names_of(a, "output"), names_of(b, "output"), strict=False):
            if mine not in self._in_b and its not in self._in_a and its in b.producers:
                self.names[its] = mine

    def _initializers(self) -> None:
        a, b = self._pair.a.initializers, self._pair.b.initializers
        free: dict[bytes, list[str]] = defaultdict(list)
        for name, tensor in reversed(a.items()):
            if name not in self._in_b:
                free[content_key(tensor)].append(name)
        for name, tensor in b.items() if free else ():
            if name not in self._in_a and (found := free[content_key(tensor)]):
                self.names[name] = found.pop()
                self._pair.renamed.append((self.names[name], name))

    def _by_key(self, key: _Key) -> None:
        """Pair the nodes that are alone in having a key, in both scopes."""
        first, second = self._alone(self._pair.a, key), self._alone(self._pair.b, key)
        for found, node in first.items():
            other = second.get(found)
            if other is not None and id(other) not in self._taken:
                self._take(node, other)
                for mine, its in zip(node.output, other.output, strict=False):
                    # Else it is another node that makes what this one made.
                    if mine and its and mine not in self._in_b and its not in self._in_a:
                        self.names[its] = mine

    def _alone(self, scope: Scope, key: _Key) -> Mapping[Hashable, NodeProto]:
        found: dict[Hashable, NodeProto] = {}
        twice = set()
        for node in scope.nodes:
            value = key(node)
            if value is None or id(node) in self._pair.nodes:
                continue
            if value in found:
                twice.add(value)
            found[value] = node
        return {value: node for value, node in found.items() if value not in twice}

    def _by_structure(self) -> None:
        free: dict[Hashable, list[NodeProto]] = defaultdict(list)
        for node in reversed(self._pair.a.nodes):
            if id(node) not in self._pair.nodes:
                free[_structure(node, {})].append(node)
        for other in self._pair.b.nodes if free else ():
            if id(other) in self._taken:
                continue
            found = free.get(_structure(other, self.names))
            pairs = list(zip(found[-1].output, other.output, strict=True)) if found else []
            if found and not any(mine != its and self._fixed & {mine, its} for mine, its in pairs):
                self._take(found.pop(), other)
                self.names.update({its: mine for mine, its in pairs if its})

    def _take(self, node: NodeProto, other: NodeProto) -> None:
        self._pair.nodes[id(node)] = other
        self._taken.add(id(other))

    def _make_room(self) -> None:
        """Rename values of `b` whose names others get."""
        given = {self.names[name] for name in self._in_b if name in self.names}
        for name in sorted(self._in_b & given):
            if name not in self.names:
                fresh = f"{name}'"
                while fresh in self._in_a or fresh in self._in_b or fresh in given:
                    fresh += "'"
                self.names[name] = fresh
        for name in [name for name, mine in self.names.items() if name == mine]:
            del self.names[name]


def _named(node: NodeProto) -> Hashable:
    return (node.name, node.op_type, node.domain) if node.name else None


def _making(node: NodeProto) -> Hashable:
    name = next((name for name in node.output if name), "")
    return (name, node.op_type, node.domain) if name else None


def names_of(scope: Scope, field: str) -> list[str]:
    """The names of what a scope takes (``input``) or gives (``output``), in order."""
    values = getattr(scope.container, field)
    return [value if isinstance(value, str) else value.name for value in values]


def attributes_of(node: NodeProto) -> Hashable:
    """What is equal for nodes with equal attributes, in whichever order; of graphs the names."""
    return tuple(
        sorted(
            (item.name, b"" if item.HasField("g") or item.graphs else item.SerializeToString())
            for item in node.attribute
        )
    )


def inputs_of(node: NodeProto, names: Mapping[str, str]) -> tuple[str, ...]:
    """The values that a node reads, renamed, without absent ones at the end."""
    return tuple(without_absent_last(names.get(name, name) for name in node.input))


def _structure(node: NodeProto, names: Mapping[str, str]) -> Hashable:
    operator = (*called_key(node), len(node.output))
    present = tuple(bool(name) for name in node.output)
    return (*operator, present, attributes_of(node), inputs_of(node, names))


def _rename(scope: Scope, names: Mapping[str, str], apart: set[int]) -> None:
    """Rename a scope's values, in place.

    Args:
        scope: the scope, of which nothing is known by name from here on.
        names: the new names.
        apart: the identities of graphs within nodes that are renamed by themselves.
    """
    if not names:
        return
    container = scope.container
    for node in container.node:
        _rename_all(node.output, names)
        own = [node, *_inner_nodes(node, apart)]
        for item in own:
            _rename_all(item.input, names)
    if isinstance(container, FunctionProto):
        _rename_all(container.input, names)
        _rename_all(container.output, names)
    else:
        named: list[ValueInfoProto | TensorProto] = [*container.input, *container.output]
        for named_item in (*named, *container.initializer):
            named_item.name = names.get(named_item.name, named_item.name)
    for info in container.value_info:
        info.name = names.get(info.name, info.name)
    for known in ("producers", "initializers", "inputs", "outputs", "declared"):
        scope.__dict__.pop(known, None)


def _inner_nodes(node: NodeProto, apart: set[int]) -> Iterator[NodeProto]:
    for _, graph in subgraphs(node):
        if id(graph) not in apart:
            yield from with_inner(graph.node)


def _rename_all(field: MutableSequence[str], names: Mapping[str, str]) -> None:
    for index, name in enumerate(field):
        if name in names:
            field[index] = names[name]
