"""A site: one node of the source model together with the nodes that replace it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from onnx import NodeProto, TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.node_facts import Lookups
from onnxreduce_cli.engine.changes import ContractionKey
from onnxreduce_cli.errors import Blocker
from onnxreduce_cli.model.graph.dead_values import dropped, has_graphs
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, Scope, subgraphs, with_inner
from onnxreduce_cli.model.graph.values import Dims

if TYPE_CHECKING:
    from onnxreduce_cli.targets.verdict import TargetProblem


@dataclass(slots=True)
class Site:
    """A node of the source model and its replacement.

    Attributes:
        scope: the scope of the node.
        node: the node before the conversion.
        description: the changes that comparing `node` with `result` does not show, as text; None if
            nothing was changed.
        warnings: remarks for the user.
        result: the nodes that replace the node.
        successors: the nodes of `result` that take over the node's subgraphs.
        taken_over: the names of subgraphs in `result`, each with the name of the attribute of
            `node` whose graph it takes over.
        initializers: the initializers that replace the node.
        blocked: why the node cannot be converted; None if it can.
        lookups: the facts that its steps looked up.
        absorbed: the nodes before it, in order, that are replaced with it.
        avoided: what the target runtime would have computed wrong, or refused.
        behind: `absorbed` and further nodes that compute its inputs, which a check runs with it.
        dims: dimensions of its inputs, equal ones by equal names, where more is known of them than
            the model's types say.
        stabler: whether the replacement is also right where intermediate values of the original
            overflow or underflow.
        is_of_finite: whether the replacement is right for finite numbers alone, as a warning says.
        is_sound: whether its node was found to agree with the facts that its steps looked up.
        equal: the site of an equal node, of which the replacement was taken; None if of none.
        contraction: the operator that the node and `absorbed` are contracted to; empty if they are
            not.
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
    avoided: tuple[TargetProblem, ...] = ()
    behind: Sequence[NodeProto] = ()
    dims: Mapping[str, Dims] = field(default_factory=dict)
    stabler: bool = False
    is_of_finite: bool = False
    is_sound: bool = False
    equal: Site | None = None
    contraction: str = ""

    @property
    def contraction_key(self) -> ContractionKey:
        """The key of its contraction, which is the same in each plan of a model."""
        return ContractionKey(self.scope.label, tuple(self.node.output), self.contraction)

    @property
    def reads(self) -> Sequence[str]:
        """The inputs of the replacement, without those of subgraphs."""
        return [name for new in self.result for name in new.input[:]]

    @property
    def with_graphs(self) -> Sequence[NodeProto]:
        """The nodes of the replacement that have subgraphs."""
        return [*filter(has_graphs, self.result)]

    @property
    def dropped(self) -> Sequence[str]:
        """The values that `node` reads and its replacement does not."""
        return dropped(self.node, self.reads, self.with_graphs)

    @property
    def stays(self) -> bool:
        """Whether the node itself is its replacement."""
        return len(self.result) == 1 and self.result[0] is self.node

    @property
    def is_reported(self) -> bool:
        """Whether there is anything to say of the node."""
        changed = self.description is not None or bool(self.warnings)
        return changed or self.blocked is not None

    def say(self, text: str) -> None:
        """Note a change, with a description that may be empty."""
        self.description = (*(self.description or ()), *([text] if text else []))

    def restore(self, other: Site) -> None:
        """Restore the fields of an earlier copy of this site."""
        for name in Site.__slots__:
            setattr(self, name, getattr(other, name))

    @property
    def result_key(self) -> Hashable:
        """A key of the replacement: equal keys mean equal replacements."""
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
        """How many nodes replace it; of its own subgraphs' nodes only additional ones count."""
        if self.taken_over:
            return self._nodes_around(self.result)
        node = self.node
        own = sum(1 for _ in with_inner([node])) - 1 if node.op_type in GRAPH_OPERATORS else 0
        return sum(1 for _ in with_inner(self.result)) - own

    def _nodes_around(self, nodes: Sequence[NodeProto]) -> int:
        """Return the number of nodes, those of subgraphs included; see `nodes`."""
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
        """The operators with subgraphs that it adds; none if the node has subgraphs itself."""
        if self.node.op_type in GRAPH_OPERATORS or not GRAPH_OPERATORS.intersection(self.operators):
            return ()
        found = [made.op_type for made in with_inner(self.result)]
        return tuple(sorted(op_type for op_type in found if op_type in GRAPH_OPERATORS))

    @property
    def blocker(self) -> Blocker:
        """The blocker to report; requires that `blocked` is set."""
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
