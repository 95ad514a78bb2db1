"""A site: one source node together with the nodes that its steps replace it by."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from onnx import NodeProto, TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.node_facts import Lookups
from onnxreduce_cli.engine.templates import Template
from onnxreduce_cli.errors import Blocker
from onnxreduce_cli.model.scope import Scope


@dataclass(slots=True)
class Site:
    """A node of the model on its way to the target.

    Attributes:
        scope: where the node is.
        node: the node, as it was.
        description: what was done to it, for people, step by step.
        warnings: remarks for the user.
        result: the nodes that replace it.
        successors: those of them that take over its subgraphs.
        taken_over: the names of graphs within them, each with that of the attribute of `node`
            whose graph it takes over.
        initializers: the initializers that replace it.
        blocked: why it cannot be converted; None if it can.
        lookups: what its steps looked up of the values around it.
        template: the template that `result` was filled from, if any.
    """

    scope: Scope
    node: NodeProto
    description: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    result: Sequence[NodeProto] = ()
    successors: Sequence[NodeProto] = ()
    taken_over: Mapping[str, str] = field(default_factory=dict)
    initializers: tuple[TensorProto, ...] = ()
    blocked: Blocked | None = None
    lookups: Lookups = field(default_factory=Lookups)
    template: Template | None = None

    @property
    def outcome(self) -> Hashable:
        """A key of all that the steps made of the node: equal keys, equal replacements."""
        made = (*self.result, *self.initializers)
        reason = None if self.blocked is None else self.blocked.reason
        contents = tuple(message.SerializeToString() for message in made)
        return contents, self.description, self.warnings, reason

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators of the nodes that replace it."""
        if self.template is not None:
            return (self.template.op_type,)
        return tuple([node.op_type for node in self.result])

    @property
    def is_plain(self) -> bool:
        """True if the site is not blocked and has neither warnings nor initializers."""
        return self.blocked is None and not self.warnings and not self.initializers

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
