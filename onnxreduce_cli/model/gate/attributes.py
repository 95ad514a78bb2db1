"""The check of attributes by themselves, whatever the operator of their node."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import AttributeProto

from onnxreduce_cli.model.gate import tensors
from onnxreduce_cli.model.gate.text import is_text
from onnxreduce_cli.text import quoted

#: The field that holds the value of an attribute, by its type.
_FIELDS: dict[int, str] = {
    AttributeProto.FLOAT: "f",
    AttributeProto.INT: "i",
    AttributeProto.STRING: "s",
    AttributeProto.TENSOR: "t",
    AttributeProto.GRAPH: "g",
    AttributeProto.SPARSE_TENSOR: "sparse_tensor",
    AttributeProto.TYPE_PROTO: "tp",
    AttributeProto.FLOATS: "floats",
    AttributeProto.INTS: "ints",
    AttributeProto.STRINGS: "strings",
    AttributeProto.TENSORS: "tensors",
    AttributeProto.GRAPHS: "graphs",
    AttributeProto.SPARSE_TENSORS: "sparse_tensors",
    AttributeProto.TYPE_PROTOS: "type_protos",
}

#: Types whose values are messages, which have no default such as zero.
_MESSAGES = frozenset(
    {
        AttributeProto.TENSOR,
        AttributeProto.GRAPH,
        AttributeProto.SPARSE_TENSOR,
        AttributeProto.TYPE_PROTO,
    }
)

_VALUES = frozenset(_FIELDS.values())


def attribute_problem(attributes: Sequence[AttributeProto], *, texts: bool) -> str | None:
    """Return what is wrong with the attributes of a node; None if nothing is.

    Args:
        attributes: the attributes of the node.
        texts: whether strings must be UTF-8, as for the operators of ONNX.
    """
    names = [attribute.name for attribute in attributes]
    for attribute, name in zip(attributes, names, strict=True):
        if not is_text(name):
            return f"the name of its attribute {quoted(name)} is not UTF-8"
        found = _of_one(attribute) or _of_value(attribute, texts=texts)
        if found is not None:
            return f"its attribute {quoted(name)} {found}"
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        return f"it has several attributes {quoted(twice)}"
    return None


def _of_one(attribute: AttributeProto) -> str | None:
    """Return what is wrong with an attribute's type and fields."""
    own = _FIELDS.get(attribute.type)
    if own is None:
        return "has no type"
    present = {field.name for field, _ in attribute.ListFields()} & _VALUES
    if attribute.ref_attr_name:
        if not is_text(attribute.ref_attr_name):
            return f"refers to {quoted(attribute.ref_attr_name)}, which is not UTF-8"
        return "has a value and refers to another attribute" if present else None
    if not present <= {own}:
        other = min(present - {own})
        type_name = AttributeProto.AttributeType.Name(attribute.type)
        return f"is of type {type_name} and has a value in its field {other!r}"
    if attribute.type in _MESSAGES and not present:
        return "has no value"
    return None


def _of_value(attribute: AttributeProto, *, texts: bool) -> str | None:
    """Return what is wrong with the value of an attribute whose fields are valid."""
    if attribute.ref_attr_name:
        return None
    kind = attribute.type
    if kind == AttributeProto.TENSOR:
        return tensors.tensor_problem(attribute.t)
    if kind == AttributeProto.TENSORS:
        return next(filter(None, map(tensors.tensor_problem, attribute.tensors)), None)
    if kind == AttributeProto.SPARSE_TENSOR:
        return tensors.sparse_tensor_problem(attribute.sparse_tensor)
    if kind == AttributeProto.SPARSE_TENSORS:
        return next(
            filter(None, map(tensors.sparse_tensor_problem, attribute.sparse_tensors)), None
        )
    if texts and kind in (AttributeProto.STRING, AttributeProto.STRINGS):
        values = [attribute.s] if kind == AttributeProto.STRING else attribute.strings
        wrong = next((value for value in values if not is_text(value)), None)
        return None if wrong is None else f"is {wrong[:40]!r}, which is not UTF-8"
    return None
