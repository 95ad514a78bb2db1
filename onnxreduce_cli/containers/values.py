"""Representations of sequences and optional values by tensors."""

from __future__ import annotations

from dataclasses import dataclass, replace

from onnx import TensorProto

from onnxreduce_cli.model.graph.values import Dims

#: A tensor's dtype and dimensions as far as they are known.
TensorType = tuple[int, Dims | None]


class UnwritableError(Exception):
    """A node's sequence or optional value cannot be written out.

    Attributes:
        reason: why, as the end of a sentence that begins with the node.
        advice: what the user can do about it.
    """

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.advice = advice


@dataclass(frozen=True, slots=True)
class TensorValue:
    """A tensor as the element of an optional value."""

    name: str
    elem_type: int


@dataclass(frozen=True, slots=True)
class ListedSequence:
    """A sequence of known length, with a tensor for each element.

    Attributes:
        items: the names of the tensors.
        elem_type: their dtype.
        dims: the dimensions of each as far as they are known; None if the rank is not.
    """

    items: tuple[str, ...]
    elem_type: int
    dims: tuple[Dims | None, ...]


@dataclass(frozen=True, slots=True)
class StackedSequence:
    """A sequence of tensors of one shape, as one tensor with a new first axis.

    Attributes:
        stack: the tensor.
        elem_type: the dtype.
        dims: the dimensions of each element.
    """

    stack: str
    elem_type: int
    dims: Dims


@dataclass(frozen=True, slots=True)
class PackedSequence:
    """A sequence of tensors of one rank, flattened and concatenated.

    Attributes:
        values: the elements of all, of rank 1.
        ends: int64 of shape [length + 1]: 0, and the index in `values` at which each ends.
        shapes: int64 of shape [length, rank]: the shape of each.
        elem_type: the dtype.
        rank: the rank of each, at least 1.
    """

    values: str
    ends: str
    shapes: str
    elem_type: int
    rank: int


@dataclass(frozen=True, slots=True)
class UnchangedContainer:
    """An input of the model that stays a sequence or an optional value.

    Attributes:
        name: its name.
        elem_type: the dtype of its tensors.
        dims: their dimensions as far as they are known; None if the rank is not.
        optional: whether it is an optional value.
    """

    name: str
    elem_type: int
    dims: Dims | None
    optional: bool = False


SequenceValue = ListedSequence | StackedSequence | PackedSequence | UnchangedContainer


@dataclass(frozen=True, slots=True)
class OptionalValue:
    """An optional value.

    Attributes:
        has: whether it has an element, or the name of a bool scalar that says so at run time.
        value: the element; None where it never has one.
    """

    has: bool | str
    value: TensorValue | SequenceValue | None


Container = SequenceValue | OptionalValue
Representation = TensorValue | Container


def tensor_names(value: Representation) -> tuple[str, ...]:
    """Return the names of the tensors that represent a value."""
    match value:
        case TensorValue(name, _):
            return (name,)
        case ListedSequence(items):
            return items
        case StackedSequence(stack):
            return (stack,)
        case PackedSequence(values, ends, shapes):
            return (values, ends, shapes)
        case OptionalValue(has, content):
            own = (has,) if isinstance(has, str) else ()
            return own + (() if content is None else tensor_names(content))
    raise TypeError("no tensor stands for what stays as given")


def tensor_types(kind: Representation) -> list[TensorType]:
    """Return the types of the tensors of a representation."""
    match kind:
        case TensorValue(_, elem_type):
            return [(elem_type, None)]
        case ListedSequence(_, elem_type, dims):
            return [(elem_type, each) for each in dims]
        case StackedSequence(_, elem_type, dims):
            return [(elem_type, (None, *dims))]
        case PackedSequence():
            ends: TensorType = (TensorProto.INT64, (None,))
            shapes: TensorType = (TensorProto.INT64, (None, kind.rank))
            return [(kind.elem_type, (None,)), ends, shapes]
        case OptionalValue(has, content):
            own: list[TensorType] = [(TensorProto.BOOL, ())] if isinstance(has, str) else []
            return own + ([] if content is None else tensor_types(content))
    raise TypeError("no tensor stands for what stays as given")


def from_tensors(kind: Representation, names: list[str] | tuple[str, ...]) -> Representation:
    """Return a value of a representation, with the given tensors."""
    match kind:
        case TensorValue():
            return replace(kind, name=names[0])
        case ListedSequence():
            return replace(kind, items=tuple(names))
        case StackedSequence():
            return replace(kind, stack=names[0])
        case PackedSequence():
            return replace(kind, values=names[0], ends=names[1], shapes=names[2])
        case OptionalValue(has, content):
            own = 1 if isinstance(has, str) else 0
            value = None if content is None else from_tensors(content, names[own:])
            assert not isinstance(value, OptionalValue)
            return OptionalValue(names[0] if own else has, value)
    raise TypeError("no tensor stands for what stays as given")


def shared(first: Dims | None, second: Dims | None) -> Dims | None:
    """Return the dimensions that two shapes have in common; None where the ranks differ."""
    if first is None or second is None or len(first) != len(second):
        return None
    pairs = zip(first, second, strict=True)
    return tuple(a if isinstance(a, int) and a == b else None for a, b in pairs)
