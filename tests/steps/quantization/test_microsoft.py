"""Quantized operators of com.microsoft in the default domain: ONNX Runtime runs the original."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.engine.runtime import plan_for_runtime
from tests.contrib import agrees, node, written_out

RNG = np.random.default_rng(3)


def integers(shape: tuple[int, ...], dtype: type = np.uint8) -> np.ndarray:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)


def scale(value: float) -> np.ndarray:
    return np.array(value, np.float32)


@pytest.mark.parametrize("opset", [13, 17, 21])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("op_type", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("shape", [(2, 3, 4), (4,)])
def test_pairs(op_type: str, dtype: type, opset: int, shape: tuple[int, ...]) -> None:
    inputs: dict[str, Any] = {
        "a": integers((2, 3, 4), dtype),
        "as": scale(0.02),
        "az": np.array(3, dtype),
        "b": integers(shape, dtype),
        "bs": scale(0.013),
        "bz": np.array(7, dtype),
        "cs": scale(0.037),
        "cz": np.array(11, dtype),
    }
    agrees(node(op_type, inputs, ("a", "b"), dtype), inputs, ("a", "b"), opset)


def of_one_input(op_type: str, attributes: dict[str, Any], dtype: type, opset: int) -> None:
    """Compare an operator of one quantized tensor with what takes its place."""
    inputs: dict[str, Any] = {
        "x": integers((2, 3, 4, 4), dtype),
        "xs": scale(0.03),
        "xz": np.array(3, dtype),
        "ys": scale(1 / 256 if "S" in op_type[7:8] else 0.05),
        "yz": np.array(0, dtype),
    }
    agrees(node(op_type, inputs, ("x",), dtype, **attributes), inputs, ("x",), opset)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize(
    ("op_type", "attributes"),
    [
        ("QLinearSigmoid", {}),
        ("QLinearLeakyRelu", {"alpha": 0.2}),
        ("QLinearGlobalAveragePool", {"channels_last": 0}),
    ],
)
@pytest.mark.parametrize("opset", [13, 17])
def test_of_one_input(op_type: str, attributes: dict[str, Any], dtype: type, opset: int) -> None:
    of_one_input(op_type, attributes, dtype, opset)


@pytest.mark.parametrize("dtype", [np.uint8, pytest.param(np.int8, marks=pytest.mark.newest)])
@pytest.mark.parametrize("attributes", [{"opset": 13, "axis": -1}, {"opset": 11, "axis": 2}])
@pytest.mark.parametrize("opset", [13, 17])
def test_of_softmax(attributes: dict[str, Any], dtype: type, opset: int) -> None:
    """ONNX Runtime 1.23 does not saturate int8."""
    of_one_input("QLinearSoftmax", attributes, dtype, opset)


def test_channels_last_block() -> None:
    inputs: dict[str, Any] = {
        "x": integers((2, 4, 4, 3)),
        "xs": scale(0.03),
        "xz": np.array(3, np.uint8),
        "ys": scale(0.05),
        "yz": np.array(0, np.uint8),
    }
    source = node("QLinearGlobalAveragePool", inputs, ("x",), np.uint8, channels_last=1)
    (blocker,) = Conversion(source, 17, Options(expand=("com.microsoft",))).blockers
    assert "its channels come last" in blocker.reason


def test_concat() -> None:
    inputs: dict[str, Any] = {
        "ys": scale(0.05),
        "yz": np.array(9, np.uint8),
        "a": integers((2, 3)),
        "as": scale(0.03),
        "az": np.array(3, np.uint8),
        "b": integers((2, 4)),
        "bs": scale(0.04),
        "bz": np.array(0, np.uint8),
    }
    agrees(node("QLinearConcat", inputs, ("a", "b"), np.uint8, axis=1), inputs, ("a", "b"), 13)


@pytest.mark.parametrize("in_float", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("opset", [10, 13, 21])
def test_gemm(turned: int, per_column: bool, bias: bool, in_float: bool, opset: int) -> None:
    count = (4,) if per_column else ()
    inputs: dict[str, Any] = {
        "a": integers((3, 5)),
        "as": scale(0.02),
        "az": np.array(3, np.uint8),
        "b": integers((4, 5) if turned else (5, 4), np.int8) // 2,
        "bs": RNG.uniform(0.01, 0.05, count).astype(np.float32),
        "bz": np.zeros(count, np.int8),
        "c": RNG.integers(-500, 500, 4).astype(np.int32) if bias else None,
    }
    if not in_float:
        inputs |= {"ys": scale(0.11), "yz": np.array(5, np.uint8)}
    output = np.float32 if in_float else np.uint8
    agrees(node("QGemm", inputs, ("a",), output, transB=turned), inputs, ("a",), opset)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("op_type", ["MatMulIntegerToFloat", "DynamicQuantizeMatMul"])
@pytest.mark.parametrize("opset", [11, 17])
def test_products_in_float(op_type: str, bias: bool, opset: int) -> None:
    offset = RNG.standard_normal(4).astype(np.float32) if bias else None
    weights = {"b": integers((5, 4), np.int8) // 2, "bs": scale(0.03)}
    inputs: dict[str, Any]
    if op_type == "DynamicQuantizeMatMul":
        data = RNG.standard_normal((2, 3, 5)).astype(np.float32)
        inputs = {"a": data, **weights, "bz": np.array(2, np.int8), "bias": offset}
    else:
        inputs = {
            "a": integers((2, 3, 5)),
            "b": weights["b"],
            "as": scale(0.02),
            "bs": weights["bs"],
            "az": np.array(100, np.uint8),
            "bz": np.array(2, np.int8),
            "bias": offset,
        }
    agrees(node(op_type, inputs, ("a",), np.float32), inputs, ("a",), opset)


@pytest.mark.newest
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(("columns", "bits"), [(32, 4), (40, 4), (48, 4), (32, 8)])
@pytest.mark.parametrize("opset", [13, 17, 21])
def test_matmul_n_bits(columns: int, bits: int, zeros: bool, opset: int) -> None:
    rows, block = 6, 16
    blocks = -(-columns // block)
    inputs: dict[str, Any] = {
        "a": RNG.standard_normal((2, 3, columns)).astype(np.float32),
        "b": integers((rows, blocks, block * bits // 8)),
        "scales": RNG.uniform(0.01, 0.1, rows * blocks).astype(np.float32),
    }
    if zeros:
        inputs["zeros"] = integers((rows * -(-blocks * bits // 8),))
    attributes = {"K": columns, "N": rows, "bits": bits, "block_size": block}
    source = node("MatMulNBits", inputs, ("a",), np.float32, **attributes)
    result = agrees(source, inputs, ("a",), opset)
    if opset == 21:
        found = [item.op_type for item in result.graph.node]
        assert found.count("DequantizeLinear") == 1
        assert found[-1] == "MatMul"


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"accuracy_level": 4}, "rounds its data to int8"),
        ({"bits": 2}, "have 2 bits"),
    ],
)
def test_matmul_n_bits_blocks(attributes: dict[str, int], reason: str) -> None:
    inputs: dict[str, Any] = {
        "a": RNG.standard_normal((3, 32)).astype(np.float32),
        "b": integers((6, 2, 8)),
        "scales": np.ones(12, np.float32),
    }
    attributes = {"K": 32, "N": 6, "bits": 4, "block_size": 16} | attributes
    source = node("MatMulNBits", inputs, ("a",), np.float32, **attributes)
    (blocker,) = Conversion(source, 17, Options(expand=("com.microsoft",))).blockers
    assert reason in blocker.reason


def test_operators_without_another_form_block_by_name() -> None:
    data = np.ones((2, 3), np.float32)
    for op_type in ("Inverse", "QAttention"):
        source = node(op_type, {"x": data}, ("x",), np.float32)
        (blocker,) = Conversion(source, 17, Options(expand=("com.microsoft",))).blockers
        assert "export the model" in blocker.advice or "quantize the model" in blocker.advice


def test_one_operator_is_named_with_its_domain() -> None:
    inputs: dict[str, Any] = {
        "x": integers((2, 3)),
        "xs": scale(0.03),
        "xz": np.array(3, np.uint8),
        "ys": scale(1 / 256),
        "yz": np.array(0, np.uint8),
    }
    source = node("QLinearSigmoid", inputs, ("x",), np.uint8)
    written_out(source, 17, "com.microsoft.QLinearSigmoid")
    same = ModelProto()
    same.CopyFrom(source)
    assert Conversion(same, 17, Options(expand=("com.microsoft.QLinearAdd",))).changes_nothing


def test_a_runtime_without_the_operator_gets_another_form() -> None:
    inputs: dict[str, Any] = {
        "x": integers((2, 3), np.int8),
        "xs": scale(0.03),
        "xz": np.array(0, np.int8),
        "ys": scale(1 / 256),
        "yz": np.array(0, np.int8),
    }
    source = node("QLinearSigmoid", inputs, ("x",), np.int8)
    allowed = ("DequantizeLinear", "QuantizeLinear", "Sigmoid")
    conversion = plan_for_runtime(source, Options(allow_ops=allowed))
    assert not conversion.blockers
    conversion.apply()
    found = [item.op_type for item in source.graph.node]
    assert found == ["DequantizeLinear", "Sigmoid", "QuantizeLinear"]
    assert source.graph.output[0].type.tensor_type.elem_type == TensorProto.INT8
