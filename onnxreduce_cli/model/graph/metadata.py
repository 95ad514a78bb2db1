"""Metadata: what a model says of itself that changes nothing of what it computes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto

from onnxreduce_cli.model.file.tensors import tensors
from onnxreduce_cli.model.graph.scope import Scope, scopes

#: Of what metadata is stripped: of nodes; of functions with all that is in them; of everything.
Strip = Literal["nodes", "functions", "all"]


def strip_metadata(model: ModelProto, of: Strip) -> int:
    """Remove doc strings and metadata, in place.

    Args:
        model: the model.
        of: ``nodes`` for those of all nodes; ``functions`` for those of functions, and of the
            nodes and values in them; ``all`` for those of everything, the model itself included.
            Producer, domain and version of the model stay: they are fields of their own.

    Returns:
        how many bytes the model is smaller, without its external data.
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
