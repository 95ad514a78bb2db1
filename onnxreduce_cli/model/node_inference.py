"""What onnx infers of one node, from what is known of its inputs."""

from __future__ import annotations

from typing import Protocol

import onnx
from onnx import NodeProto, TypeProto, numpy_helper

from onnxreduce_cli import schemas
from onnxreduce_cli.model.constants import Array
from onnxreduce_cli.model.scope import GRAPH_OPERATORS, Scope
from onnxreduce_cli.model.values import ValueType

#: Inference reads lists of sizes, axes and the like, not data.
_READ = 1024


class KnownValues(Protocol):
    """What is known of a model's values."""

    def type(self, scope: Scope, name: str) -> ValueType | None:
        """A value's type, if known."""

    def constant(self, scope: Scope, name: str) -> Array | None:
        """A value that is the same for every run, if known."""


def infer_outputs(
    facts: KnownValues, scope: Scope, node: NodeProto, opset: int, ir_version: int
) -> dict[str, TypeProto]:
    """Return the types that inference gives for a node's outputs; none for those it cannot tell.

    Raises:
        InferenceError: the node cannot be there with inputs of these types.
        SchemaError: there is no such operator at `opset`.
        ValidationError: it holds what onnx cannot read.
        ValueError: it holds graphs deeper than onnx reads.
    """
    types, constants = {}, {}
    for name in node.input:
        known = facts.type(scope, name)
        if known is None or not known.elem_type:
            types[name] = TypeProto()
            continue
        types[name] = known.to_proto()
        array = facts.constant(scope, name)
        if array is not None and array.size <= _READ:
            constants[name] = numpy_helper.from_array(array, name)
    return dict(
        onnx.shape_inference.infer_node_outputs(
            onnx.defs.get_schema(node.op_type, opset),
            node,
            types,
            constants,
            opset_imports=[onnx.helper.make_opsetid("", opset)],
            ir_version=min(ir_version, onnx.IR_VERSION),
        )
    )


def contradiction(
    facts: KnownValues, scope: Scope, node: NodeProto, opset: int, ir_version: int
) -> str | None:
    """Return why a node cannot be there with inputs of the known types; None if nothing is wrong.

    Nothing is said of nodes with graphs, with references to attributes, and with inputs of which
    no dense type is known.
    """
    if node.op_type in GRAPH_OPERATORS or any(item.ref_attr_name for item in node.attribute):
        return None
    kinds = []
    for name in node.input:
        known = facts.type(scope, name) if name else None
        if name and (known is None or not known.elem_type):
            return None
        kinds.append(known.kind if known is not None else "")
    try:
        infer_outputs(facts, scope, node, opset, ir_version)
    except onnx.shape_inference.InferenceError as error:
        said = str(error).strip().rpartition("Error] ")[2].partition("\n")[0]
        return _of_another_type(node, opset, kinds) or said
    except (onnx.defs.SchemaError, onnx.checker.ValidationError, ValueError):
        return None
    return None


def _of_another_type(node: NodeProto, opset: int, kinds: list[str]) -> str | None:
    """Return which input of a node its definition does not allow the type of, if there is one."""
    allowed = schemas.allowed_types(node.op_type, opset)
    for index, kind in enumerate(kinds):
        if kind and kind not in allowed.get(f"in{index}", {kind}):
            return f"its input {node.input[index]!r} is {kind}, which {node.op_type} does not take"
    return None
