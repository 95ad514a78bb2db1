"""The state that the rewriting of one model shares: facts, target opset and new nodes."""

from __future__ import annotations

from onnx import GraphProto, NodeProto

from onnxreduce_cli.containers.emitter import Emitter
from onnxreduce_cli.containers.sequences import Sequences
from onnxreduce_cli.containers.values import (
    Container,
    Given,
    Maybe,
    Sequence,
    TensorType,
    UnwritableError,
)
from onnxreduce_cli.model.graph.names import Names
from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.types.facts import Facts

#: The containers of a graph by name, those of the graphs around it included.
Environment = dict[str, Container]


class Writing:
    """A model whose containers are written out.

    Attributes:
        facts: the types and constants of its values.
        target: the opset that it is to be converted to.
        op: writes nodes.
        sequences: writes the operators on sequences as nodes on tensors.
        scope: the scope that is being written.
    """

    def __init__(self, main: Scope, facts: Facts, names: Names, target: int) -> None:
        """Begin with nothing written.

        Args:
            main: the main graph's scope.
            facts: what is known of the model's values.
            names: the names that its graphs use.
            target: the opset that it is to be converted to.
        """
        self.facts = facts
        self.target = target
        self.op = Emitter(main.opset or 0, target, names)
        self.sequences = Sequences(self.op)
        self.scope = main

    def inner(self, graph: GraphProto) -> Scope:
        """The scope of a graph within a graph."""
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
        """A tensor's dtype; raises `UnwritableError` where it is not known."""
        elem_type = self.tensor(name)[0]
        if not elem_type:
            raise UnwritableError(
                f"the dtype of {name!r} is not known", "state its type in the model's value_info"
            )
        return elem_type

    def number(self, name: str) -> int | str:
        """Return a position: a number if it is constant, else the name of its tensor."""
        array = self.facts.constant(self.scope, name)
        return name if array is None or array.size != 1 else int(array.reshape(-1)[0])

    def value(self, environment: Environment, name: str) -> Container | str:
        """Return the representation of a value as tensors; its own name if it is a tensor.

        Raises:
            UnwritableError: it is an input of the model, of a type that the target does not have.
        """
        value = environment.get(name, name)
        if isinstance(value, Given) and self.target < (15 if value.optional else 11):
            what = "a value that may be absent" if value.optional else "a sequence of tensors"
            raise UnwritableError(
                f"the model is given {value.name!r}, {what}, which nothing before opset "
                f"{15 if value.optional else 11} can hold",
                "choose a later opset, or let the model take tensors",
            )
        return value

    def sequence(self, environment: Environment, name: str) -> Sequence:
        """Return the representation of a sequence; raises `UnwritableError` if there is none."""
        value = self.value(environment, name)
        if isinstance(value, str | Maybe):
            raise UnwritableError(f"how {name!r} is made is not known", "choose a later opset")
        return value

    def of_given(self, node: NodeProto, sequence: Given) -> bool:
        """Emit a node that reads a sequence that stays one; return whether it differs."""
        if node.input[0] == sequence.name:
            return False
        copy = self.copy(node)
        copy.input[0] = sequence.name
        self.op.nodes.append(copy)
        return True

    def replace(self, node: NodeProto, op_type: str, name: str) -> None:
        """Emit an operator of one tensor in a node's place: with its output and its name."""
        self.op.replace(node, op_type, name)

    def copy(self, node: NodeProto) -> NodeProto:
        """A copy of a node, to be changed."""
        copy = NodeProto()
        copy.CopyFrom(node)
        return copy
