"""What steps made of one node, made again of the nodes that differ from it in names alone.

Large models are a few nodes many times over. A step that asks nothing about a node's values (see
`Context.asked`) makes the same of all with the same operator and attributes, one that asks for no
more than their kinds the same of those of the same kinds.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from onnx import AttributeProto, NodeProto

from onnxreduce_cli.model.facts import Facts
from onnxreduce_cli.model.scope import GRAPH_OPERATORS, Scope
from onnxreduce_cli.steps.context import Asked

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


def likeness(node: NodeProto) -> Hashable:
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
    held = tuple([attribute.SerializeToString() for attribute in attributes])
    if all(inputs) and all(outputs):
        return held, len(inputs), len(outputs)
    return held, tuple(map(bool, inputs)), tuple(map(bool, outputs))


@dataclass(frozen=True, slots=True)
class Mould:
    """One node's stand-in, in which the names of another node can be put.

    Attributes:
        words: what was done to the node, for people.
        op_type: the stand-in's operator.
        attributes: its attributes.
        inputs: for each of its inputs the node's input at that place, or a constant's name.
    """

    words: tuple[str, ...]
    op_type: str
    attributes: tuple[AttributeProto, ...]
    inputs: tuple[int | str, ...]

    @staticmethod
    def of(node: NodeProto, made: Sequence[NodeProto], words: tuple[str, ...]) -> Mould | None:
        """A mould of what was made of `node`; None where that is more than a stand-in."""
        if len(made) != 1 or made[0].output != node.output or node.op_type in GRAPH_OPERATORS:
            return None
        places: dict[str, int | str] = {name: place for place, name in enumerate(node.input)}
        inputs = tuple(places.get(name, name) if name else "" for name in made[0].input)
        return Mould(words, made[0].op_type, tuple(made[0].attribute), inputs)

    def cast(self, node: NodeProto, copy: NodeProto) -> NodeProto:
        """Make of an empty message what stands in for `node`."""
        copy.CopyFrom(node)
        copy.op_type = self.op_type
        del copy.attribute[:]
        copy.attribute.extend(self.attributes)
        given = copy.input[:]
        copy.input[:] = [given[place] if isinstance(place, int) else place for place in self.inputs]
        return copy


class Moulds:
    """The moulds of one scope's nodes."""

    def __init__(self, facts: Facts, scope: Scope) -> None:
        self._facts = facts
        self._scope = scope
        self._asked: dict[str, Asked] = {}
        self._moulds: dict[Hashable, Mould] = {}

    def find(self, node: NodeProto, op_type: str) -> Mould | None:
        """The mould that a node fits, whose operator is `op_type`."""
        return self._moulds.get(self._key(node, op_type))

    def learn(
        self,
        node: NodeProto,
        op_type: str,
        asked: Asked,
        made: Sequence[NodeProto],
        words: tuple[str, ...],
    ) -> Mould | None:
        """Take a mould of what steps made of a node.

        Args:
            node: the node.
            op_type: its operator.
            asked: what the steps asked about its values.
            made: the nodes that stand in for it; none where there is more to it.
            words: what was done, for people.
        """
        self._asked[op_type] = max(asked, self._asked.get(op_type, asked))
        key = self._key(node, op_type)
        mould = None if key is None else Mould.of(node, made, words)
        if mould is not None:
            self._moulds[key] = mould
        return mould

    def _key(self, node: NodeProto, op_type: str) -> Hashable:
        """What nodes of one mould have in common; None where nothing can be said."""
        asked = self._asked.get(op_type, Asked.NOTHING)
        like = None if asked is Asked.MORE else likeness(node)
        if like is None or asked is Asked.NOTHING:
            return like and (op_type, like)
        kind, scope = self._facts.kind, self._scope
        names = (*node.input[:], *node.output[:])
        return op_type, like, tuple([kind(scope, name) for name in names])
