"""Copies of models without weights, for shape inference and for planning."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from math import prod
from typing import Any

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    TensorProto,
    helper,
)

from onnxreduce_cli.model.file.tensors import MOST_ELEMENTS
from onnxreduce_cli.model.graph.attributes import bind
from onnxreduce_cli.model.graph.domains import MICROSOFT, UNKNOWN_DOMAIN, default_opset
from onnxreduce_cli.model.graph.scope import FunctionKey, function_key, with_inner
from onnxreduce_cli.model.graph.values import ValueType
from onnxreduce_cli.model.types.placeholders import TRAINING, put_placeholders

#: The most elements of an initializer that is copied with data; it may be axes or a shape.
_SMALL = 1024


def model_skeleton(model: ModelProto) -> ModelProto:
    """Return a copy whose large initializers have a name, dtype and shape but no data."""
    skeleton = ModelProto(ir_version=model.ir_version)
    skeleton.opset_import.extend(model.opset_import)
    skeleton.functions.extend(model.functions)
    _draw(skeleton.graph, model.graph)
    functions = {function_key(function) for function in model.functions}
    put_placeholders(skeleton.graph, default_opset(model) or 0, functions)
    _import_training(skeleton)
    for training in model.training_info:
        copy = skeleton.training_info.add()
        for field in ("initialization", "algorithm"):
            if training.HasField(field):
                _draw(getattr(copy, field), getattr(training, field))
    return skeleton


def without_weights(model: ModelProto) -> ModelProto:
    """Return a copy for planning, without the data of initializers that facts do not read."""
    copy = ModelProto()
    for name, value in _fields(model, "graph"):
        _set(copy, name, value)
    for name, value in _fields(model.graph, "initializer"):
        _set(copy.graph, name, value)
    for tensor in model.graph.initializer:
        if prod(tensor.dims) <= MOST_ELEMENTS:
            copy.graph.initializer.add().CopyFrom(tensor)
        else:
            copy.graph.initializer.append(_without_data(tensor))
    return copy


def adopt(model: ModelProto, copy: ModelProto) -> None:
    """Apply the edits of a copy without weights to the model itself, in place.

    Initializers of the main graph that both have are neither moved nor copied: they may be large.
    """
    graph = model.graph
    kept = {tensor.name for tensor in copy.graph.initializer}
    known = {tensor.name for tensor in graph.initializer}
    for index in reversed(range(len(graph.initializer))):
        if graph.initializer[index].name not in kept:
            del graph.initializer[index]
    graph.initializer.extend(item for item in copy.graph.initializer if item.name not in known)
    _replace_fields(model, copy, "graph")
    _replace_fields(graph, copy.graph, "initializer")


def _replace_fields(
    message: ModelProto | GraphProto, other: ModelProto | GraphProto, kept: str
) -> None:
    for name, _ in _fields(message, kept):
        message.ClearField(name)
    for name, value in _fields(other, kept):
        _set(message, name, value)


def _fields(message: ModelProto | GraphProto, other: str) -> list[tuple[str, Any]]:
    """Return a message's fields except for one, and for strings that are not UTF-8.

    Protobuf gives such strings as `bytes` and cannot set them; nothing reads them.
    """
    return [
        (field.name, value)
        for field, value in message.ListFields()
        if field.name != other and not isinstance(value, bytes)
    ]


def _set(message: ModelProto | GraphProto, name: str, value: Any) -> None:
    if isinstance(value, (int, str)):
        setattr(message, name, value)
    else:
        getattr(message, name).MergeFrom(value)


def _without_data(tensor: TensorProto) -> TensorProto:
    return TensorProto(
        name=tensor.name,
        data_type=tensor.data_type,
        dims=tensor.dims,
        data_location=TensorProto.EXTERNAL,
    )


def _draw(skeleton: GraphProto, graph: GraphProto) -> None:
    """Make an empty graph the skeleton of another."""
    skeleton.name = graph.name or "graph"
    skeleton.node.extend(graph.node)
    skeleton.input.extend(graph.input)
    skeleton.output.extend(graph.output)
    skeleton.value_info.extend(graph.value_info)
    skeleton.sparse_initializer.extend(graph.sparse_initializer)
    for tensor in graph.initializer:
        small = prod(tensor.dims) <= _SMALL and tensor.data_location != TensorProto.EXTERNAL
        skeleton.initializer.append(tensor if small else _without_data(tensor))


def call_skeleton(
    model: ModelProto,
    function: FunctionProto,
    called: Sequence[FunctionProto],
    inputs: Sequence[ValueType | None],
    bound: Mapping[str, AttributeProto],
    functions: Container[FunctionKey],
) -> ModelProto:
    """Return a function's body as the main graph of a model, as one call runs it.

    Args:
        model: the model that the function belongs to.
        function: the function.
        called: the functions to copy, which its body calls, directly or not.
        inputs: the types of the call's inputs, as far as they are known.
        bound: the values of the function's attributes for this call, or references where they are
            not known. Nodes with such an attribute are not inferred.
        functions: the model's functions by domain, name and overload.
    """
    skeleton = ModelProto(ir_version=model.ir_version)
    skeleton.opset_import.extend(function.opset_import)
    skeleton.functions.extend(called)
    graph = skeleton.graph
    graph.name = function.name
    graph.node.extend(function.node)
    graph.value_info.extend(function.value_info)
    for name, value_type in zip(function.input, inputs, strict=False):
        if value_type is not None and value_type.elem_type:
            graph.input.append(helper.make_value_info(name, value_type.to_proto()))
    for name in function.output:
        graph.output.add().name = name
    for node in graph.node:
        bind(node, bound)
    for node in with_inner(graph.node):
        if any(item.ref_attr_name for item in node.attribute):
            node.domain = UNKNOWN_DOMAIN
    if any(item.ref_attr_name for item in bound.values()):
        skeleton.opset_import.add(domain=UNKNOWN_DOMAIN, version=1)
    put_placeholders(graph, default_opset(function) or 0, functions)
    _import_training(skeleton)
    return skeleton


def _import_training(skeleton: ModelProto) -> None:
    """Import the domain that some placeholders have, where com.microsoft may have brought any."""
    domains = {item.domain for item in skeleton.opset_import}
    if MICROSOFT in domains and TRAINING not in domains:
        skeleton.opset_import.add(domain=TRAINING, version=1)
