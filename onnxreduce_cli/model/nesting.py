"""Graphs within graphs, deeper than the 32 levels of If that protobuf parses by itself."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from google.protobuf.message import DecodeError
from onnx import ModelProto

from onnxreduce_cli.model import wire

#: Messages within messages up to which models are read, three for each graph within a graph. Much
#: deeper ones would overflow the stack of protobuf's parser.
DEEPEST = 1000

#: Whether a deep model was read: its parts cannot be copied with the usual limit.
_deep = False


def parse(content: bytes) -> ModelProto:
    """Parse a model in protobuf's wire format, nested up to `DEEPEST`.

    Raises:
        DecodeError: the bytes are no model, or nest deeper.
    """
    global _deep
    if _deep:
        # What comes after a deep model is first read with the usual limit again.
        _lift_limit(False)
    try:
        return ModelProto.FromString(content)
    except DecodeError:
        if not 100 <= depth(content) <= DEEPEST or not _lift_limit(True):
            raise
        _deep = True
        return ModelProto.FromString(content)
    finally:
        if _deep:
            _lift_limit(True)


def depth(content: bytes) -> int:
    """Return the depth to which messages nest in a serialised model, as far as it is well-formed.

    Beyond `DEEPEST` the depth is a lower bound.
    """
    deepest = 0
    read = wire.in_memory(content)
    waiting: list[tuple[int, int, Any, int]] = [(0, len(content), ModelProto.DESCRIPTOR, 1)]
    while waiting and deepest <= DEEPEST:
        start, end, message, level = waiting.pop()
        deepest = max(deepest, level)
        with suppress(wire.WireError):
            for field in wire.fields(read, start, end):
                known = message.fields_by_number.get(field.number)
                inner = None if known is None else known.message_type
                if inner is not None and field.kind == wire.DELIMITED:
                    waiting.append((field.body, field.end, inner, level + 1))
    return deepest


def _lift_limit(lifted: bool) -> bool:
    """Lift protobuf's limit of 100 nested messages, or restore it; return whether that works."""
    try:
        from google._upb import _message
    except ImportError:
        return False  # Another implementation, with a limit of its own.
    _message.SetAllowOversizeProtos(lifted)
    return True
