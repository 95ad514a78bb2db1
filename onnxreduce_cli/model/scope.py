"""Scopes: a graph, a subgraph with its outer scopes, or a function body."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from functools import cached_property
from itertools import chain

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto

from onnxreduce_cli.model.alike_functions import body_key
from onnxreduce_cli.model.domains import DEFAULT_DOMAINS, default_opset, is_default
from onnxreduce_cli.model.node_names import NodeNames
from onnxreduce_cli.model.order import in_order, misplaced
from onnxreduce_cli.model.signatures import Walked, domain_and_overload, walked
from onnxreduce_cli.model.values import ValueType, from_proto, tensor_type
from onnxreduce_cli.text import shortened

#: Operators of the default domain that carry graphs; of other domains any may.
GRAPH_OPERATORS = frozenset({"If", "Loop", "Scan", "SequenceMap"})


#: Operators whose nodes are large, and hardly ever alike.
_UNLIKE = GRAPH_OPERATORS | {"Constant"}

#: Of so many nodes those that are alike are found sooner than each is asked.
_MANY = 1000

#: A function's domain, name and overload.
FunctionKey = tuple[str, str, str]

#: Longer labels are cut: a scope's has those of all around it.
LABEL = 1000


class Scope:
    """A graph, a subgraph with its outer scopes, or a function body.

    Attributes:
        container: the `GraphProto` or `FunctionProto` whose nodes these are.
        parent: the scope around it; None for the main graph and for a function.
        opset: the default domain's opset by which its nodes are read; None if not imported.
        label: where it is, for messages; empty for the main graph.
        subgraph: whether it is a graph within another.
        owner: the node whose attribute holds it; None where no node does.
        function: the function that it belongs to, if any.
        like: the scope of a function before this one that differs in its name alone, if any.
        function_key: what nodes name the function by whose scope it is.
    """

    def __init__(
        self,
        container: GraphProto | FunctionProto,
        parent: Scope | None,
        opset: int | None,
        label: str,
        subgraph: bool = False,
        owner: NodeProto | None = None,
        like: Scope | None = None,
    ) -> None:
        self.container = container
        self.parent = parent
        self.opset = opset
        self.label = label
        self.subgraph = subgraph
        self.owner = owner
        self.like = like
        if like is not None:
            self.op_types = like.op_types
        # None for its own sake: an object that refers to itself is not freed at once.
        self._root = None if parent is None else parent.root
        self.function: FunctionProto | None = None
        if parent is not None:
            self.function = parent.function
        elif isinstance(container, FunctionProto):
            self.function = container

    @cached_property
    def function_key(self) -> FunctionKey | None:
        """What nodes name the function by whose scope this is; None for the scopes of graphs."""
        function = self.container
        return function_key(function) if isinstance(function, FunctionProto) else None

    @property
    def root(self) -> Scope:
        """The outermost scope: the main graph's or the function's."""
        return self._root or self

    @cached_property
    def nodes(self) -> list[NodeProto]:
        """The nodes before any change, in topological order."""
        if self.like is not None:
            return list(self.container.node)
        return self._given if self.misplaced is None else in_order(self._given)

    @cached_property
    def misplaced(self) -> NodeProto | None:
        """The first node of a graph that reads an output of a later one, if there is one."""
        if isinstance(self.container, FunctionProto):
            return None
        return misplaced(self._given, self.outputs)

    @cached_property
    def _given(self) -> list[NodeProto]:
        """The nodes in the order in which the container has them."""
        return list(self.container.node)

    @cached_property
    def op_types(self) -> list[str]:
        """The operator of each of `nodes`."""
        if not self._is_walked_first:
            return [node.op_type for node in self.nodes]
        told = self._walked.op_types
        return [
            node.op_type if name is None else name
            for node, name in zip(self.nodes, told, strict=True)
        ]

    @property
    def _is_walked_first(self) -> bool:
        """Whether operators follow from the walk, and not which nodes are walked over from them.

        Then large nodes are serialised, too: those of graphs within once for each around them.
        """
        return self.parent is None and len(self.nodes) >= _MANY

    @cached_property
    def signatures(self) -> list[Hashable]:
        """For each of `nodes` its signature, or None; see `model.signatures`."""
        return self._walked.signatures

    @property
    def node_names(self) -> NodeNames:
        """What `nodes` read and make, by numbers."""
        return self._walked.names

    @cached_property
    def groups(self) -> list[list[int]]:
        """The places in `nodes` of those of equal signatures; a node without one is alone."""
        if self.like is not None:
            return self.like.groups
        found: dict[Hashable, list[int]] = {}
        for place, signature in enumerate(map(id, self.signatures)):
            try:
                found[signature].append(place)
            except KeyError:
                found[signature] = [place]
        unlike = found.pop(id(None), [])
        if not unlike:
            return [*found.values()]
        return sorted([*found.values(), *([place] for place in unlike)])

    @cached_property
    def called_keys(self) -> list[FunctionKey]:
        """What each of `nodes` calls, a function or an operator."""
        told = map(domain_and_overload, self.signatures)
        return [
            called_key(node) if own is None else (own[0], op_type, own[1])
            for node, op_type, own in zip(self.nodes, self.op_types, told, strict=True)
        ]

    @cached_property
    def _walked(self) -> Walked:
        """What a walk over the nodes finds, but for those that are unlike any other."""
        if self.like is not None:
            return self.like._walked
        if self._is_walked_first:
            return walked(self.nodes, _UNLIKE)
        unlike = not _UNLIKE.isdisjoint(self.op_types)
        alike = [i for i, name in enumerate(self.op_types) if name not in _UNLIKE] if unlike else ()
        some = walked([self.nodes[index] for index in alike] if unlike else self.nodes)
        return some.among(alike, len(self.nodes)) if unlike else some

    def producer(self, name: str) -> NodeProto | None:
        """The node that makes a value: of a few values this is sooner told than of all."""
        if self._is_walked_first:
            places = self.node_names.makers(name, self.nodes)
            if places is not None:
                return self.nodes[places[-1]] if places else None
        self.__dict__["producer"] = self.producers.get
        return self.producers.get(name)

    @cached_property
    def producers(self) -> dict[str, NodeProto]:
        """The node that makes each value."""
        # Those that were walked over tell their only output, which else takes longest to ask for.
        walked = "_walked" in self.__dict__
        known = self.node_names.outputs if walked else [None] * len(self.nodes)
        found: dict[str, NodeProto] = {}
        for node, name in zip(self.nodes, known, strict=True):
            if name is not None:
                found[name] = node
                continue
            outputs = node.output
            # Nearly all nodes have one; asking for it alone costs half of walking the field.
            if len(outputs) == 1:
                found[outputs[0]] = node
            else:
                found.update(dict.fromkeys(outputs, node))
        found.pop("", None)
        return found

    @cached_property
    def initializers(self) -> dict[str, TensorProto]:
        """Dense initializers by name."""
        if isinstance(self.container, FunctionProto):
            return {}
        return {tensor.name: tensor for tensor in self.container.initializer}

    @cached_property
    def inputs(self) -> frozenset[str]:
        """Names of the graph's or the function's formal inputs."""
        if self.like is not None:
            return self.like.inputs
        if isinstance(self.container, FunctionProto):
            return frozenset(self.container.input)
        return frozenset(value.name for value in self.container.input)

    @cached_property
    def outputs(self) -> frozenset[str]:
        """Names of the graph's or the function's formal outputs."""
        if self.like is not None:
            return self.like.outputs
        if isinstance(self.container, FunctionProto):
            return frozenset(self.container.output)
        return frozenset(value.name for value in self.container.output)

    @cached_property
    def names(self) -> frozenset[str]:
        """All names that the container uses, of nodes and of values."""
        container = self.container
        found = {node.name for node in self.nodes}
        found.update(self.producers, self.inputs, self.outputs, self.initializers)
        # What is said of values that are not there would be said of generated ones.
        found.update([info.name for info in container.value_info])
        if not isinstance(container, FunctionProto):
            found.update(sparse.values.name for sparse in container.sparse_initializer)
            found.update(item.tensor_name for item in container.quantization_annotation)
        return frozenset(found)

    @cached_property
    def declared(self) -> dict[str, ValueType]:
        """The types that the container itself states, by the values' names."""
        if self.like is not None:
            return self.like.declared
        container = self.container
        found: dict[str, ValueType] = {}
        infos = list(container.value_info)
        if not isinstance(container, FunctionProto):
            infos += [*container.output, *container.input]
            for tensor in container.initializer:
                found[tensor.name] = tensor_type(tensor.data_type, tuple(tensor.dims))
        for info in infos:
            value_type = from_proto(info.type) if info.HasField("type") else None
            if value_type is not None:
                found[info.name] = value_type
        return found

    def resolve(self, name: str) -> Scope | None:
        """The nearest scope, from here outwards, that defines `name`."""
        scope: Scope | None = self
        while scope is not None:
            # Those that nodes make are asked for last: finding them takes longest.
            if name in scope.initializers or name in scope.inputs or scope.producer(name):
                return scope
            scope = scope.parent
        return None

    def describe(self, node: NodeProto) -> str:
        """A node's name for messages: its own, or that of its first output."""
        if node.name:
            return node.name
        output = next((name for name in node.output if name), "")
        return f"making {output!r}" if output else "without a name"


def subgraphs(node: NodeProto) -> Iterator[tuple[str, GraphProto]]:
    """The graphs among a node's attributes, each with a label."""
    if node.op_type not in GRAPH_OPERATORS and is_default(node.domain):
        return
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.name, attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            for index, graph in enumerate(attribute.graphs):
                yield f"{attribute.name}[{index}]", graph


def with_inner(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """The nodes and those of the graphs within them, which may nest as deep as files allow."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [inner for _, graph in subgraphs(node) for inner in graph.node]


def scopes(model: ModelProto, *, ordered: bool = False) -> list[Scope]:
    """Every scope of a model, each after the one around it.

    The main graph comes first, then its subgraphs at any depth, the training graphs (they read
    the main graph's values), then each function with its subgraphs. No recursion: nesting may be
    as deep as the file format allows.

    Args:
        model: the model.
        ordered: whether the nodes of its graphs are known to be in topological order.
    """
    opset = default_opset(model)
    main = Scope(model.graph, None, opset, "")
    found = list(_with_subgraphs(main, ordered))
    for index, training in enumerate(model.training_info):
        for field in ("initialization", "algorithm"):
            if training.HasField(field):
                label = f"training_info[{index}].{field}"
                graph: GraphProto = getattr(training, field)
                found += _with_subgraphs(Scope(graph, main, opset, label, subgraph=True), ordered)
    bodies: dict[bytes, Scope] = {}
    for function in model.functions:
        found += _in_function(function, bodies)
    return found


def _in_function(function: FunctionProto, bodies: dict[bytes, Scope]) -> list[Scope]:
    """A function's scopes; one without graphs in it may be like one of the `bodies` before."""
    names = function_key(function)
    label, key = f"function {_label(*names)}", body_key(function, names[2])
    like = bodies.get(key)
    if like is not None:
        found = Scope(function, None, like.opset, label, like=like)
        found.function_key = names
        return [found]
    tree = function_scopes(function, label)
    if len(tree) == 1:
        bodies[key] = tree[0]
    return tree


def function_scopes(function: FunctionProto, label: str) -> list[Scope]:
    """A function's scopes: that of its body, then its subgraphs at any depth."""
    return list(_with_subgraphs(Scope(function, None, default_opset(function), label)))


def by_root(found: Iterable[Scope]) -> dict[int, list[Scope]]:
    """Scopes in trees, by the identity of the outermost."""
    trees: dict[int, list[Scope]] = {}
    for scope in found:
        trees.setdefault(id(scope.root), []).append(scope)
    return trees


def function_key(function: FunctionProto) -> FunctionKey:
    """Return the domain, name and overload by which nodes call a function."""
    return function.domain, function.name, function.overload


def called_key(node: NodeProto) -> FunctionKey:
    """Return the domain, name and overload of what a node calls, a function or an operator."""
    return node.domain, node.op_type, node.overload


def function_label(function: FunctionProto) -> str:
    """A function as messages name it: domain, name and overload."""
    return _label(*function_key(function))


def _label(domain: str, name: str, overload: str) -> str:
    label = f"{domain}.{name}" if domain else name
    return f"{label}:{overload}" if overload else label


def _with_subgraphs(root: Scope, ordered: bool = False) -> Iterator[Scope]:
    waiting = [root]
    while waiting:
        scope = waiting.pop()
        if ordered:
            scope.misplaced = None
        yield scope
        inner = []
        for node in _with_graphs(scope):
            for name, graph in subgraphs(node) if node.attribute else ():
                where = f"{node.name or node.op_type}.{name}"
                label = f"{scope.label} > {where}" if scope.label else where
                inner.append(Scope(graph, scope, scope.opset, shortened(label, LABEL), True, node))
        waiting += reversed(inner)


def _with_graphs(scope: Scope) -> Iterable[NodeProto]:
    """The nodes that may hold graphs: of others than the default domain's operators any may."""
    nodes, op_types = scope.nodes, scope.op_types

    def may(place: int) -> bool:
        return op_types[place] in GRAPH_OPERATORS or nodes[place].domain not in DEFAULT_DOMAINS

    if len(nodes) < _MANY:
        return [nodes[place] for place in range(len(nodes)) if may(place)]
    # Of those that are alike one is asked.
    found = chain.from_iterable(group for group in scope.groups if may(group[0]))
    return [nodes[place] for place in sorted(found)]
