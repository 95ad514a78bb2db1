"""Sequences and optional values among a model's own inputs and outputs."""

from __future__ import annotations

from onnx import GraphProto, NodeProto, TypeProto

from onnxreduce_cli.containers.values import Given, Maybe, Sequence, Tensor, UnwritableError
from onnxreduce_cli.containers.writing import Environment, Writing
from onnxreduce_cli.model.graph.names import Names
from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.graph.values import elem_type_of, from_proto
from onnxreduce_cli.model.types.facts import Facts


class Interface(Writing):
    """Makes the model's outputs of the tensors that represent them."""

    def __init__(self, main: Scope, facts: Facts, names: Names, target: int) -> None:
        """Begin with nothing written; see `Writing`."""
        super().__init__(main, facts, names, target)
        self._main = main

    def give_out(self, node: NodeProto, environment: Environment) -> None:
        """Emit the model's outputs from the tensors that represent them."""
        for name in node.output:
            if name not in self._main.outputs or name not in environment:
                continue
            value = environment[name]
            if isinstance(value, Maybe):
                self._give_optional(name, value)
                continue
            if self.target < 11:
                raise UnwritableError(
                    f"the model gives {name!r}, a sequence of tensors, which nothing before opset "
                    "11 can hold",
                    "choose a later opset, or let the model give tensors",
                )
            self._give_sequence(name, value)

    def _give_sequence(self, name: str, value: Sequence) -> None:
        if isinstance(value, Given) and value.optional:
            raise UnwritableError(
                f"the model gives {name!r}, the optional value that it is given, and no operator "
                "before opset 16 passes that on",
                "choose a later opset",
            )
        self.sequences.as_given(value, name)

    def _give_optional(self, name: str, value: Maybe) -> None:
        if self.target < 15:
            raise UnwritableError(
                f"the model gives {name!r}, a value that may be absent, which nothing before opset "
                "15 can hold",
                "choose a later opset, or let the model give tensors",
            )
        if isinstance(value.has, str):
            raise UnwritableError(
                f"whether {name!r} is there is only known at run time, and no If before opset 16 "
                "gives a value that may be absent",
                "choose a later opset",
            )
        if not value.has:
            graph = self._main.container
            assert isinstance(graph, GraphProto)
            info = next(item for item in graph.output if item.name == name)
            proto = TypeProto()
            proto.CopyFrom(info.type.optional_type.elem_type)
            self.op.Optional(outputs=[name], type=proto)
            return
        content = value.value
        assert content is not None
        if isinstance(content, Tensor | Given):
            made = content.name
        else:
            made = self.op.fresh("sequence")
            self.sequences.as_given(content, made)
        self.op.Optional(made, outputs=[name])


def given_to(graph: GraphProto) -> Environment:
    """The sequences and optional values among a graph's inputs, by name."""
    found: Environment = {}
    for value in graph.input:
        given = _given(value.name, value.type)
        if given is not None:
            found[value.name] = given
    return found


def _given(name: str, proto: TypeProto) -> Given | None:
    """A sequence or optional value that the model is given; None for a tensor."""
    which = proto.WhichOneof("value")
    if which == "optional_type":
        return Given(name, 0, None, optional=True)
    if which != "sequence_type":
        return None
    known = from_proto(proto.sequence_type.elem_type)
    elem_type = None if known is None else elem_type_of(known.kind)
    return Given(name, elem_type or 0, None if known is None else known.dims)
