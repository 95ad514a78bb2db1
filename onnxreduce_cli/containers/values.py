"""The tensors by which sequences and optional values are represented."""

from __future__ import annotations

from collections.abc import Sequence as Names
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
class Tensor:
    """A tensor, as the value of an optional one."""

    name: str
    elem_type: int


@dataclass(frozen=True, slots=True)
class Listed:
    """A sequence whose length is known.

    Attributes:
        items: its tensors by name.
        elem_type: their dtype.
        dims: the known dimensions of each; None if not even the rank is known.
    """

    items: tuple[str, ...]
    elem_type: int
    dims: tuple[Dims | None, ...]


@dataclass(frozen=True, slots=True)
class Stacked:
    """A sequence of tensors of one shape, stacked along a new first axis.

    Attributes:
        stack: the tensor.
        elem_type: the dtype.
        dims: the dimensions of each element.
    """

    stack: str
    elem_type: int
    dims: Dims


@dataclass(frozen=True, slots=True)
class Packed:
    """A sequence of tensors of one rank, one after the other.

    Attributes:
        values: their elements, of rank 1.
        ends: int64 of [length + 1]: 0, and the offset at which each ends in `values`.
        shapes: int64 of [length, rank]: the shape of each.
        elem_type: the dtype.
        rank: how many dimensions each has, at least one.
    """

    values: str
    ends: str
    shapes: str
    elem_type: int
    rank: int


@dataclass(frozen=True, slots=True)
class Given:
    """A sequence, or an optional value, that stays one, as the model is given it.

    Attributes:
        name: its name.
        elem_type: the dtype of its tensors.
        dims: their known dimensions; None if not even the rank is known.
        optional: whether it is an optional value.
    """

    name: str
    elem_type: int
    dims: Dims | None
    optional: bool = False


Sequence = Listed | Stacked | Packed | Given


@dataclass(frozen=True, slots=True)
class Maybe:
    """An optional value.

    Attributes:
        has: whether there is a value, or the name of a bool scalar that says so at run time.
        value: the value; None where there never is one.
    """

    has: bool | str
    value: Tensor | Sequence | None


Container = Sequence | Maybe
Value = Tensor | Container


def parts(value: Value) -> tuple[str, ...]:
    """Return the names of the tensors that represent a value."""
    match value:
        case Tensor(name, _):
            return (name,)
        case Listed(items):
            return items
        case Stacked(stack):
            return (stack,)
        case Packed(values, ends, shapes):
            return (values, ends, shapes)
        case Maybe(has, content):
            own = (has,) if isinstance(has, str) else ()
            return own + (() if content is None else parts(content))
    raise TypeError("no tensor stands for what stays as given")


def types(kind: Value) -> list[TensorType]:
    """Return dtype and dimensions of each of these tensors, for any value of the kind."""
    match kind:
        case Tensor(_, elem_type):
            return [(elem_type, None)]
        case Listed(_, elem_type, dims):
            return [(elem_type, each) for each in dims]
        case Stacked(_, elem_type, dims):
            return [(elem_type, (None, *dims))]
        case Packed():
            ends: TensorType = (TensorProto.INT64, (None,))
            shapes: TensorType = (TensorProto.INT64, (None, kind.rank))
            return [(kind.elem_type, (None,)), ends, shapes]
        case Maybe(has, content):
            own: list[TensorType] = [(TensorProto.BOOL, ())] if isinstance(has, str) else []
            return own + ([] if content is None else types(content))
    raise TypeError("no tensor stands for what stays as given")


def made_of(kind: Value, names: Names[str]) -> Value:
    """Return the value of a kind that these tensors represent."""
    match kind:
        case Tensor():
            return replace(kind, name=names[0])
        case Listed():
            return replace(kind, items=tuple(names))
        case Stacked():
            return replace(kind, stack=names[0])
        case Packed():
            return replace(kind, values=names[0], ends=names[1], shapes=names[2])
        case Maybe(has, content):
            own = 1 if isinstance(has, str) else 0
            value = None if content is None else made_of(content, names[own:])
            assert not isinstance(value, Maybe)
            return Maybe(names[0] if own else has, value)
    raise TypeError("no tensor stands for what stays as given")


def shared(first: Dims | None, second: Dims | None) -> Dims | None:
    """Return the dimensions that two shapes have in common; None where the ranks differ."""
    if first is None or second is None or len(first) != len(second):
        return None
    pairs = zip(first, second, strict=True)
    return tuple(a if isinstance(a, int) and a == b else None for a, b in pairs)
