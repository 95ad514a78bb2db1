"""The differences between a node and its replacement, as text.

What steps do depends on the node: comparing the two reports exactly what was done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy.typing as npt
from onnx import AttributeProto, NodeProto
from onnx.defs import OpSchema

from onnxreduce_cli import schemas
from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.text import shortened

#: Longer values are shortened, and arrays with more elements are not written out.
_LONGEST = 40
_ELEMENTS = 8

#: The types of attributes whose values are data, not numbers to read.
_DATA = frozenset(
    {
        AttributeProto.TENSOR,
        AttributeProto.TENSORS,
        AttributeProto.SPARSE_TENSOR,
        AttributeProto.SPARSE_TENSORS,
        AttributeProto.GRAPH,
        AttributeProto.GRAPHS,
    }
)

#: Arrays by name, each with its `TensorProto.DataType`.
_Constants = Mapping[str, tuple[npt.NDArray[Any], int]]


def differences(
    node: NodeProto,
    result: Sequence[NodeProto],
    opsets: tuple[int, int],
    constants: _Constants,
) -> Iterator[str]:
    """Yield the differences between a node and the node of its operator and name in `result`.

    Args:
        node: the node before.
        result: the nodes that take its place.
        opsets: the opsets of the node and of the result.
        constants: the constants that were added, by name.

    Returns:
        ``axes [-1] → attribute``, ``broadcast=1 added``, ... by attribute, then by input and
        output; nothing if no node of its operator takes its place.
    """
    successors = [made for made in result if (made.op_type, made.name) == (node.op_type, node.name)]
    if len(successors) != 1:
        return
    successor = successors[0]
    before, after = _input_names(node, opsets[0]), _input_names(successor, opsets[1])
    kept = set(before.values()) & set(after.values())  # Maybe by another formal name.
    gone = {name: value for name, value in before.items() if not {name, value} & {*after, *kept}}
    new = {name: value for name, value in after.items() if not {name, value} & {*before, *kept}}
    had = {item.name: item for item in node.attribute}
    has = {item.name: item for item in successor.attribute}
    for name, attribute in list(had.items()):
        formal = "" if name in has else _formal(name, new)
        if formal:
            del had[name], new[formal]
            yield f"{_named(attribute)} → input"
        elif name in has and attribute != has[name]:
            yield _value_change(attribute, has[name])
    for name in [name for name in has if name not in had]:
        formal = _formal(name, gone)
        if formal:
            del gone[formal]
            yield f"{_named(has.pop(name))} → attribute"
    yield from (f"{_assigned(had[name])} dropped" for name in had if name not in has)
    yield from (f"{_assigned(has[name])} added" for name in has if name not in had)
    yield from (f"input {formal} dropped" for formal in gone)
    yield from (f"input {formal}{_constant(constants, new[formal], '=')} added" for formal in new)
    if len(result) == 1:
        yield from _input_changes(before, after, constants)
    yield from _output_changes(node, successor, opsets)


def _input_names(node: NodeProto, opset: int) -> dict[str, str]:
    """Return the names of a node's inputs by the names of the formal inputs."""
    formals = _formals(node.op_type, opset, "inputs")
    return {
        formal: name
        for formal, name in zip(formals, _padded(node.input, formals), strict=True)
        if name
    }


def _padded(names: Sequence[str], formals: Sequence[str]) -> list[str]:
    found = list(names)[: len(formals)]
    return found + [""] * (len(formals) - len(found))


def _formals(op_type: str, opset: int, side: str) -> list[str]:
    """Return the names of an operator's formal inputs or outputs that are not variadic."""
    if not schemas.exists(op_type, opset):
        return []
    variadic = OpSchema.FormalParameterOption.Variadic
    found = getattr(schemas.schema(op_type, opset), side)
    return [formal.name for formal in found if formal.option != variadic]


def _formal(name: str, formals: Mapping[str, str]) -> str:
    """Return the input that replaces an attribute: it has its name, or ends in ``_`` and it."""
    for formal in formals:
        if formal.lower() == name.lower() or formal.endswith(f"_{name}"):
            return formal
    return ""


def _value_change(before: AttributeProto, after: AttributeProto) -> str:
    values = _value(before), _value(after)
    if before.type in _DATA or after.type in _DATA or values[0] == values[1]:
        return f"{before.name} rewritten"
    return f"{before.name} {values[0]} → {values[1]}"


def _named(attribute: AttributeProto) -> str:
    return f"{attribute.name} {_value(attribute)}".rstrip()


def _assigned(attribute: AttributeProto) -> str:
    value = _value(attribute)
    return f"{attribute.name}={value}" if value else attribute.name


def _value(attribute: AttributeProto) -> str:
    """Return an attribute's value in a few characters; empty for tensors and graphs."""
    if attribute.ref_attr_name:
        return f"@{attribute.ref_attr_name}"
    if attribute.type in _DATA:
        return ""
    value = attributes.value(attribute)
    if isinstance(value, str):
        return shortened(f'"{value}"', _LONGEST)
    if isinstance(value, tuple):
        text = ", ".join(f'"{item}"' if isinstance(item, str) else _number(item) for item in value)
        return shortened(f"[{text}]", _LONGEST)
    return _number(value)


def _number(value: object) -> str:
    """Return a number in a few characters; integers in full."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _constant(constants: _Constants, name: str, sign: str) -> str:
    """Return ``=[1, 2]`` for a small constant that was added; else an empty text."""
    array, _ = constants.get(name, (None, 0))
    if array is None or array.size > _ELEMENTS:
        return ""
    return f"{sign}{shortened(str(array.tolist()), _LONGEST)}"


def _input_changes(
    before: Mapping[str, str], after: Mapping[str, str], constants: _Constants
) -> Iterator[str]:
    others = [formal for formal in before if formal in after and after[formal] != before[formal]]
    if {before[formal] for formal in others} == {after[formal] for formal in others}:
        if others:
            yield "inputs in another order"
        return
    for formal in others:
        yield f"input {formal}{_constant(constants, after[formal], ' → ') or ' replaced'}"


def _output_changes(
    node: NodeProto, successor: NodeProto, opsets: tuple[int, int]
) -> Iterator[str]:
    formals = _formals(node.op_type, opsets[0], "outputs")
    if _formals(successor.op_type, opsets[1], "outputs") != formals:
        return
    had, has = _padded(node.output, formals), _padded(successor.output, formals)
    for formal, before, after in zip(formals, had, has, strict=True):
        if bool(before) != bool(after):
            yield f"output {formal} {'dropped' if before else 'named'}"
