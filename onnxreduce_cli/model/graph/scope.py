"""Scopes: a graph, a subgraph with its outer scopes, or a function body."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto

from onnxreduce_cli.model.graph.domains import DEFAULT_DOMAINS, default_opset, is_default
from onnxreduce_cli.model.graph.order import in_order, misplaced
from onnxreduce_cli.model.graph.values import ValueType, from_proto, tensor_type
from onnxreduce_cli.text import shortened

#: Operators of the default domain that have graphs; any operator of another domain may have some.
GRAPH_OPERATORS = frozenset({"If", "Loop", "Scan", "SequenceMap"})

#: A function's domain, name and overload.
FunctionKey = tuple[str, str, str]

#: The longest label; the label of a scope contains the labels of all scopes around it.
LABEL = 1000

#: The largest function that is compared with others, in bytes: a larger one holds weights.
_LARGEST = 1 << 20


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
        function_key: domain, name and overload of the function whose body this is, if any.
    """

    def __init__(
        self,
        container: GraphProto | FunctionProto,
        parent: Scope | None,
        opset: int | None,
        label: str,
        subgraph: bool = False,
        owner: NodeProto | None = None,
        equal: Scope | None = None,
    ) -> None:
        self.container = container
        self.parent = parent
        self.opset = opset
        self.label = label
        self.subgraph = subgraph
        self.owner = owner
        # None for an outermost scope: an object that refers to itself is not freed at once.
        self._root = None if parent is None else parent.root
        self._equal = None if equal is None else equal.body
        self.function: FunctionProto | None = None
        if parent is not None:
            self.function = parent.function
        elif isinstance(container, FunctionProto):
            self.function = container

    @cached_property
    def function_key(self) -> FunctionKey | None:
        """Domain, name and overload of the function whose body this is; None for a graph."""
        function = self.container
        return function_key(function) if isinstance(function, FunctionProto) else None

    @property
    def root(self) -> Scope:
        """The outermost scope: the main graph's or the function's."""
        return self._root or self

    @property
    def body(self) -> Scope:
        """The scope of the first function with an equal body, or else this one."""
        return self._equal or self

    @cached_property
    def nodes(self) -> list[NodeProto]:
        """The nodes before any change, in topological order."""
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
        if self._equal is not None:
            return self._equal.op_types
        return [node.op_type for node in self.nodes]

    def producer(self, name: str) -> NodeProto | None:
        """Return the node that makes a value; None if none does."""
        return self.producers.get(name)

    @cached_property
    def producers(self) -> dict[str, NodeProto]:
        """The node that makes each value, by name."""
        found: dict[str, NodeProto] = {}
        for node in self.nodes:
            for name in node.output[:]:
                found[name] = node
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
        if isinstance(self.container, FunctionProto):
            return frozenset(self.container.input)
        return frozenset(value.name for value in self.container.input)

    @cached_property
    def outputs(self) -> frozenset[str]:
        """Names of the graph's or the function's formal outputs."""
        if isinstance(self.container, FunctionProto):
            return frozenset(self.container.output)
        return frozenset(value.name for value in self.container.output)

    @cached_property
    def names(self) -> frozenset[str]:
        """All names that the container uses, of nodes and of values."""
        container = self.container
        found = {node.name for node in self.nodes}
        found.update(self.producers, self.inputs, self.outputs, self.initializers)
        # Types stated for values that do not exist would apply to generated ones of their names.
        found.update([info.name for info in container.value_info])
        if not isinstance(container, FunctionProto):
            found.update(sparse.values.name for sparse in container.sparse_initializer)
            found.update(item.tensor_name for item in container.quantization_annotation)
        return frozenset(found)

    @cached_property
    def declared(self) -> dict[str, ValueType]:
        """The types that the container itself states, by the values' names."""
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
        """Return the nearest scope, from here outwards, that defines `name`."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.initializers or name in scope.inputs or name in scope.producers:
                return scope
            scope = scope.parent
        return None

    def describe(self, node: NodeProto) -> str:
        """Return a node's name for messages: its own, or the name of its first output."""
        if node.name:
            return node.name
        output = next((name for name in node.output if name), "")
        return f"making {output!r}" if output else "without a name"


def subgraphs(node: NodeProto) -> Iterator[tuple[str, GraphProto]]:
    """Yield the graphs among a node's attributes, each with a label."""
    if node.op_type not in GRAPH_OPERATORS and is_default(node.domain):
        return
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.name, attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            for index, graph in enumerate(attribute.graphs):
                yield f"{attribute.name}[{index}]", graph


def holds_graphs(node: NodeProto) -> bool:
    """Return whether there are graphs among a node's attributes."""
    return any(True for _ in subgraphs(node))


def with_inner(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Yield nodes and the nodes of graphs within them, at any depth."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        if node.op_type in GRAPH_OPERATORS or node.domain not in DEFAULT_DOMAINS:
            waiting += [inner for _, graph in subgraphs(node) for inner in graph.node]


def scopes(model: ModelProto, *, ordered: bool = False) -> list[Scope]:
    """Return every scope of a model, each after the one around it.

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
    bodies: dict[Hashable, list[Scope]] = {}
    for function in model.functions:
        key = _body_key(function)
        tree = function_scopes(function, f"function {function_label(function)}", bodies.get(key))
        bodies.setdefault(key, tree)
        found += tree
    return found


def function_scopes(
    function: FunctionProto, label: str, equal: Sequence[Scope] | None = None
) -> list[Scope]:
    """Return the scopes of a function: its body, then its subgraphs at any depth.

    Args:
        function: the function.
        label: where it is, for messages.
        equal: the scopes of a function with an equal body, if there is one.
    """
    if equal is None:
        return list(_with_subgraphs(Scope(function, None, default_opset(function), label)))
    root = Scope(function, None, equal[0].opset, label, equal=equal[0])
    return [root] if len(equal) == 1 else list(_with_subgraphs(root))


def _body_key(function: FunctionProto) -> Hashable:
    """Return a key of what a function has beside its name: equal keys are equal bodies."""
    if function.ByteSize() > _LARGEST:
        return id(function)
    body = FunctionProto()
    body.CopyFrom(function)
    for field in ("domain", "name", "overload", "doc_string", "metadata_props"):
        body.ClearField(field)
    return body.SerializeToString()


def by_root(found: Iterable[Scope]) -> dict[int, list[Scope]]:
    """Return scopes grouped into trees, by the identity of the outermost scope."""
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
    """Return a function's name for messages: domain, name and overload."""
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
        for node, op_type in zip(scope.nodes, scope.op_types, strict=True):
            # Any operator of another domain may have graphs.
            if op_type not in GRAPH_OPERATORS and node.domain in DEFAULT_DOMAINS:
                continue
            for name, graph in subgraphs(node):
                where = f"{node.name or node.op_type}.{name}"
                label = f"{scope.label} > {where}" if scope.label else where
                inner.append(Scope(graph, scope, scope.opset, shortened(label, LABEL), True, node))
        waiting += reversed(inner)
