"""Models of one node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, ValueInfoProto, helper


def single_node_model(node: NodeProto, values: Mapping[str, Any], model: ModelProto) -> ModelProto:
    """Build a model of one node, at the opsets of the model that it is from.

    Args:
        node: the node.
        values: arrays by name, among them all that the node uses.
        model: where it is from.
    """
    inputs = [input_info(name, values[name]) for name in dict.fromkeys(node.input) if name]
    outputs = [ValueInfoProto(name=name) for name in node.output if name]
    graph = helper.make_graph([node], "node", inputs, outputs)
    return helper.make_model(
        graph, opset_imports=model.opset_import, ir_version=max(model.ir_version, 3)
    )


def input_info(name: str, value: Any) -> ValueInfoProto:
    """Build the value info of an input: the dtype and the rank of an array."""
    array = np.asarray(value)
    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(array.dtype), [None] * array.ndim
    )
