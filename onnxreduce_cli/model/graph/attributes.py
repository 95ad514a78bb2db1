"""Attributes of nodes, by name."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Any

from onnx import AttributeProto, FunctionProto, NodeProto, helper

from onnxreduce_cli.model.graph.scope import with_inner


def find(node: NodeProto, name: str) -> AttributeProto | None:
    """Return the node's attribute called `name`; None if it has none."""
    attribute: AttributeProto
    for attribute in node.attribute[:]:  # A slice: iterating the field itself costs twice as much.
        if attribute.name == name:
            return attribute
    return None


def of_call(call: NodeProto, function: FunctionProto) -> dict[str, AttributeProto]:
    """Return the attributes of a call of a function by name, with the function's defaults."""
    return {item.name: item for item in (*function.attribute_proto, *call.attribute)}


def drop(node: NodeProto, names: Collection[str]) -> None:
    """Remove the named attributes from a node, in place."""
    found = [index for index, item in enumerate(node.attribute[:]) if item.name in names]
    for index in reversed(found):
        del node.attribute[index]


def value(attribute: AttributeProto) -> Any:
    """Return an attribute's value as Python data: strings as `str`, lists as tuples."""
    result = helper.get_attribute_value(attribute)
    if attribute.type == AttributeProto.STRING:
        return result.decode()
    if attribute.type == AttributeProto.STRINGS:
        return tuple(item.decode() for item in result)
    return tuple(result) if isinstance(result, list) else result


def hashable(value: Any) -> Hashable:
    """Return an attribute's value as a hashable key: messages as bytes, others as text."""
    if isinstance(value, tuple):
        return tuple(hashable(item) for item in value)
    if hasattr(value, "SerializeToString"):
        return bytes(value.SerializeToString(deterministic=True))
    return repr(value)


def bind(node: NodeProto, bound: Mapping[str, AttributeProto]) -> None:
    """Replace the attribute references of a node, and of the nodes of its graphs, by values.

    It is edited in place; references to what is not bound are dropped. Graphs that are such values
    stay as they are.
    """
    for item in list(with_inner([node])):
        for index in reversed(range(len(item.attribute))):
            attribute = item.attribute[index]
            if not attribute.ref_attr_name:
                continue
            value = bound.get(attribute.ref_attr_name)
            name = attribute.name
            del item.attribute[index]
            if value is not None:
                copy = item.attribute.add()
                copy.CopyFrom(value)
                copy.name = name
