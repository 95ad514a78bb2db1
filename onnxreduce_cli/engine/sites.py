"""A site: one source node together with the nodes that its steps replace it by."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields

from onnx import NodeProto, TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.node_facts import Lookups
from onnxreduce_cli.errors import Blocker
from onnxreduce_cli.model.dead_values import dropped, has_graphs
from onnxreduce_cli.model.scope import GRAPH_OPERATORS, Scope, subgraphs, with_inner
from onnxreduce_cli.model.values import Dims


@dataclass(slots=True)
class Site:
    """A node of the model on its way to the target.

    Attributes:
        scope: where the node is.
        node: the node, as it was.
        description: what is said of what was done to it beside what one sees by comparing it with
            `result`; None where nothing was done.
        warnings: remarks for the user.
        result: the nodes that replace it.
        successors: those of them that take over its subgraphs.
        taken_over: the names of graphs within them, each with that of the attribute of `node`
            whose graph it takes over.
        initializers: the initializers that replace it.
        blocked: why it cannot be converted; None if it can.
        lookups: what its steps looked up of the values around it.
        absorbed: the nodes before it, in order, that what replaces it stands for as well.
        avoided: what the runtime that the model is for would have got wrong, or refused, of it.
        behind: those and what else it rests on, for both to be compared.
        dims: of values that it reads, dimensions by names that equal ones share, where more is
            known of them than the model's types say.
        stabler: whether what replaces it is right too where inner values of those over- or
            underflow.
    """

    scope: Scope
    node: NodeProto
    description: tuple[str, ...] | None = None
    warnings: tuple[str, ...] = ()
    result: Sequence[NodeProto] = ()
    successors: Sequence[NodeProto] = ()
    taken_over: Mapping[str, str] = field(default_factory=dict)
    initializers: tuple[TensorProto, ...] = ()
    blocked: Blocked | None = None
    lookups: Lookups = field(default_factory=Lookups)
    absorbed: Sequence[NodeProto] = ()
    avoided: tuple[str, ...] = ()
    behind: Sequence[NodeProto] = ()
    dims: Mapping[str, Dims] = field(default_factory=dict)
    stabler: bool = False

    @property
    def reads(self) -> Sequence[str]:
        """What replaces it reads, but for graphs within."""
        return [name for new in self.result for name in new.input[:]]

    @property
    def with_graphs(self) -> Sequence[NodeProto]:
        """The nodes with graphs that replace it."""
        return [*filter(has_graphs, self.result)]

    @property
    def dropped(self) -> Sequence[str]:
        """What `node` reads, and what replaces it does not."""
        return dropped(self.node, self.reads, self.with_graphs)

    def say(self, text: str) -> None:
        """Note that something was done, and what is to be said of it; maybe nothing."""
        self.description = (*(self.description or ()), *([text] if text else []))

    def restore(self, other: Site) -> None:
        """Take over all that another site holds: what was done since it was copied is undone."""
        for item in fields(self):
            setattr(self, item.name, getattr(other, item.name))

    @property
    def result_key(self) -> Hashable:
        """A key of all that the steps made of the node: equal keys, equal replacements."""
        made = (*self.result, *self.initializers)
        reason = None if self.blocked is None else self.blocked.reason
        contents = tuple(message.SerializeToString() for message in made)
        return contents, self.description, self.warnings, reason

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators of the nodes that replace it."""
        return tuple([node.op_type for node in self.result])

    @property
    def nodes(self) -> int:
        """How many nodes replace it, with those in graphs but for those in graphs of its own."""
        if self.taken_over:
            return self._nodes_around(self.result)
        node = self.node
        own = sum(1 for _ in with_inner([node])) - 1 if node.op_type in GRAPH_OPERATORS else 0
        return sum(1 for _ in with_inner(self.result)) - own

    def _nodes_around(self, nodes: Sequence[NodeProto]) -> int:
        """How many nodes there are, with those in graphs, but for those of graphs taken over."""
        graphs = {item.name: item.g for item in self.node.attribute}
        count, waiting = 0, [*nodes]
        while waiting:
            node = waiting.pop()
            count += 1
            for _, graph in subgraphs(node):
                if graph.name not in self.taken_over:
                    waiting += graph.node
                    continue
                own = graphs[self.taken_over[graph.name]].node
                made = {name for item in own for name in item.output}
                count += sum(made.isdisjoint(item.output) for item in graph.node)
        return count

    @property
    def control_flow(self) -> tuple[str, ...]:
        """The operators with graphs that it brings; none where the node has graphs itself."""
        if self.node.op_type in GRAPH_OPERATORS or not GRAPH_OPERATORS.intersection(self.operators):
            return ()
        found = [made.op_type for made in with_inner(self.result)]
        return tuple(sorted(op_type for op_type in found if op_type in GRAPH_OPERATORS))

    @property
    def blocker(self) -> Blocker:
        """The report of why the node cannot be converted; requires that `blocked` is set."""
        scope, node, blocked = self.scope, self.node, self.blocked
        assert blocked is not None
        return Blocker(
            scope.describe(node),
            node.op_type,
            scope.opset or 0,
            scope.label,
            blocked.reason,
            blocked.advice,
        )

    @property
    def base(self) -> str:
        """The prefix of the names of generated nodes and values."""
        return self.node.name or next((name for name in self.node.output if name), "node")
