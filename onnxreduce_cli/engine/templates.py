"""Templates: one node's replacement, reused for the nodes that differ from it in names alone.

Large models repeat a few nodes many times. A step that reads no facts of a node's values (see
`Lookups.depends_on`) emits the same for all nodes of equal operator and attributes; one that reads
only the values' kinds emits the same for those of equal kinds as well.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from onnx import AttributeProto, NodeProto

from onnxreduce_cli.emit.node_facts import DependsOn
from onnxreduce_cli.model.facts import Facts
from onnxreduce_cli.model.scope import GRAPH_OPERATORS, Scope


@dataclass(frozen=True, slots=True)
class Template:
    """The node that replaced another, in which the names of a third can be put.

    Attributes:
        description: what was done to the node, for people.
        op_type: the operator of what replaced it.
        attributes: the attributes of what replaced it.
        inputs: for each of its inputs the node's input at that place, or a constant's name.
    """

    description: tuple[str, ...]
    op_type: str
    attributes: tuple[AttributeProto, ...]
    inputs: tuple[int | str, ...]

    @staticmethod
    def of(
        node: NodeProto, made: Sequence[NodeProto], description: tuple[str, ...]
    ) -> Template | None:
        """Return a template of what replaces `node`; None unless that is one node like it."""
        if len(made) != 1 or made[0].output != node.output or node.op_type in GRAPH_OPERATORS:
            return None
        places: dict[str, int | str] = {name: place for place, name in enumerate(node.input)}
        inputs = tuple(places.get(name, name) if name else "" for name in made[0].input)
        return Template(description, made[0].op_type, tuple(made[0].attribute), inputs)

    def fill(self, node: NodeProto, empty: NodeProto) -> NodeProto:
        """Turn an empty message into the node that replaces `node`, and return it."""
        empty.CopyFrom(node)
        empty.op_type = self.op_type
        del empty.attribute[:]
        empty.attribute.extend(self.attributes)
        given = empty.input[:]
        empty.input[:] = [
            given[place] if isinstance(place, int) else place for place in self.inputs
        ]
        return empty


class Templates:
    """The templates of one scope's nodes."""

    def __init__(self, facts: Facts, scope: Scope) -> None:
        self._facts = facts
        self._scope = scope
        self._depends_on: dict[str, DependsOn] = {}
        self._templates: dict[Hashable, Template] = {}

    def find(self, node: NodeProto, op_type: str, signature: Hashable) -> Template | None:
        """Return the template that a node of an operator and a signature fits, if there is one."""
        return self._templates.get(self._key(node, op_type, signature))

    def add(
        self,
        node: NodeProto,
        op_type: str,
        signature: Hashable,
        depends_on: DependsOn,
        made: Sequence[NodeProto],
        description: tuple[str, ...],
    ) -> Template | None:
        """Make a template of the nodes that replace a node, where that is possible.

        Args:
            node: the node.
            op_type: its operator.
            signature: its `Scope.signatures`.
            depends_on: the facts that what the steps emit depends on.
            made: the nodes that replace it; none where there is more to it.
            description: what was done, for people.
        """
        self._depends_on[op_type] = max(depends_on, self._depends_on.get(op_type, depends_on))
        key = self._key(node, op_type, signature)
        template = None if key is None else Template.of(node, made, description)
        if template is not None:
            self._templates[key] = template
        return template

    def _key(self, node: NodeProto, op_type: str, signature: Hashable) -> Hashable:
        """Return a key that is equal for nodes of one template; None where none is possible."""
        depends_on = self._depends_on.get(op_type, DependsOn.NOTHING)
        if depends_on is DependsOn.MORE or signature is None:
            return None
        inputs = node.input[:]
        if len(inputs) > 1 and len(set(inputs)) < len(inputs):
            return None  # A value is read twice: it is ambiguous which of the two a step meant.
        if depends_on is DependsOn.NOTHING:
            return signature
        kind, scope = self._facts.kind, self._scope
        return signature, tuple([kind(scope, name) for name in inputs + node.output[:]])
