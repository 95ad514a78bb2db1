"""Sizes that a model states, which nothing allocates."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from onnxreduce_cli.engine.conversion import Conversion

HUGE = 1_000_000_000


def value(name: str, dims: list[int], elem_type: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, elem_type, dims)


def model(
    node: onnx.NodeProto,
    opset: int,
    inputs: list[onnx.ValueInfoProto],
    more: list[onnx.NodeProto] | None = None,
    **constants: Any,
) -> ModelProto:
    output = helper.make_empty_tensor_value_info("y")
    tensors = [numpy_helper.from_array(np.array(item), name) for name, item in constants.items()]
    graph = helper.make_graph([node, *(more or [])], "g", inputs, [output], tensors)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def sizes(length: int = HUGE) -> onnx.ValueInfoProto:
    return value("s", [length], TensorProto.INT64)


MODELS = {
    "Pad": model(helper.make_node("Pad", ["x", "s"], ["y"]), 14, [value("x", [2, 3]), sizes()]),
    "Reshape": model(
        helper.make_node("Reshape", ["x", "s"], ["y"], allowzero=1),
        14,
        [value("x", [2, 3]), sizes()],
    ),
    "Unsqueeze": model(
        helper.make_node("Unsqueeze", ["x", "s"], ["y"]), 14, [value("x", [2, 3]), sizes()]
    ),
    "GroupNormalization": model(
        helper.make_node("GroupNormalization", ["x", "v", "v"], ["y"], num_groups=HUGE),
        21,
        [value("x", [1, HUGE, 2]), value("v", [HUGE])],
    ),
    "MelWeightMatrix": model(
        helper.make_node("MelWeightMatrix", ["bins", "length", "rate", "low", "high"], ["y"]),
        17,
        [],
        bins=1000,
        length=HUGE,
        rate=8000,
        low=np.float32(0),
        high=np.float32(4000),
    ),
    "SplitToSequence": model(
        helper.make_node("SplitToSequence", ["x", "k"], ["q"], axis=0),
        13,
        [value("x", [HUGE, 2])],
        [helper.make_node("ConcatFromSequence", ["q"], ["y"], axis=0)],
        k=1,
    ),
}


@pytest.mark.parametrize(
    "name",
    # Shape inference of onnx 1.19 makes a list of the sizes of a Reshape.
    [pytest.param(n, marks=pytest.mark.newest) if n == "Reshape" else n for n in MODELS],
)
def test_no_size_is_allocated(name: str) -> None:
    tracemalloc.start()
    try:
        for target in (12, 8):
            Conversion(MODELS[name], target)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000_000
