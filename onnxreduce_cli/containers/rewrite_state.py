"""The state of the rewriting of a model: its facts, the target opset and new nodes."""

from __future__ import annotations

from onnx import GraphProto, NodeProto

from onnxreduce_cli.containers.emitter import Emitter
from onnxreduce_cli.containers.sequences import SequenceWriter
from onnxreduce_cli.containers.values import (
    Container,
    OptionalValue,
    SequenceValue,
    TensorType,
    UnchangedContainer,
    UnwritableError,
)
from onnxreduce_cli.model.graph.names import Names
from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.types.facts import Facts

#: The containers that a graph sees by name, also in the graphs around it.
Environment = dict[str, Container]


class RewriteState:
    """A model whose containers are being written out as tensors.

    Attributes:
        facts: the types and constants of its values.
        target: the opset that it is to be converted to.
        op: emits nodes.
        sequences: emits operators on sequences as nodes on tensors.
        scope: the scope that is being rewritten.
    """

    def __init__(self, main: Scope, facts: Facts, names: Names, target: int) -> None:
        """Start with an unchanged model.

        Args:
            main: the main graph's scope.
            facts: what is known of the model's values.
            names: the names that are in use.
            target: the opset that it is to be converted to.
        """
        self.facts = facts
        self.target = target
        self.op = Emitter(main.opset or 0, target, names)
        self.sequences = SequenceWriter(self.op)
        self.scope = main

    def inner(self, graph: GraphProto) -> Scope:
        """Return the scope of a subgraph."""
        scope = self.facts.inner(graph)
        assert scope is not None
        return scope

    def tensor(self, name: str) -> TensorType:
        """Return a tensor's dtype, 0 if unknown, and its dimensions, None if unknown."""
        if name in self.op.types:
            return self.op.types[name]
        known = self.facts.type(self.scope, name)
        return (0, None) if known is None else (known.elem_type, known.dims)

    def elem_type(self, name: str) -> int:
        """Return a tensor's dtype.

        Raises:
            UnwritableError: it is not known.
        """
        elem_type = self.tensor(name)[0]
        if not elem_type:
            raise UnwritableError(
                f"the dtype of {name!r} is not known", "state its type in the model's value_info"
            )
        return elem_type

    def number(self, name: str) -> int | str:
        """Return the number in a tensor of one element, or its name if it is no constant."""
        array = self.facts.constant(self.scope, name)
        return name if array is None or array.size != 1 else int(array.reshape(-1)[0])

    def value(self, environment: Environment, name: str) -> Container | str:
        """Return the representation of a value; the name of a tensor.

        Raises:
            UnwritableError: it is an input of the model, with a type that the target lacks.
        """
        value = environment.get(name, name)
        if isinstance(value, UnchangedContainer) and self.target < (15 if value.optional else 11):
            what = "a value that may be absent" if value.optional else "a sequence of tensors"
            raise UnwritableError(
                f"the model is given {value.name!r}, {what}, which nothing before opset "
                f"{15 if value.optional else 11} can hold",
                "choose a later opset, or let the model take tensors",
            )
        return value

    def sequence(self, environment: Environment, name: str) -> SequenceValue:
        """Return the representation of a sequence.

        Raises:
            UnwritableError: it has none.
        """
        value = self.value(environment, name)
        if isinstance(value, str | OptionalValue):
            raise UnwritableError(f"how {name!r} is made is not known", "choose a later opset")
        return value

    def emit_reader(self, node: NodeProto, sequence: UnchangedContainer) -> bool:
        """Emit a copy of a node that reads an unchanged input, if that has another name now.

        Returns:
            whether a copy was emitted.
        """
        if node.input[0] == sequence.name:
            return False
        copy = self.copy(node)
        copy.input[0] = sequence.name
        self.op.nodes.append(copy)
        return True

    def replace(self, node: NodeProto, op_type: str, name: str) -> None:
        """Emit an operator of one input in place of a node, with its output and name."""
        self.op.replace(node, op_type, name)

    def copy(self, node: NodeProto) -> NodeProto:
        """Return a copy of a node."""
        copy = NodeProto()
        copy.CopyFrom(node)
        return copy
