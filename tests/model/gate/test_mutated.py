"""Models of which any field was changed: what is wrong is said, and nothing else is raised."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto

import onnxreduce_cli
from onnxreduce_cli.engine.inspection import inspect
from onnxreduce_cli.errors import OnnxreduceError
from tests.support import model

#: Models whose nodes change where they go to another opset.
TEXTS = {
    "reductions": """<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
        g (float[2,3] x, float[N] w) => (float[2,3] y, float[1,1] z) <int64[1] axes = {1}> {
            a = ReduceMean <keepdims = 1> (x, axes)
            sub = Sub (x, a)
            b = Softmax <axis = -1> (sub)
            y = local.F <alpha: float = 2.0> (b)
            k = Constant <value_ints = [0]> ()
            s = Unsqueeze (w, k)
            z = ReduceSum <noop_with_empty_axes = 1> (s)
        }
        <domain: "local", opset_import: ["" : 18]>
        F <alpha> (p) => (q) { r = HardSwish (p) q = Elu <alpha: float = @alpha> (r) }
    """,
    "control flow": """<ir_version: 10, opset_import: ["" : 18]>
        g (float[2,3] x, bool c, int64 n) => (float[2,1] y, float[3] s, float[2,3] z) {
            one = Constant <value = int64[1] {1}> ()
            b = If (c) <
                then_branch = t () => (float[2,1] p) { p = ReduceL2 (x, one) },
                else_branch = e () => (float[2,1] q) { q = ReduceMin (x, one) }
            >
            y = Loop (n, c, b) <body = u (int64 i, bool k, float[2,1] v) => (bool o, float[2,1] w)
                { o = Identity (k) w = HardSwish (v) }>
            zero = Constant <value = float[3] {1, 2, 3}> ()
            s, z = Scan <num_scan_inputs = 1, body = r (float[3] d, float[3] f) => (float[3] h,
                float[3] j) { h = Add (d, f) j = Mish (f) }> (zero, x)
        }""",
    "attributes": """<ir_version: 9, opset_import: ["" : 19]>
        g (float[1,2,4,4] x) => (float[1,2,A,B] y, float[1,C] z, int64[D,E] i)
        <int64[4] sizes = {1, 2, 8, 8}, int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}> {
            a = Resize <mode = "linear", coordinate_transformation_mode = "half_pixel">
                (x, , , sizes)
            b = Pad <mode = "reflect"> (a, pads)
            y = AveragePool <kernel_shape = [2, 2], ceil_mode = 1, strides = [2, 2]> (b)
            c = Cast <to = 11> (y)
            d, e = Split <axis = 1, num_outputs = 2> (c)
            f = Flatten <axis = 1> (d)
            z = CastLike (f, x)
            i = NonZero (z)
        }""",
}

#: Numbers of which some are no axis, no size, no dtype and no opset.
NUMBERS = (0, 1, -1, 2, 7, 99, 1 << 31, -(1 << 62), (1 << 63) - 1)

#: Stands for bytes that are no text, which cannot be set but come in files.
NO_TEXT = "~~~~~"


def messages(message: Message) -> Iterator[Message]:
    """The messages within a message, itself first."""
    yield message
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in [value] if isinstance(value, Message) else value:
                yield from messages(inner)


def value_of(field: FieldDescriptor, present: Message, data: st.DataObject) -> Any:
    """Another value for a field of a number, an enumeration or a string."""
    if field.type == FieldDescriptor.TYPE_ENUM:
        return data.draw(st.sampled_from([value.number for value in field.enum_type.values]))
    if field.type == FieldDescriptor.TYPE_STRING:
        names = sorted({text for text in _names(present) if text} | {"", NO_TEXT, "new"})
        return data.draw(st.sampled_from(names))
    if field.type == FieldDescriptor.TYPE_BYTES:
        return data.draw(st.sampled_from([b"", b"\xff", b"linear", bytes(9)]))
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return data.draw(st.sampled_from([0.0, -1.0, float("nan"), float("inf")]))
    small = field.type in (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_UINT32)
    least = 0 if field.type in (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_UINT32) else None
    return data.draw(
        st.sampled_from(
            [n for n in NUMBERS if (least is None or n >= 0) and (not small or abs(n) < 1 << 31)]
        )
    )


def _names(found: Message) -> Iterator[str]:
    for message in messages(found):
        for field, value in message.ListFields():
            if field.type == FieldDescriptor.TYPE_STRING:
                yield from [value] if isinstance(value, str) else value


def mutate(found: ModelProto, data: st.DataObject) -> None:
    """Change one field somewhere in a model: clear it, repeat it, or give it another value."""
    message = data.draw(st.sampled_from(list(messages(found))))
    field = data.draw(st.sampled_from(list(message.DESCRIPTOR.fields)))
    value = getattr(message, field.name)
    repeated = hasattr(value, "append")
    how = data.draw(st.sampled_from(["clear", "other", "again"]))
    if how == "clear":
        if repeated and value:
            del value[data.draw(st.integers(0, len(value) - 1))]
        else:
            message.ClearField(field.name)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        kind = field.message_type
        others = [item for item in messages(found) if item.DESCRIPTOR is kind]
        other = type(value)() if not others and not repeated else None
        if others:
            copy = type(others[0])()
            copy.CopyFrom(data.draw(st.sampled_from(others)))
            other = copy
        if other is None:
            return
        if repeated:
            value.add().CopyFrom(other)
        else:
            value.CopyFrom(other)
    elif repeated and (how == "again" or not value):
        value.append(value_of(field, found, data))
    elif repeated:
        value[data.draw(st.integers(0, len(value) - 1))] = value_of(field, found, data)
    else:
        setattr(message, field.name, value_of(field, found, data))


def broken(found: ModelProto) -> ModelProto:
    """The model with bytes that are no text where `NO_TEXT` stands."""
    content: bytes = found.SerializeToString()
    return ModelProto.FromString(content.replace(NO_TEXT.encode(), b"\xff\xc0a\xfe\x80"))


@pytest.mark.parametrize("name", TEXTS)
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_nothing_else_is_raised(name: str, data: st.DataObject) -> None:
    found = model(TEXTS[name])
    for _ in range(data.draw(st.integers(1, 3))):
        mutate(found, data)
    given_model = broken(found)
    opset = data.draw(st.sampled_from([7, 10, 13, 21]))
    for work in (
        lambda: onnxreduce_cli.convert(given_model, opset, check=False),
        lambda: inspect(given_model),
    ):
        with suppress(OnnxreduceError):
            work()
