"""The IR version: what an opset and a model's features need of it."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import IR_VERSION, AttributeProto, ModelProto, NodeProto, TensorProto, helper

from onnxreduce_cli.model.domains import is_default
from onnxreduce_cli.model.scope import Scope

#: Element types that came after IR version 3, by the IR version that brought them (onnx.proto).
_ELEM_TYPES = {
    "BFLOAT16": 4,
    "FLOAT8E4M3FN": 9,
    "FLOAT8E4M3FNUZ": 9,
    "FLOAT8E5M2": 9,
    "FLOAT8E5M2FNUZ": 9,
    "UINT4": 10,
    "INT4": 10,
    "FLOAT4E2M1": 11,
    "FLOAT8E8M0": 12,
    "UINT2": 13,
    "INT2": 13,
    "FLOAT6E2M3": 14,
    "FLOAT6E3M2": 14,
}


def least_for_opset(opset: int) -> int:
    """The IR version that came with, or before, an opset of the default domain.

    An opset that the table of releases does not have yet came with the newest IR version.
    """
    releases = ((row[2], row[1]) for row in helper.VERSION_TABLE)
    fitting = (ir_version for released, ir_version in releases if released >= opset)
    return min(fitting, default=IR_VERSION)


def least_for_features(model: ModelProto, scopes: list[Scope]) -> tuple[int, str]:
    """The least IR version that what the model uses allows, and what needs it.

    Operator sets are not counted; see `least_for_opset`.
    """
    return max(_features(model, scopes), key=lambda feature: feature[0])


def _features(model: ModelProto, scopes: list[Scope]) -> Iterator[tuple[int, str]]:
    yield 3, "operator set imports"
    for entry in model.opset_import:
        key = ("ai.onnx" if is_default(entry.domain) else entry.domain, entry.version)
        if not is_default(entry.domain) and key in helper.OP_SET_ID_VERSION_MAP:
            yield int(helper.OP_SET_ID_VERSION_MAP[key]), f"opset {key[1]} of {key[0]}"
    if model.training_info:
        yield 7, "training information"
    if model.configuration:
        yield 11, "device configurations"
    for function in model.functions:
        yield 8, f"model-local function {function.name!r}"
        if function.attribute_proto:
            yield 9, f"default attributes of function {function.name!r}"
        if function.overload or function.value_info or function.metadata_props:
            yield 10, f"overload, value_info or metadata of function {function.name!r}"
    for scope in scopes:
        yield from _scope_features(scope)


def _scope_features(scope: Scope) -> Iterator[tuple[int, str]]:
    where = scope.label or "the main graph"
    for node in scope.nodes:
        yield from _node_features(node)
    container = scope.container
    if scope.function is not None and not scope.subgraph:
        return
    for name, tensor in scope.initializers.items():
        yield from _tensor_features(tensor, f"initializer {name!r}")
        if name not in scope.inputs:
            yield 4, f"initializer {name!r}, which is no graph input"
    if getattr(container, "sparse_initializer", ()):
        yield 6, f"sparse initializers in {where}"
    if getattr(container, "quantization_annotation", ()):
        yield 5, f"quantization annotations in {where}"
    if container.metadata_props:
        yield 10, f"metadata of {where}"
    for info in [*container.input, *container.output, *container.value_info]:
        if isinstance(info, str):
            continue
        text = info.type.WhichOneof("value") or ""
        if text == "optional_type":
            yield 8, f"optional value {info.name!r}"
        if text == "sparse_tensor_type":
            yield 8, f"sparse value {info.name!r}"
        if text == "tensor_type":
            yield from _elem_type(info.type.tensor_type.elem_type, f"value {info.name!r}")
        if info.metadata_props:
            yield 10, f"metadata of value {info.name!r}"


def _node_features(node: NodeProto) -> Iterator[tuple[int, str]]:
    if node.metadata_props or node.overload:
        yield 10, f"metadata or overload of node {node.name!r}"
    if node.device_configurations:
        yield 11, f"device configuration of node {node.name!r}"
    for attribute in node.attribute:
        if attribute.type == AttributeProto.TENSOR:
            yield from _tensor_features(attribute.t, f"a tensor of node {node.name!r}")
        elif attribute.type == AttributeProto.SPARSE_TENSOR:
            yield 6, f"a sparse tensor of node {node.name!r}"
        elif attribute.type in (AttributeProto.TYPE_PROTO, AttributeProto.TYPE_PROTOS):
            yield 8, f"a type attribute of node {node.name!r}"


def _tensor_features(tensor: TensorProto, what: str) -> Iterator[tuple[int, str]]:
    yield from _elem_type(tensor.data_type, what)
    if tensor.metadata_props:
        yield 10, f"metadata of {what}"


def _elem_type(elem_type: int, what: str) -> Iterator[tuple[int, str]]:
    if elem_type in TensorProto.DataType.values():
        name = TensorProto.DataType.Name(elem_type)
        if name in _ELEM_TYPES:
            yield _ELEM_TYPES[name], f"{what} of dtype {name.lower()}"
