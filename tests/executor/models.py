"""Small models for the executor's tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tests.steps.checklist import newest_declared

# What came after is to have its steps first: they tell where its kernel belongs.
LATEST = newest_declared()


def value(name: str, dtype: Any = np.float32, shape: Sequence[Any] | None = None) -> Any:
    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape
    )


def any_value(name: str) -> onnx.ValueInfoProto:
    info = onnx.ValueInfoProto()
    info.name = name
    return info


def graph(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[Any],
    outputs: Sequence[str],
    initializers: Sequence[onnx.TensorProto] = (),
    name: str = "g",
) -> onnx.GraphProto:
    return helper.make_graph(
        nodes, name, inputs, [any_value(o) for o in outputs], initializer=initializers
    )


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[Any],
    outputs: Sequence[str],
    opset: int,
    initializers: Sequence[onnx.TensorProto] = (),
    functions: Sequence[onnx.FunctionProto] = (),
    domains: dict[str, int] | None = None,
) -> onnx.ModelProto:
    imports = [helper.make_opsetid("", opset)]
    imports += [helper.make_opsetid(d, v) for d, v in (domains or {}).items()]
    return helper.make_model(
        graph(nodes, inputs, outputs, initializers),
        opset_imports=imports,
        functions=functions,
    )


def one_node(
    op: str, opset: int, inputs: dict[str, np.ndarray[Any, Any]], n_outputs: int = 1, **attrs: Any
) -> onnx.ModelProto:
    outputs = [f"y{i}" for i in range(n_outputs)]
    node = helper.make_node(op, list(inputs), outputs, **attrs)
    return model([node], [value(k, v.dtype, None) for k, v in inputs.items()], outputs, opset)
