"""Writing out the sequences and optional values of a model as tensors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

from onnxreduce_cli.containers.interface import OutputWriter, container_inputs
from onnxreduce_cli.containers.mapping import as_loop
from onnxreduce_cli.containers.operators import OPERATORS, WRITERS
from onnxreduce_cli.containers.representations import RepresentationUnifier, representation_key
from onnxreduce_cli.containers.rewrite_state import Environment
from onnxreduce_cli.containers.values import (
    Container,
    Representation,
    UnwritableError,
    tensor_names,
    tensor_types,
)
from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.dead_values import names_read
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.edit import Edits, apply_edits
from onnxreduce_cli.model.graph.names import Names
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, Scope, scopes, subgraphs, with_inner
from onnxreduce_cli.model.types.facts import Facts

#: The nodes of a scope, each with the nodes that replace it; None where it stays.
_Results = list[tuple[NodeProto, list[NodeProto] | None]]


@dataclass(frozen=True, slots=True)
class RewrittenNode:
    """A node that was written out.

    Attributes:
        node: the node's name, or a description by its first output where it has none.
        op_type: its operator.
        scope: the scope that it is in.
        place: the index of the scope in `scopes(model)`, and of the node in the scope.
        made: the nodes that replace it.
    """

    node: str
    op_type: str
    scope: str
    place: tuple[int, int]
    made: tuple[NodeProto, ...]

    @property
    def control_flow(self) -> tuple[str, ...]:
        """The operators with subgraphs among the new nodes; none if the node was one itself."""
        if self.op_type in GRAPH_OPERATORS:
            return ()
        found = [node.op_type for node in with_inner(self.made)]
        return tuple(sorted(op_type for op_type in found if op_type in GRAPH_OPERATORS))


class RewriteError(Exception):
    """A model's containers cannot be written out.

    Attributes:
        place: the index of the scope in `scopes(model)`, and of the node in the scope.
        cause: why.
    """

    def __init__(self, place: tuple[int, int], cause: UnwritableError) -> None:
        super().__init__(cause.reason)
        self.place = place
        self.cause = cause


def write_out(model: ModelProto, target: int, base_dir: str = "") -> list[RewrittenNode]:
    """Write out a model's containers as tensors, in place, at its own opset.

    Inputs and outputs of the model keep their types if the target has these. If there is a
    SequenceMap, it becomes a Loop, and nothing else is done.

    Args:
        model: the model.
        target: the opset that it is to be converted to.
        base_dir: the folder that external data is relative to.

    Raises:
        RewriteError: a node's containers cannot be; nothing was edited.
    """
    found = scopes(model)
    facts = Facts(model, found, base_dir)
    graphs = [scope for scope in found if scope.root is found[0]]
    names = Names(graphs)
    mapped = [
        (scope, node)
        for scope in graphs
        for node in scope.nodes
        if node.op_type == "SequenceMap" and is_default(node.domain)
    ]
    if mapped and target < 17:
        edits: dict[int, Edits] = {}
        written = []
        for scope, node in mapped:
            try:
                new = as_loop(node, scope, facts, names)
            except UnwritableError as error:
                raise RewriteError(_place(found, scope, node), error) from error
            edits.setdefault(id(scope), Edits()).replace(node, new, [], {}, [])
            written.append(_rewritten_node(found, scope, node, new))
        for scope in reversed(graphs):
            if id(scope) in edits:
                apply_edits(scope, edits[id(scope)])
        return written
    return _ModelRewriter(found, facts, names, target).run()


def _place(found: list[Scope], scope: Scope, node: NodeProto) -> tuple[int, int]:
    """Return the index of a scope, and of a node in it."""
    number = next(number for number, item in enumerate(found) if item is scope)
    return number, next(place for place, item in enumerate(scope.nodes) if item is node)


def _rewritten_node(
    found: list[Scope], scope: Scope, node: NodeProto, new: Iterable[NodeProto]
) -> RewrittenNode:
    place = _place(found, scope, node)
    return RewrittenNode(scope.describe(node), node.op_type, scope.label, place, tuple(new))


class _ModelRewriter(OutputWriter):
    def __init__(self, found: list[Scope], facts: Facts, names: Names, target: int) -> None:
        super().__init__(found[0], facts, names, target)
        self._found = found
        self._unifier = RepresentationUnifier(self.op, self.sequences)
        self._written: dict[int, tuple[Scope, NodeProto, list[NodeProto]]] = {}

    def run(self) -> list[RewrittenNode]:
        graph = self._main.container
        assert isinstance(graph, GraphProto)
        environment = container_inputs(graph)
        edits = Edits()
        results = self._nodes(self._main, environment)
        read = self._sweep(results, self._main.outputs)
        for node, new in results:
            if new is not None:
                edits.replace(node, new, [], {}, [])
        edits.first += [node for node in self.op.constants if node.output[0] in read]
        edits.removed_values |= {
            info.name
            for info in graph.value_info
            if info.name in environment and info.type.WhichOneof("value") != "tensor_type"
        }
        written = [_rewritten_node(self._found, *given) for given in self._written.values()]
        apply_edits(self._main, edits)
        return written

    def _sweep(self, results: _Results, given: Iterable[str]) -> set[str]:
        """Remove emitted nodes whose outputs are not read, such as parts of a sequence.

        Args:
            results: a graph's nodes and their replacements.
            given: the names of the graph's outputs.

        Returns:
            the names of the outputs and of the values that the remaining nodes read.
        """
        read = set(given)
        for node, new in reversed(results):
            kept = []
            for item in reversed([node] if new is None else new):
                if id(item) not in self.op.emitted or not read.isdisjoint(item.output):
                    kept.append(item)
                    read.update(names_read(item))
            if new is not None:
                new[:] = reversed(kept)
        return read

    # Graphs

    def _nodes(self, scope: Scope, environment: Environment) -> _Results:
        """Emit the replacements of a scope's nodes."""
        around, self.scope = self.scope, scope
        found: _Results = []
        for node in scope.nodes:
            try:
                with self.op.graph() as new:
                    changed = self._node(scope, node, environment)
                    if scope is self._main:
                        self.emit_outputs(node, environment)
            except UnwritableError as error:
                raise RewriteError(_place(self._found, scope, node), error) from error
            found.append((node, new if changed else None))
            if changed and node.op_type in OPERATORS:
                self._note(scope, node, new)
        self.scope = around
        return found

    def _note(self, scope: Scope, node: NodeProto, new: list[NodeProto]) -> None:
        # A Loop's body may be rewritten more than once, until its carried values are known.
        self._written.pop(id(node), None)
        self._written[id(node)] = (scope, node, new)

    def _node(self, scope: Scope, node: NodeProto, environment: Environment) -> bool:
        """Emit a node's replacement; return whether there is one."""
        if is_default(node.domain) and self.facts.calls.function_of(node) is None:
            if node.op_type == "If":
                return self._if(node, environment)
            if node.op_type == "Loop":
                return self._loop(node, environment)
            writer = WRITERS.get(node.op_type)
            if writer is not None:
                return writer(self, node, environment)
        containers = [name for name in node.input if name in environment]
        if containers:
            raise UnwritableError(
                f"it reads {containers[0]!r}, which is no tensor, and what it does with it is not "
                "known",
                "choose a later opset",
            )
        return self._others(node, environment)

    def _others(self, node: NodeProto, environment: Environment) -> bool:
        """Rewrite the subgraphs of a node that has no containers; return whether one changed."""
        graphs = {name: self._graph(graph, environment) for name, graph in subgraphs(node)}
        if all(written is None for written in graphs.values()):
            return False
        copy = self.copy(node)
        for attribute in copy.attribute:
            written = graphs.get(attribute.name)
            if written is not None:
                attribute.g.CopyFrom(written)
        self.op.nodes.append(copy)
        return True

    def _graph(self, graph: GraphProto, environment: Environment) -> GraphProto | None:
        """Return a rewritten graph whose inputs and outputs are tensors; None if it stays."""
        inner = dict(environment)
        results = self._nodes(self.inner(graph), inner)
        if all(new is None for _, new in results):
            return None
        self._sweep(results, [info.name for info in graph.output])
        return _rebuilt(graph, _flat(results), inner)

    # If and Loop

    def _if(self, node: NodeProto, environment: Environment) -> bool:
        graphs = dict(subgraphs(node))
        branches = []
        for name in ("then_branch", "else_branch"):
            graph, inner = graphs[name], dict(environment)
            results = self._nodes(self.inner(graph), inner)
            branches.append((name, results, inner, self._outputs(graph.output, inner)))
        representations: list[Representation | None] = []
        for first, second in zip(branches[0][3], branches[1][3], strict=True):
            if first is None and second is None:
                representations.append(None)
            elif first is None or second is None:
                raise UnwritableError(
                    "its branches give values of two kinds",
                    "mend the model: let all branches give the same type",
                )
            else:
                representations.append(self._unifier.common(first, second))
        unchanged = all(new is None for _, results, _, _ in branches for _, new in results)
        if unchanged and not any(representations):
            return False
        copy = self.copy(node)
        for name, results, inner, values in branches:
            attribute = attributes.find(copy, name)
            assert attribute is not None
            written = self._written_graph(graphs[name], results, inner, values, representations)
            attribute.g.CopyFrom(written)
        self._emit(copy, representations, environment)
        return True

    def _outputs(
        self, infos: Iterable[ValueInfoProto], environment: Environment
    ) -> list[Container | None]:
        """Return the representation of each output of a graph; None for tensors."""
        values = [self.value(environment, info.name) for info in infos]
        return [None if isinstance(value, str) else value for value in values]

    def _written_graph(
        self,
        graph: GraphProto,
        results: _Results,
        inner: Environment,
        values: list[Container | None],
        representations: list[Representation | None],
    ) -> GraphProto:
        """Return a graph whose outputs are the tensors that represent its former outputs."""
        outputs: list[ValueInfoProto] = []
        with self.op.graph() as more:
            for value, kind, info in zip(values, representations, graph.output, strict=True):
                if kind is None or value is None:
                    outputs.append(info)
                else:
                    outputs += self._unifier.graph_outputs(value, kind)
        self._sweep(results, [info.name for info in outputs] + [n for i in more for n in i.input])
        written = _rebuilt(graph, [*_flat(results), *more], inner)
        del written.output[:]
        written.output.extend(outputs)
        return written

    def _emit(
        self,
        copy: NodeProto,
        representations: list[Representation | None],
        environment: Environment,
    ) -> None:
        """Emit a node whose outputs are the tensors that represent its former outputs.

        A node that would have no outputs is left out.
        """
        outputs: list[str] = []
        for name, kind in zip(list(copy.output), representations, strict=False):
            if kind is None:
                outputs.append(name)
                continue
            value = self._unifier.in_new_tensors(name, kind)
            outputs += tensor_names(value)
            if name:
                environment[name] = value
        copy.output[:] = outputs
        if outputs:
            self.op.nodes.append(copy)

    def _loop(self, node: NodeProto, environment: Environment) -> bool:
        (graph,) = (item for _, item in subgraphs(node))
        names = list(node.input)[2:]
        given = [self.value(environment, name) for name in names]
        scope = self.inner(graph)
        representations = [
            None
            if isinstance(value, str)
            else self._unifier.loop_representation(value, self.facts.kind(scope, info.name))
            for value, info in zip(given, list(graph.input)[2:], strict=True)
        ]
        while True:
            inner = dict(environment)
            for info, kind in zip(list(graph.input)[2:], representations, strict=True):
                if kind is not None:
                    inner[info.name] = self._unifier.in_new_tensors(info.name, kind)
            results = self._nodes(scope, inner)
            after = self._outputs(graph.output, inner)
            joined = [
                None if kind is None or value is None else self._unifier.common(kind, value)
                for kind, value in zip(representations, after[1:], strict=False)
            ]
            if [*map(representation_key, joined)] == [*map(representation_key, representations)]:
                break
            representations = joined
        if not any(representations) and all(new is None for _, new in results):
            return False
        copy = self.copy(node)
        copy.input[:] = [*list(node.input)[:2], "", ""][:2]
        for value, kind, name in zip(given, representations, names, strict=True):
            if kind is None or isinstance(value, str):
                copy.input.append(name)
            else:
                copy.input.extend(tensor_names(self._unifier.converted(value, kind)))
        collected = [None] * (len(graph.output) - 1 - len(representations))
        outputs = [*representations, *collected]
        written = self._written_graph(graph, results, inner, after, [None, *outputs])
        infos = list(graph.input)[:2]
        for info, kind in zip(list(graph.input)[2:], representations, strict=True):
            if kind is None:
                infos.append(info)
            else:
                infos += map(self.op.info, tensor_names(inner[info.name]), tensor_types(kind))
        del written.input[:]
        written.input.extend(infos)
        body = attributes.find(copy, "body")
        assert body is not None
        body.g.CopyFrom(written)
        self._emit(copy, outputs, environment)
        return True


def _flat(results: _Results) -> list[NodeProto]:
    return [item for node, new in results for item in ([node] if new is None else new)]


def _rebuilt(graph: GraphProto, nodes: list[NodeProto], inner: Environment) -> GraphProto:
    """Return a copy of a graph with other nodes, without the value infos of containers."""
    copy = GraphProto()
    copy.CopyFrom(graph)
    del copy.node[:], copy.value_info[:]
    copy.node.extend(nodes)
    copy.value_info.extend(
        info
        for info in graph.value_info
        if info.name not in inner or info.type.WhichOneof("value") == "tensor_type"
    )
    return copy
