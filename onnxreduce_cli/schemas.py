"""The definitions of operators in the installed onnx, by opset."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import onnx
from onnx.defs import OpSchema

#: The operators whose axes became an input with opset 18, five opsets after those of ReduceSum.
REDUCE_BUT_SUM = (
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSumSquare",
)
REDUCE = (*REDUCE_BUT_SUM, "ReduceSum")
SOFTMAX = ("Softmax", "LogSoftmax", "Hardmax")

#: Beyond every opset that onnx may have.
_NO_LIMIT = (1 << 31) - 1


def newest_opset() -> int:
    """Return the newest opset of the default domain that the installed onnx knows."""
    return onnx.defs.onnx_opset_version()


@cache
def operators(domain: str = "") -> tuple[str, ...]:
    """Return the names of a domain's operators, sorted."""
    schemas = onnx.defs.get_all_schemas_with_history()
    return tuple(sorted({found.name for found in schemas if found.domain == domain}))


@cache
def newest_version(domain: str) -> int:
    """Return the newest version of a domain at which an operator of the installed onnx changed."""
    return max(versions(name, domain)[-1] for name in operators(domain))


@cache
def versions(op_type: str, domain: str = "") -> tuple[int, ...]:
    """Return an operator's since-versions, ascending; none if the domain lacks it."""
    found: list[int] = []
    opset = _NO_LIMIT if onnx.defs.has(op_type, domain) else 0
    while opset:
        try:
            since = onnx.defs.get_schema(op_type, opset, domain).since_version
        except onnx.defs.SchemaError:
            break
        found.append(since)
        opset = since - 1
    return tuple(reversed(found))


@cache
def schema(op_type: str, opset: int, domain: str = "") -> OpSchema:
    """Return the definition of an operator at `opset` of its domain, where it must exist."""
    return onnx.defs.get_schema(op_type, opset, domain)


def exists(op_type: str, opset: int) -> bool:
    """Return whether `opset` defines the operator, deprecated or not."""
    since = versions(op_type)
    return bool(since) and since[0] <= opset


@cache
def defines(op_type: str, opset: int) -> bool:
    """Return whether `opset` defines the operator and does not deprecate it."""
    return exists(op_type, opset) and not schema(op_type, opset).deprecated


def infers_types(op_type: str, opset: int) -> bool:
    """Return whether the operator's definition at `opset` has shape inference.

    Old definitions lack it. True for names that are no operators, such as those of functions; of
    these there may be any number, so that they are not cached.
    """
    return not onnx.defs.has(op_type) or _infers_types(op_type, opset)


@cache
def _infers_types(op_type: str, opset: int) -> bool:
    return not exists(op_type, opset) or bool(
        schema(op_type, opset).has_type_and_shape_inference_function
    )


@cache
def propagates_sizes(op_type: str, opset: int) -> bool:
    """Return whether onnx's inference computes a list of sizes through an operator at `opset`."""
    return exists(op_type, opset) and schema(op_type, opset).has_data_propagation_function


@cache
def allowed_types(op_type: str, opset: int) -> dict[str, frozenset[str]]:
    """Return the types that each formal input and output (``in0``, ``out1``) accepts."""
    found = schema(op_type, opset)
    sides = (("in", found.inputs), ("out", found.outputs))
    return {
        f"{side}{index}": frozenset(formal.types)
        for side, formals in sides
        for index, formal in enumerate(formals)
    }


def takes(op_type: str, opset: int, place: int, kind: str) -> bool:
    """Return whether an operator's input at `place` accepts a type; True if there is no such."""
    allowed = allowed_types(op_type, opset).get(f"in{place}")
    return allowed is None or kind in allowed


@cache
def inputs_of_same_type(op_type: str, opset: int) -> tuple[tuple[bool, ...], ...]:
    """Return for each formal output which of the formal inputs must have its type."""
    found = schema(op_type, opset)
    return tuple(
        tuple(given.is_homogeneous and given.type_str == made.type_str for given in found.inputs)
        for made in found.outputs
    )


@cache
def first_opset_with_type(kind: str) -> int:
    """Return the first opset with an operator that takes or gives a type; 0 if there is none."""
    found = [
        since
        for op_type in operators()
        for since in versions(op_type)
        if any(kind in types for types in allowed_types(op_type, since).values())
    ]
    return min(found, default=0)


#: The beginning of the names of attributes that any node may have.
_INTERNAL = "__"


class _Signature(NamedTuple):
    """The facts of a schema that `invalid` compares nodes with."""

    name: str
    inputs: tuple[int, int]
    outputs: tuple[int, int]
    single_inputs: tuple[tuple[int, str], ...]
    attributes: dict[str, int]
    required: tuple[str, ...]


def _type_number(attribute_type: object) -> int:
    """Return an attribute type's number in `AttributeProto.AttributeType`."""
    return int(attribute_type)  # type: ignore[call-overload, no-any-return]  # a pybind11 enum


@cache
def _signature(op_type: str, opset: int, domain: str) -> _Signature | None:
    if not 0 < opset < 1 << 31 or not onnx.defs.has(op_type, domain):
        return None
    try:
        found = onnx.defs.get_schema(op_type, opset, domain)
    except onnx.defs.SchemaError:
        return None
    single = OpSchema.FormalParameterOption.Single
    return _Signature(
        f"{op_type}-{found.since_version}",
        (found.min_input, found.max_input),
        (found.min_output, found.max_output),
        tuple(
            (index, formal.name)
            for index, formal in enumerate(found.inputs)
            if formal.option == single
        ),
        {name: _type_number(attribute.type) for name, attribute in found.attributes.items()},
        tuple(name for name, attribute in found.attributes.items() if attribute.required),
    )


def invalid(node: onnx.NodeProto, opset: int, domain: str = "") -> str | None:
    """Return why a node does not fit its operator's definition; None if it does or is unknown.

    Compared are the numbers of inputs and outputs, the names and types of attributes, and required
    attributes and inputs: steps rely on these, and `onnx.checker` and ONNX Runtime refuse others.

    Args:
        node: the node.
        opset: the opset of its domain.
        domain: its domain; empty for the default one in both spellings.
    """
    signature = _signature(node.op_type, opset, domain)
    if signature is None:
        return None
    inputs, since = node.input[:], signature.name
    if not signature.inputs[0] <= len(inputs) <= signature.inputs[1]:
        return f"it has {len(inputs)} inputs, which {since} does not allow"
    if not signature.outputs[0] <= len(node.output) <= signature.outputs[1]:
        return f"it has {len(node.output)} outputs, which {since} does not allow"
    if "" in inputs:
        for index, name in signature.single_inputs:
            if index < len(inputs) and not inputs[index]:
                return f"its input {name!r} is missing, which {since} requires"
    names = {attribute.name: attribute.type for attribute in node.attribute[:]}
    if not names.items() <= signature.attributes.items():
        for name, kind in names.items():
            if name not in signature.attributes:
                if name.startswith(_INTERNAL):
                    continue
                return f"it has an attribute {name!r}, which {since} does not define"
            if kind != signature.attributes[name]:
                return f"its attribute {name!r} has a type that {since} does not allow"
    for name in signature.required:
        if name not in names:
            return f"its attribute {name!r} is missing, which {since} requires"
    if not domain and node.op_type == "Constant" and len(names) != 1:
        return f"it has {len(names)} attributes, and {since} has its value in one"
    return None
