"""Representations of values that graphs take or give, and conversion of one to another."""

from __future__ import annotations

import numpy as np
from onnx import ValueInfoProto

from onnxreduce_cli.containers.emitter import Emitter
from onnxreduce_cli.containers.sequences import Sequences
from onnxreduce_cli.containers.values import (
    Container,
    Given,
    Listed,
    Maybe,
    Tensor,
    UnwritableError,
    Value,
    made_of,
    parts,
    types,
)
from onnxreduce_cli.model.graph.values import Dims, elem_type_of


class Kinds:
    """Brings values to one kind."""

    def __init__(self, op: Emitter, sequences: Sequences) -> None:
        """Write by these."""
        self._op = op
        self._sequences = sequences

    def alone(self, value: Value) -> Value:
        """The kind of a value, or the one that stands for it where it cannot stay as given."""
        match value:
            case Maybe(has, content) if content is not None:
                return _maybe(has, self.alone(content))
            case Given(optional=True):
                raise UnwritableError(
                    f"{value.name!r}, an optional value that the model is given, goes into or out "
                    "of a graph within a graph, which nothing before opset 16 lets in",
                    "choose a later opset",
                )
            case Tensor() | Maybe():
                return value
        return self._sequences.alone(value)

    def carried(self, value: Container, stated: str | None) -> Value:
        """The kind of a value that a Loop begins with: what is not there may be there later.

        Args:
            value: the value.
            stated: the type of what the body takes, as schemas spell it; None if not known.
        """
        kind = self.alone(value)
        if not isinstance(kind, Maybe) or kind.value is not None or stated is None:
            return kind
        held = stated.removeprefix("optional(").removesuffix(")")
        listed = held.startswith("seq(")
        elem_type = elem_type_of(held[len("seq(") : -1] if listed else held)
        if elem_type is None:
            return kind
        return Maybe("", Listed((), elem_type, ()) if listed else Tensor("", elem_type))

    def joined(self, first: Value, second: Value) -> Value:
        """The kind that either value can be brought to."""
        first, second = self.alone(first), self.alone(second)
        if isinstance(first, Tensor) and isinstance(second, Tensor):
            return first
        if isinstance(first, Maybe) and isinstance(second, Maybe):
            has = first.has if isinstance(first.has, bool) and first.has is second.has else ""
            if first.value is None or second.value is None:
                return Maybe(has, first.value or second.value)
            return _maybe(has, self.joined(first.value, second.value))
        if isinstance(first, Tensor | Maybe) or isinstance(second, Tensor | Maybe):
            raise UnwritableError("it gives values of different kinds as one", "mend the model")
        return self._sequences.joined(first, second)

    def brought_to(self, value: Value | None, kind: Value) -> Value:
        """A value as one of a kind that it was joined to; any of that kind where there is none."""
        if isinstance(kind, Maybe):
            assert isinstance(value, Maybe)
            has = value.has
            if isinstance(kind.has, str) and isinstance(has, bool):
                has = self._op.constant(np.array(has), "has")
            if kind.value is None:
                return Maybe(has, None)
            return _maybe(has, self.brought_to(value.value, kind.value))
        if isinstance(kind, Tensor):
            return value or Tensor(self._op.filled((), kind.elem_type), kind.elem_type)
        if value is None and isinstance(kind, Listed):
            zero = self._op.filled((), kind.elem_type)
            zeros = [self._expanded(zero, dims) for dims in kind.dims]
            return Listed(tuple(zeros), kind.elem_type, kind.dims)
        value = value or Listed((), kind.elem_type, ())
        assert not isinstance(value, Tensor | Maybe)
        return self._sequences.brought_to(value, kind)

    def _expanded(self, name: str, dims: Dims | None) -> str:
        """A scalar at each place of dimensions; nothing along those that are not known."""
        sizes = [dim if isinstance(dim, int) else 0 for dim in dims or ()]
        return self._op.Expand(name, self._op.ints(*sizes)) if sizes else name

    def given_by_graph(self, value: Value, kind: Value) -> list[ValueInfoProto]:
        """Return the outputs of a graph that represent a value of a kind; emits Identity nodes."""
        names = parts(self.brought_to(value, kind))
        copies = [self._op.Identity(name) for name in names]
        return list(map(self._op.info, copies, types(kind)))

    def entering(self, name: str, kind: Value) -> Container:
        """A value of a kind made of new tensors, of which no more is known than of the kind."""
        names = [self._op.fresh(name or "unused", known) for known in types(kind)]
        value = made_of(kind, names)
        assert not isinstance(value, Tensor)
        return value


def signature(kind: Value | None) -> object:
    """Return a key that is equal for equal kinds."""
    if kind is None:
        return None
    has = kind.has if isinstance(kind, Maybe) and isinstance(kind.has, bool) else ""
    return (type(kind), has, types(kind))


def _maybe(has: bool | str, value: Value) -> Maybe:
    assert not isinstance(value, Maybe)
    return Maybe(has, value)
