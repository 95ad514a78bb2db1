"""What steps made of one node, made again of the nodes that differ from it in names alone.

Large models are a few nodes many times over. A step that asks nothing about a node's values (see
`Context.depends_on`) makes the same of all with the same operator and attributes, one that asks for
no more than their kinds the same of those of the same kinds.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from onnx import AttributeProto, NodeProto

from onnxreduce_cli.emit.node_facts import DependsOn
from onnxreduce_cli.model.facts import Facts
from onnxreduce_cli.model.scope import GRAPH_OPERATORS, Scope

#: The attribute types whose values are compared.
_PLAIN = frozenset(
    {
        AttributeProto.FLOAT,
        AttributeProto.FLOATS,
        AttributeProto.INT,
        AttributeProto.INTS,
        AttributeProto.STRING,
        AttributeProto.STRINGS,
    }
)


def signature(node: NodeProto) -> Hashable:
    """What nodes of one operator have in common that differ in names alone.

    None where a value is read twice, as which of the two a step meant could not be told, and where
    attributes hold tensors or graphs, which are too large to compare and hardly ever alike.
    """
    inputs, outputs = node.input[:], node.output[:]
    if len(inputs) > 1 and len(set(inputs)) < len(inputs):
        return None
    attributes = node.attribute[:]
    if not _PLAIN.issuperset([attribute.type for attribute in attributes]):
        return None
    values = tuple([attribute.SerializeToString() for attribute in attributes])
    if all(inputs) and all(outputs):
        return values, len(inputs), len(outputs)
    return values, tuple(map(bool, inputs)), tuple(map(bool, outputs))


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
        """A template of what was made of `node`; None where that is more than one like it."""
        if len(made) != 1 or made[0].output != node.output or node.op_type in GRAPH_OPERATORS:
            return None
        places: dict[str, int | str] = {name: place for place, name in enumerate(node.input)}
        inputs = tuple(places.get(name, name) if name else "" for name in made[0].input)
        return Template(description, made[0].op_type, tuple(made[0].attribute), inputs)

    def fill(self, node: NodeProto, empty: NodeProto) -> NodeProto:
        """Make of an empty message what replaces `node`."""
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

    def find(self, node: NodeProto, op_type: str) -> Template | None:
        """The template that a node fits, whose operator is `op_type`."""
        return self._templates.get(self._key(node, op_type))

    def add(
        self,
        node: NodeProto,
        op_type: str,
        depends_on: DependsOn,
        made: Sequence[NodeProto],
        description: tuple[str, ...],
    ) -> Template | None:
        """Make a template of what steps made of a node, where that is possible.

        Args:
            node: the node.
            op_type: its operator.
            depends_on: the facts that what the steps emit depends on.
            made: the nodes that replace it; none where there is more to it.
            description: what was done, for people.
        """
        self._depends_on[op_type] = max(depends_on, self._depends_on.get(op_type, depends_on))
        key = self._key(node, op_type)
        template = None if key is None else Template.of(node, made, description)
        if template is not None:
            self._templates[key] = template
        return template

    def _key(self, node: NodeProto, op_type: str) -> Hashable:
        """What nodes of one template have in common; None where nothing can be said."""
        depends_on = self._depends_on.get(op_type, DependsOn.NOTHING)
        common = None if depends_on is DependsOn.MORE else signature(node)
        if common is None or depends_on is DependsOn.NOTHING:
            return common and (op_type, common)
        kind, scope = self._facts.kind, self._scope
        names = (*node.input[:], *node.output[:])
        return op_type, common, tuple([kind(scope, name) for name in names])
