"""Removal of metadata, such as doc strings, which do not affect what a model computes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto

from onnxreduce_cli.model.file.tensors import tensors
from onnxreduce_cli.model.graph.scope import Scope, scopes

#: Where metadata is removed: from nodes, from functions with everything in them, or everywhere.
Strip = Literal["nodes", "functions", "all"]


def strip_metadata(model: ModelProto, of: Strip) -> int:
    """Remove doc strings and metadata, in place.

    Args:
        model: the model.
        of: ``nodes`` for all nodes; ``functions`` for functions with the nodes and values in them;
            ``all`` for everything, the model itself included.
            Producer, domain and version of the model stay: they are fields of their own.

    Returns:
        the number of bytes removed from the model.
    """
    before: int = model.ByteSize()
    found = scopes(model)
    if of == "functions":
        found = [scope for scope in found if scope.function is not None]
    for scope in found:
        for node in scope.container.node:
            _strip(node)
            _strip_all(node.attribute)
        if of != "nodes":
            _strip_all(_stated(scope))
    if of == "all":
        _strip_all((model, *tensors(model)))
    return before - int(model.ByteSize())


def _stated(scope: Scope) -> Iterator[Any]:
    container = scope.container
    yield container
    yield from container.value_info
    if isinstance(container, FunctionProto):
        yield from container.attribute_proto
    elif isinstance(container, GraphProto):
        yield from (*container.input, *container.output)


def _strip_all(messages: Iterable[Any]) -> None:
    for message in messages:
        _strip(message)


def _strip(message: Any) -> None:
    if message.doc_string:
        message.ClearField("doc_string")
    # Attributes have none.
    if not isinstance(message, AttributeProto) and len(message.metadata_props):
        message.ClearField("metadata_props")
