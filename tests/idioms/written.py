"""The patterns of idioms as models."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, helper

from onnxreduce_cli.idioms import normalizations
from onnxreduce_cli.idioms.idiom import Idiom
from onnxreduce_cli.idioms.tracing import Definition, Pattern, trace

#: What rests on shapes too, not on nodes and numbers alone.
_OF_SHAPES = frozenset(
    {"Attention", "Clip", "GroupNormalization", "InstanceNormalization", "RotaryEmbedding"}
)

#: What they are given as their data.
X = np.random.default_rng(2).normal(size=(2, 3, 8)).astype(np.float32)


def plain_forms(idiom: Idiom) -> list[Definition]:
    """Those that become a model of the same shapes whatever the operator."""
    if idiom.op_type in _OF_SHAPES:
        return []
    return [form for form in idiom.forms if form is not normalizations._by_batch_normalization]


def plain_patterns(idiom: Idiom) -> list[Pattern]:
    """The patterns of those forms."""
    return [trace(form) for form in plain_forms(idiom)]


def written(pattern: Pattern, *, keepdims: int = 1) -> ModelProto:
    """The nodes of a pattern as a model at opset 18, over the last axis."""
    nodes = []
    constants = {"axes": np.array([-1], np.int64)} if pattern.reductions else {}
    for output, node in pattern.producers.items():
        copy = helper.make_node("", [], [output], name=output)
        copy.CopyFrom(node)
        if node.op_type == "Softmax":
            copy.attribute.append(helper.make_attribute("axis", -1))
        elif output in pattern.reductions:
            copy.input.append("axes")
            keep = 1 if pattern.reductions[output] else keepdims
            copy.attribute.append(helper.make_attribute("keepdims", keep))
        nodes.append(copy)
    for name, value in pattern.numbers.items():
        number = {"epsilon": 1e-3, "alpha": 1.7, "beta": 0.3}.get(str(value), value)
        constants[name] = np.array(number, np.float32)
    dims = [list(X.shape)] + [[8]] * (len(pattern.inputs) - 1)
    inputs = [
        helper.make_tensor_value_info(name, 1, dim)
        for name, dim in zip(pattern.inputs, dims, strict=True)
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        inputs,
        [helper.make_tensor_value_info(pattern.result, 1, None)],
        [_tensor(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def _tensor(array: Any, name: str) -> Any:
    return helper.make_tensor(
        name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape, array.ravel()
    )
