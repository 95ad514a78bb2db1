"""Quantization and integer products below opset 10, and operators that nothing can stand for."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from onnxreduce_cli import schemas
from onnxreduce_cli.steps.without_equivalent import OPERATORS
from tests.support import blockers, converts, one_node


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_quantize_linear(dtype: type) -> None:
    x = np.array([0, -0.0, 0.25, 0.75, -0.25, 3.3, 1e6, -1e6, 63.75, np.inf, -np.inf], np.float32)
    for zero in (np.array(3, dtype), None):
        if zero is None and dtype == np.int8:
            continue
        inputs = {"x": x, "s": np.array(0.5, np.float32), "z": zero}
        source = one_node("QuantizeLinear", 10, inputs)
        given = {name: array for name, array in inputs.items() if array is not None}
        for target in (9, 7):
            converts(source, target, given)
    whole = {"x": np.array([-7, 9, 100000], np.int32), "s": np.array(2.0, np.float32)}
    converts(one_node("QuantizeLinear", 10, whole), 9, whole)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32])
def test_dequantize_linear(dtype: type) -> None:
    limits = np.iinfo(dtype)
    x = np.array([limits.min, -1 % 256 if dtype == np.uint8 else -1, 0, 5, limits.max], dtype)
    for zero in (None, np.array(0 if dtype == np.int32 else 7, dtype)):
        inputs = {"x": x, "s": np.array(0.3, np.float32), "z": zero}
        source = one_node("DequantizeLinear", 10, inputs)
        given = {name: array for name, array in inputs.items() if array is not None}
        for target in (9, 7):
            converts(source, target, given, exact=True)


def test_mat_mul_integer() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 256, (3, 4)).astype(np.uint8)
    b = rng.integers(-128, 128, (4, 2)).astype(np.int8)
    scalars = {"a": a, "b": b, "az": np.array(7, np.uint8), "bz": np.array(-3, np.int8)}
    for inputs in ({"a": a, "b": b}, scalars):
        for target in (9, 8, 7):
            converts(one_node("MatMulInteger", 10, inputs), target, inputs)


@pytest.mark.parametrize(
    ("op_type", "what"),
    [(op_type, what) for what, operators in OPERATORS.items() for op_type in operators],
)
def test_operators_without_equivalent(op_type: str, what: str) -> None:
    since = schemas.versions(op_type)
    if not since:
        assert op_type == "BitCast", "an older onnx may lack the newest only"
        return
    formal = schemas.schema(op_type, since[0])
    node = helper.make_node(
        op_type,
        [item.name for item in formal.inputs][: max(formal.min_input, 1)],
        [item.name for item in formal.outputs][: formal.min_output],
        "node",
    )
    for name, attribute in formal.attributes.items():
        if attribute.required:
            value = _REQUIRED.get(name, "x")
            node.attribute.append(helper.make_attribute(name, value))
    # What it reads comes from somewhere else; steps below its first opset need no types.
    graph = helper.make_graph(
        [helper.make_node("Made", [], node.input, domain="elsewhere"), node], "g", [], []
    )
    imports = [helper.make_opsetid("", since[0]), helper.make_opsetid("elsewhere", 1)]
    source = helper.make_model(graph, opset_imports=imports, ir_version=10)
    (blocker,) = blockers(source, since[0] - 1)
    assert blocker.reason == f"nothing before opset {since[0]} {what}"


#: Attributes that a node must have, of other types than a string.
_REQUIRED = {
    "body": onnx.GraphProto(name="body"),
    "kernel_shape": [2, 2],
    "to": 1,
    "max_gram_length": 1,
    "max_skip_count": 1,
    "min_gram_length": 1,
    "ngram_counts": [0],
    "ngram_indexes": [0],
}


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_nan_is_quantized_to_the_lowest_number(dtype: type) -> None:
    inputs = {
        "x": np.array([np.nan, 1, -np.inf, np.inf, 0] * 3, np.float32),
        "scale": np.array(0.5, np.float32),
        "zero": np.array(3, dtype),
    }
    source = one_node("QuantizeLinear", 13, inputs)
    for feeds in (inputs, {**inputs, "scale": np.array(np.inf, np.float32)}):
        for target in (10, 9, 8):
            converts(source, target, feeds)
            converts(source, target, feeds, in_numpy=True)
