"""Models as text, the same with every version of onnx."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)


def lines(model: ModelProto) -> Iterator[str]:
    """A model: the graph's inputs and outputs, its initializers and nodes, and the functions."""
    yield from _graph(model.graph, "")
    for function in model.functions:
        yield from _function(function)


def _graph(graph: GraphProto, indent: str) -> Iterator[str]:
    inputs = ", ".join(map(_info, graph.input))
    yield f"{indent}({inputs}) => ({', '.join(map(_info, graph.output))})"
    for tensor in graph.initializer:
        yield f"{indent}  {tensor.name} = {_tensor(tensor)}"
    for node in graph.node:
        yield from _node(node, f"{indent}  ")


def _function(function: FunctionProto) -> Iterator[str]:
    attributes = f"<{', '.join(function.attribute)}>" if function.attribute else ""
    inputs, outputs = ", ".join(function.input), ", ".join(function.output)
    yield f"{function.name}{attributes}({inputs}) => ({outputs})"
    for node in function.node:
        yield from _node(node, "  ")


def _node(node: NodeProto, indent: str) -> Iterator[str]:
    given = sorted(node.attribute, key=lambda item: item.name)
    values = ", ".join(f"{item.name}={_value(item)}" for item in given)
    operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    attributes = f"<{values}>" if values else ""
    yield f"{indent}{', '.join(node.output)} = {operator}{attributes}({', '.join(node.input)})"
    for item in given:
        if item.type == AttributeProto.GRAPH:
            yield f"{indent}  {item.name}:"
            yield from _graph(item.g, f"{indent}    ")


def _value(attribute: AttributeProto) -> str:
    if attribute.ref_attr_name:
        return f"@{attribute.ref_attr_name}"
    if attribute.type == AttributeProto.GRAPH:
        return "..."
    if attribute.type == AttributeProto.TENSOR:
        return _tensor(attribute.t)
    value = helper.get_attribute_value(attribute)
    return _numbers(value) if isinstance(value, Iterable) else f"{value:.9g}"


def _numbers(values: Iterable[object]) -> str:
    if isinstance(values, bytes):
        return f'"{values.decode()}"'
    return f"[{', '.join(map(str, values))}]"


def _tensor(tensor: TensorProto) -> str:
    values = numpy_helper.to_array(tensor).reshape(-1).tolist()
    return f"{_dtype(tensor.data_type)}{list(tensor.dims)} {_numbers(values)}"


def _info(info: ValueInfoProto) -> str:
    found = info.type.tensor_type
    dims = [
        dim.dim_param or (str(dim.dim_value) if dim.HasField("dim_value") else "?")
        for dim in found.shape.dim
    ]
    shape = f"[{', '.join(dims)}]" if found.HasField("shape") else ""
    return f"{_dtype(found.elem_type)}{shape} {info.name}"


def _dtype(elem_type: int) -> str:
    return TensorProto.DataType.Name(elem_type).lower()
