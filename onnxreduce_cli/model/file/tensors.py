"""The tensors that a model stores, in initializers and attributes at any depth."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from google.protobuf.message import Message
from onnx import SparseTensorProto, TensorProto

#: Tensors of more elements are weights; smaller ones may be axes or shapes, which plans depend on.
MOST_ELEMENTS = 65536

_TENSOR = TensorProto.DESCRIPTOR


def tensors(holder: Message, *, sparse: bool = True) -> Iterator[TensorProto]:
    """Yield every tensor in a model or a part of one: initializers and attributes, at any depth.

    Args:
        holder: the message to look in.
        sparse: whether the two parts of sparse tensors are wanted too.
    """
    waiting: list[Message] = [holder]
    while waiting:
        message = waiting.pop()
        if isinstance(message, TensorProto):
            yield message
            continue
        if isinstance(message, SparseTensorProto) and not sparse:
            continue
        for name, single in _names(message.DESCRIPTOR):
            if not single:
                waiting += reversed(getattr(message, name))
            elif message.HasField(name):
                waiting.append(getattr(message, name))


@cache
def _names(kind: Any) -> list[tuple[str, bool]]:
    return [
        (f.name, f.number in single_holders(kind)) for f in kind.fields if f.number in holders(kind)
    ][::-1]


@cache
def holders(kind: Any) -> dict[int, Any]:
    """Return the fields in which a message may hold tensors: their types by the fields' numbers."""
    return {f.number: f.message_type for f in kind.fields if _holds_tensors(f.message_type)}


@cache
def single_holders(kind: Any) -> frozenset[int]:
    """Return the numbers of the `holders` that are not repeated."""
    return frozenset(
        f.number for f in kind.fields if f.number in holders(kind) and not _is_repeated(f)
    )


@cache
def _holds_tensors(kind: Any) -> bool:
    """Return whether messages of a protobuf type are tensors, or contain some at any depth."""
    found, waiting = {kind}, [kind] if kind is not None else []
    while waiting:
        for field in waiting.pop().fields:
            if field.message_type is not None and field.message_type not in found:
                found.add(field.message_type)
                waiting.append(field.message_type)
    return _TENSOR in found


def _is_repeated(field: Any) -> bool:
    # Newer releases of protobuf name it, older ones have a number for it.
    named = getattr(field, "is_repeated", None)
    return bool(field.label == field.LABEL_REPEATED if named is None else named)
