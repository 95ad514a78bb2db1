"""Common representations of values that meet at the inputs and outputs of graphs."""

from __future__ import annotations

import numpy as np
from onnx import ValueInfoProto

from onnxreduce_cli.containers.emitter import Emitter
from onnxreduce_cli.containers.sequences import SequenceWriter
from onnxreduce_cli.containers.values import (
    Container,
    ListedSequence,
    OptionalValue,
    Representation,
    TensorValue,
    UnchangedContainer,
    UnwritableError,
    from_tensors,
    tensor_names,
    tensor_types,
)
from onnxreduce_cli.model.graph.values import Dims, elem_type_of


class RepresentationUnifier:
    """Finds common representations and converts values to them.

    A representation is given by any value that has it; its tensors' names do not matter.
    """

    def __init__(self, op: Emitter, sequences: SequenceWriter) -> None:
        """Emit nodes by these."""
        self._op = op
        self._sequences = sequences

    def without_unchanged(self, value: Representation) -> Representation:
        """Return the representation of a value as tensors, also where it is unchanged so far."""
        match value:
            case OptionalValue(has, content) if content is not None:
                return _optional(has, self.without_unchanged(content))
            case UnchangedContainer(optional=True):
                raise UnwritableError(
                    f"{value.name!r}, an optional value that the model is given, goes into or out "
                    "of a graph within a graph, which nothing before opset 16 lets in",
                    "choose a later opset",
                )
            case TensorValue() | OptionalValue():
                return value
        return self._sequences.without_unchanged(value)

    def loop_representation(self, value: Container, stated: str | None) -> Representation:
        """Return the representation of a loop-carried value; an empty optional may get a value.

        Args:
            value: the initial value.
            stated: the type of the body's input, as schemas spell it; None if not known.
        """
        kind = self.without_unchanged(value)
        if not isinstance(kind, OptionalValue) or kind.value is not None or stated is None:
            return kind
        held = stated.removeprefix("optional(").removesuffix(")")
        listed = held.startswith("seq(")
        elem_type = elem_type_of(held[len("seq(") : -1] if listed else held)
        if elem_type is None:
            return kind
        return OptionalValue(
            "", ListedSequence((), elem_type, ()) if listed else TensorValue("", elem_type)
        )

    def common(self, first: Representation, second: Representation) -> Representation:
        """Return a representation that both values can be converted to."""
        first, second = self.without_unchanged(first), self.without_unchanged(second)
        if isinstance(first, TensorValue) and isinstance(second, TensorValue):
            return first
        if isinstance(first, OptionalValue) and isinstance(second, OptionalValue):
            has = first.has if isinstance(first.has, bool) and first.has is second.has else ""
            if first.value is None or second.value is None:
                return OptionalValue(has, first.value or second.value)
            return _optional(has, self.common(first.value, second.value))
        if isinstance(first, TensorValue | OptionalValue) or isinstance(
            second, TensorValue | OptionalValue
        ):
            raise UnwritableError(
                "it gives values of different kinds as one",
                "mend the model: let all branches give the same type",
            )
        return self._sequences.common(first, second)

    def converted(self, value: Representation | None, kind: Representation) -> Representation:
        """Return a value in a common representation; for None any value that has it."""
        if isinstance(kind, OptionalValue):
            assert isinstance(value, OptionalValue)
            has = value.has
            if isinstance(kind.has, str) and isinstance(has, bool):
                has = self._op.constant(np.array(has), "has")
            if kind.value is None:
                return OptionalValue(has, None)
            return _optional(has, self.converted(value.value, kind.value))
        if isinstance(kind, TensorValue):
            return value or TensorValue(self._op.filled((), kind.elem_type), kind.elem_type)
        if value is None and isinstance(kind, ListedSequence):
            zero = self._op.filled((), kind.elem_type)
            zeros = [self._expanded(zero, dims) for dims in kind.dims]
            return ListedSequence(tuple(zeros), kind.elem_type, kind.dims)
        value = value or ListedSequence((), kind.elem_type, ())
        assert not isinstance(value, TensorValue | OptionalValue)
        return self._sequences.converted(value, kind)

    def _expanded(self, name: str, dims: Dims | None) -> str:
        """Return a scalar expanded to dimensions, with size 0 for unknown ones."""
        sizes = [dim if isinstance(dim, int) else 0 for dim in dims or ()]
        return self._op.Expand(name, self._op.ints(*sizes)) if sizes else name

    def graph_outputs(self, value: Representation, kind: Representation) -> list[ValueInfoProto]:
        """Return the outputs of a graph that represent a value; emits an Identity for each."""
        names = tensor_names(self.converted(value, kind))
        copies = [self._op.Identity(name) for name in names]
        return list(map(self._op.info, copies, tensor_types(kind)))

    def in_new_tensors(self, name: str, kind: Representation) -> Container:
        """Return a value of a representation with new tensors."""
        names = [self._op.fresh(name or "unused", known) for known in tensor_types(kind)]
        value = from_tensors(kind, names)
        assert not isinstance(value, TensorValue)
        return value


def representation_key(kind: Representation | None) -> object:
    """Return a key that is equal for equal representations."""
    if kind is None:
        return None
    has = kind.has if isinstance(kind, OptionalValue) and isinstance(kind.has, bool) else ""
    return (type(kind), has, tensor_types(kind))


def _optional(has: bool | str, value: Representation) -> OptionalValue:
    assert not isinstance(value, OptionalValue)
    return OptionalValue(has, value)
