"""Checks of a node against its operator's definition and its kernel's limits."""

from __future__ import annotations

from onnx import AttributeProto, NodeProto

from onnxreduce_cli.executor.errors import Invalid, NotSupported
from onnxreduce_cli.executor.graph import NodeLocation
from onnxreduce_cli.executor.registry import Call, OperatorDefinition, RegisteredKernel


def check_call(registered: RegisteredKernel, call: Call, place: NodeLocation) -> None:
    """Raise unless a kernel can compute a call.

    Raises:
        ExecutionError: the call breaks the specification.
        UnsupportedError: the kernel does not compute it.
    """
    if registered.check is not None:
        try:
            registered.check(call)
        except Invalid as error:
            raise place.invalid(str(error)) from None
        except NotSupported as error:
            raise place.unsupported(str(error)) from None


def check_signature(
    node: NodeProto,
    found: OperatorDefinition,
    attributes: list[AttributeProto],
    place: NodeLocation,
) -> None:
    """Raise unless a node's inputs, outputs and attributes fit a definition.

    Raises:
        ExecutionError: they do not fit it.
    """
    what = f"{node.op_type} {found.since}"
    if found.deprecated:
        raise place.invalid(f"{what} is deprecated")
    if not found.min_inputs <= len(node.input) <= found.max_inputs:
        raise place.invalid(f"{what} does not take {len(node.input)} inputs")
    if not found.min_outputs <= len(node.output) <= found.max_outputs:
        raise place.invalid(f"{what} does not give {len(node.output)} outputs")
    given = set()
    for attribute in attributes:
        expected = found.attributes.get(attribute.name)
        if expected is None:
            raise place.invalid(f"{what} has no attribute {attribute.name!r}")
        if attribute.type != expected:
            raise place.invalid(
                f"attribute {attribute.name!r} is of type {_attribute_type(attribute.type)}, "
                f"{what} has {_attribute_type(expected)}"
            )
        given.add(attribute.name)
    missing = found.required - given
    if missing:
        raise place.invalid(f"{what} needs attribute {min(missing)!r}")


def _attribute_type(number: int) -> str:
    return str(AttributeProto.AttributeType.Name(number))
