"""Mutations of a model's fields: what parses, but may say anything."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import ModelProto

_INTEGERS = (0, 1, -1, 2, 3, 7, 13, 63, 64, 100, 1000, (1 << 31) - 1, -(1 << 31), 1 << 40)
_EXTREMES = ((1 << 63) - 1, -(1 << 63), 1 << 62)
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e30, float("inf"), float("-inf"), float("nan"))
_NAMES = (
    "", "x", "X", "\x1b[2J", "a\nOK: can be converted", "\u202ename", "../../x", "/dev/zero",
    "a\x00b", "%s%n", "{0}", "n" * 70_000, "ai.onnx", "com.microsoft", "If", "Loop", "Softmax",
    "ReduceSum", "Constant", "axes", "axis", "keepdims", "body", "value",
)  # fmt: skip
#: Values of 8 bits that are no UTF-8, which go into a string by their serialised form.
_NO_TEXT = b"\xff\xfe\x80"


def mutated(model: ModelProto, rng: random.Random) -> bytes:
    """The model, serialised, after one to eight mutations."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        rng.choice(_MUTATIONS)(model, rng)
    content: bytes = model.SerializeToString()
    if rng.random() < 0.05:
        content = _without_text(content, rng)
    return content


def _messages(model: Message) -> list[Message]:
    """The model's messages, those within tensors' data left out."""
    found: list[Message] = [model]
    for message in found:
        for field, value in message.ListFields():
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                found.extend(value if field.is_repeated else [value])
        if len(found) > 20_000:
            break
    return found


def _set(model: Message, rng: random.Random) -> None:
    """Give a field, whether it is set or not, another value."""
    message = rng.choice(_messages(model))
    field = rng.choice(list(message.DESCRIPTOR.fields))
    value = _value(field, rng, model)
    if value is None:
        return
    if not field.is_repeated:
        setattr(message, field.name, value)
        return
    items = getattr(message, field.name)
    if items and rng.random() < 0.7:
        items[rng.randrange(len(items))] = value
    else:
        items.append(value)


def _value(field: FieldDescriptor, rng: random.Random, model: Message) -> Any:
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        return None
    if field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
        name = rng.choice(_NAMES) if rng.random() < 0.5 else _some_name(model, rng)
        return name.encode() if field.type == FieldDescriptor.TYPE_BYTES else name
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return rng.choice(_FLOATS)
    if field.type == FieldDescriptor.TYPE_ENUM:
        return rng.choice([item.number for item in field.enum_type.values])
    number = rng.choice(_INTEGERS)
    if field.type == FieldDescriptor.TYPE_INT64 and rng.random() < 0.3:
        number = rng.choice(_EXTREMES)
    if field.type == FieldDescriptor.TYPE_UINT64:
        number = abs(number)
    if field.type == FieldDescriptor.TYPE_INT32:
        number = max(-(1 << 31), min(number, (1 << 31) - 1))
    return number


def _some_name(model: Message, rng: random.Random) -> str:
    """A name that the model has somewhere, so that what is mutated refers to what is there."""
    names = [
        value
        for message in _messages(model)
        for field, value in message.ListFields()
        if field.type == FieldDescriptor.TYPE_STRING and not field.is_repeated
    ]
    return rng.choice(names) if names else "x"


def _clear(model: Message, rng: random.Random) -> None:
    message = rng.choice(_messages(model))
    fields = [field for field, _ in message.ListFields()]
    if fields:
        message.ClearField(rng.choice(fields).name)


def _repeated(model: Message, rng: random.Random) -> tuple[Any, int] | None:
    """A repeated field with items, and the index of one."""
    found = [
        getattr(message, field.name)
        for message in _messages(model)
        for field, value in message.ListFields()
        if field.is_repeated
    ]
    if not found:
        return None
    items = rng.choice(found)
    return items, rng.randrange(len(items))


def _delete_item(model: Message, rng: random.Random) -> None:
    found = _repeated(model, rng)
    if found:
        items, index = found
        del items[index]


def _repeat_item(model: Message, rng: random.Random) -> None:
    found = _repeated(model, rng)
    if found:
        items, index = found
        for _ in range(rng.choice((1, 1, 2, 40))):
            items.extend([items[index]])


def _swap_items(model: Message, rng: random.Random) -> None:
    found = _repeated(model, rng)
    if not found:
        return
    items, index = found
    kept = list(items)
    other = rng.randrange(len(kept))
    kept[index], kept[other] = kept[other], kept[index]
    copies = [type(item).FromString(item.SerializeToString()) if isinstance(item, Message) else item
              for item in kept]  # fmt: skip
    del items[:]
    items.extend(copies)


def _transplant(model: Message, rng: random.Random) -> None:
    """Copy one message over another of its kind: a graph into a node within it, say."""
    messages = _messages(model)
    source = rng.choice(messages)
    alike = [message for message in messages if message.DESCRIPTOR is source.DESCRIPTOR]
    target = rng.choice(alike)
    if target is not source and source.ByteSize() < 1 << 20:
        copy = type(source).FromString(source.SerializeToString())
        target.CopyFrom(copy)


def _without_text(content: bytes, rng: random.Random) -> bytes:
    """Put what is no UTF-8 into a place where letters stand."""
    places = [index for index in range(len(content) - 3) if content[index : index + 3].isalpha()]
    if not places:
        return content
    place = rng.choice(places)
    return content[:place] + _NO_TEXT + content[place + 3 :]


_MUTATIONS: tuple[Callable[[Message, random.Random], None], ...] = (
    _set, _set, _set, _set, _clear, _delete_item, _repeat_item, _swap_items, _transplant,
)  # fmt: skip
