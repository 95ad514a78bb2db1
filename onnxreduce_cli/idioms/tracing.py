"""Patterns of idioms, made by running their definitions with names in place of values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import NamedTuple

from onnx import AttributeProto, NodeProto

from onnxreduce_cli.emit.builder import Operators, Value
from onnxreduce_cli.idioms.writer import Writer
from onnxreduce_cli.model.graph.values import ValueType

#: A definition: takes a `Writer` and the composite operator's inputs, and returns its output.
Definition = Callable[..., str]

#: The opset that patterns are written in.
_OPSET = 18


class Pattern(NamedTuple):
    """An idiom as nodes, to search a model for.

    Attributes:
        inputs: the names of the composite operator's inputs.
        producers: for each value that a node computes, that node.
        numbers: for each constant, its number or the attribute that holds it.
        reductions: for each output of a reduction over the composite operator's axes, whether it
            keeps its dimensions; False where the operator's keepdims says that.
        result: the composite operator's output.
        asides: values that nodes read and the composite operator does not, such as a shape.
    """

    inputs: tuple[str, ...]
    producers: Mapping[str, NodeProto]
    numbers: Mapping[str, float | str]
    reductions: Mapping[str, bool]
    result: str
    asides: frozenset[str] = frozenset()

    @property
    def root(self) -> NodeProto:
        """The node that computes the result."""
        return self.producers[self.result]


class _Untyped:
    """A look-up of types that knows none: the values of a pattern have no type."""

    def type(self, _: str) -> ValueType | None:
        return None

    def elem_type(self, _: str) -> int | None:
        return None

    def rank(self, _: str) -> int | None:
        return None


class _NodeRecorder(Operators):
    """Records the emitted nodes by their outputs."""

    opset = _OPSET

    def __init__(self) -> None:
        self.producers: dict[str, NodeProto] = {}

    def _fresh(self, op_type: str) -> str:
        return f"{op_type}.{len(self.producers)}"

    def _new(self) -> NodeProto:
        return NodeProto()

    def _accept(self, node: NodeProto, _: ValueType | None) -> _Untyped:
        self.producers[node.output[0]] = node
        return _Untyped()


class Tracer(Writer):
    """Writes an idiom as a pattern.

    The methods that a `Writer` lacks are for forms that are only searched for, never written.
    """

    def __init__(self) -> None:
        self.op = self.recorder = _NodeRecorder()
        self.numbers: dict[str, float | str] = {}
        self.reductions: dict[str, bool] = {}
        self.asides: set[str] = set()

    def number(self, value: float | str, default: float | None = None) -> Value:
        """Return the name of a constant."""
        name = f"number {value}"
        self.numbers[name] = value
        return Value(name, _Untyped())

    def reduced(self, op_type: str, data: str, *, keep: bool = True) -> str:
        """Return a reduction whose axes are those of the composite operator."""
        result = self.op.emit(op_type, data)
        self.reductions[result] = keep
        return result

    def aside(self, name: str) -> Value:
        """Return a value that the composite operator does not read; the condition checks it."""
        self.asides.add(name)
        return Value(name, _Untyped())

    def attribute(self, name: str) -> AttributeProto:
        """Return an attribute with any value, which the composite operator takes over."""
        return AttributeProto(name=name, ref_attr_name=name)


def trace(definition: Definition) -> Pattern:
    """Run a definition; its parameters without a default name the operator's inputs."""
    tracer = Tracer()
    parameters = list(inspect.signature(definition).parameters.values())[1:]
    names = tuple(item.name for item in parameters if item.default is item.empty)
    result = definition(tracer, *[Value(name, _Untyped()) for name in names])
    found = tracer.recorder.producers
    asides = frozenset(tracer.asides)
    return Pattern(names, found, tracer.numbers, tracer.reductions, str(result), asides)
