"""The attributes of functions that nodes of their bodies refer to: what types they must have."""

from __future__ import annotations

from onnx import AttributeProto, FunctionProto, NodeProto

from onnxreduce_cli.model.graph.attributes import of_call
from onnxreduce_cli.model.graph.scope import function_label, with_inner
from onnxreduce_cli.text import quoted


class References:
    """What the bodies of functions refer to, looked up once for each."""

    def __init__(self) -> None:
        #: By a function's identity, the types by attribute, each with the operator that has it.
        self._types: dict[int, dict[tuple[str, int], str]] = {}

    def call_problem(self, node: NodeProto, function: FunctionProto) -> str | None:
        """Return what is wrong with the attributes of a call; None if nothing is."""
        given = of_call(node, function)
        if not given:
            return None
        for (name, wanted), op_type in self._of(function).items():
            attribute = given.get(name)
            if attribute is not None and attribute.type != wanted:
                return (
                    f"its attribute {quoted(name)} is of type {_name(attribute.type)}, and the "
                    f"function {function_label(function)} hands it on to a node of {op_type} as "
                    f"{_name(wanted)}"
                )
        return None

    def _of(self, function: FunctionProto) -> dict[tuple[str, int], str]:
        known = self._types.get(id(function))
        if known is None:
            known = self._types[id(function)] = {
                (attribute.ref_attr_name, attribute.type): quoted(node.op_type)
                for node in with_inner(function.node)
                for attribute in node.attribute
                if attribute.ref_attr_name
            }
        return known


def _name(kind: int) -> str:
    return AttributeProto.AttributeType.Name(kind)
