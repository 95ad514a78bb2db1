"""The depth to which messages nest in a file: protobuf reads 100 levels, 32 of If."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from onnx import ModelProto

from onnxreduce_cli.model.file import wire

#: Messages within messages that protobuf reads: two for the main graph, and three for each graph
#: within a graph.
LIMIT = 100


def depth(content: bytes) -> int:
    """Return the depth to which messages nest in a serialised model, as far as it is well-formed.

    Beyond `LIMIT` the depth is a lower bound.
    """
    deepest = 0
    read = wire.in_memory(content)
    waiting: list[tuple[int, int, Any, int]] = [(0, len(content), ModelProto.DESCRIPTOR, 1)]
    while waiting and deepest <= LIMIT:
        start, end, message, level = waiting.pop()
        deepest = max(deepest, level)
        with suppress(wire.WireError):
            for field in wire.fields(read, start, end):
                known = message.fields_by_number.get(field.number)
                inner = None if known is None else known.message_type
                if inner is not None and field.kind == wire.DELIMITED:
                    waiting.append((field.body, field.end, inner, level + 1))
    return deepest
