"""Operators on quantized tensors between DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from onnxreduce_cli.api.checks import check_sites
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.engine.runtime import plan_for_runtime
from tests.support import one_node, op_types, run

RNG = np.random.default_rng(5)


def integers(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)


def in_qdq(source: ModelProto, opset: int, inputs: dict[str, Any], operator: str) -> list[str]:
    """Write an operator out, check it as users do and by whole runs; return the operators."""
    result = ModelProto()
    result.CopyFrom(source)
    conversion = Conversion(result, opset, Options(expand=(source.graph.node[0].op_type,)))
    assert not conversion.blockers, conversion.blockers
    report = check_sites(conversion)
    assert report.ok, report
    assert not report.unchecked
    conversion.apply()
    before, after = run(source, inputs), run(result, inputs)
    for name, value in before.items():
        assert value.dtype == after[name].dtype
        apart = np.abs(value.astype(int) - after[name].astype(int))
        assert apart.max() <= 1
        assert np.mean(apart) < 0.02
    found = op_types(result)
    assert operator in found
    assert source.graph.node[0].op_type not in found
    return found


@pytest.mark.parametrize("opset", [10, 13, 19, 21])
@pytest.mark.parametrize("types", [(np.uint8, np.int8), (np.uint8, np.uint8), (np.int8, np.int8)])
@pytest.mark.parametrize("per_channel", [False, True])
def test_q_linear_conv(per_channel: bool, types: tuple[type, type], opset: int) -> None:
    data, weights = types
    count = (4,) if per_channel else ()
    inputs: dict[str, Any] = {
        "x": integers((2, 4, 6, 6), data),
        "xs": np.array(0.02, np.float32),
        "xz": np.array(3, data),
        "w": integers((4, 2, 3, 3), weights) // 2,
        "ws": RNG.uniform(0.01, 0.05, count).astype(np.float32),
        "wz": np.full(count, 0 if weights is np.int8 else 60, weights),
        "ys": np.array(0.2, np.float32),
        "yz": np.array(7, data),
        "b": RNG.integers(-3000, 3000, 4).astype(np.int32),
    }
    for bias in (True, False):
        given = inputs if bias else {name: inputs[name] for name in list(inputs)[:-1]}
        attributes = {"group": 2, "strides": [2, 2], "pads": [1, 0, 2, 1]}
        source = one_node("QLinearConv", 10, given, initializers=tuple(given)[1:], **attributes)
        found = in_qdq(source, opset, given, "Conv")
        assert found.count("QuantizeLinear") == 1
        if opset >= 13:
            assert set(found) == {"Conv", "DequantizeLinear", "QuantizeLinear"}


@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize("opset", [10, 13, 19, 21])
@pytest.mark.parametrize("types", [(np.uint8, np.int8), (np.uint8, np.uint8), (np.int8, np.int8)])
@pytest.mark.parametrize("per_column", [False, True])
def test_q_linear_mat_mul(
    per_column: bool, types: tuple[type, type], opset: int, drawn: bool
) -> None:
    data, weights = types
    count = (4,) if per_column else ()
    inputs: dict[str, Any] = {
        "a": integers((2, 3, 5), data),
        "as": np.array(0.02, np.float32),
        "az": np.array(3, data),
        "b": integers((5, 4), weights) // 2,
        "bs": RNG.uniform(0.01, 0.05, count).astype(np.float32),
        "bz": np.full(count, 0 if weights is np.int8 else 60, weights),
        "ys": np.array(0.11, np.float32),
        "yz": np.array(5, data),
    }
    names = () if drawn else tuple(inputs)[1:]
    source = one_node("QLinearMatMul", 10, inputs, initializers=names)
    found = in_qdq(source, opset, inputs, "MatMul")
    assert found.count("QuantizeLinear") == 1


def test_scales_of_halves_and_parameters_of_one_element() -> None:
    inputs: dict[str, Any] = {
        "a": integers((3, 5), np.int8),
        "as": np.array([0.02], np.float16),
        "az": np.array([3], np.int8),
        "b": integers((5, 4), np.int8),
        "bs": np.array([0.03], np.float16),
        "bz": np.array([0], np.int8),
        "ys": np.array([0.11], np.float16),
        "yz": np.array([5], np.int8),
    }
    source = one_node("QLinearMatMul", 21, inputs, initializers=tuple(inputs)[1:])
    result = ModelProto()
    result.CopyFrom(source)
    conversion = Conversion(result, 21, Options(expand=("QLinearMatMul",)))
    assert not conversion.blockers
    assert check_sites(conversion).ok
    conversion.apply()
    assert {"DequantizeLinear", "MatMul", "QuantizeLinear"} <= set(op_types(result))


def test_one_zero_point_for_scales_of_channels() -> None:
    inputs: dict[str, Any] = {
        "a": integers((3, 5), np.uint8),
        "as": np.array(0.02, np.float32),
        "az": np.array(3, np.uint8),
        "b": integers((5, 4), np.uint8),
        "bs": RNG.uniform(0.01, 0.05, 4).astype(np.float32),
        "bz": np.array(100, np.uint8),
        "ys": np.array(0.11, np.float32),
        "yz": np.array(5, np.uint8),
    }
    for names in (tuple(inputs)[1:], ()):
        source = one_node("QLinearMatMul", 10, inputs, initializers=names)
        result = ModelProto()
        result.CopyFrom(source)
        conversion = Conversion(result, 13, Options(expand=("QLinearMatMul",)))
        assert not conversion.blockers
        report = check_sites(conversion)
        assert report.ok
        assert not report.unchecked


@pytest.mark.newest
def test_float8_blocks_by_name() -> None:
    import ml_dtypes

    one = np.array(1, np.float32)
    eighth = ml_dtypes.float8_e4m3fn
    inputs: dict[str, Any] = {
        "a": np.ones((3, 5), eighth),
        "as": one,
        "az": np.array(0, eighth),
        "b": np.ones((5, 4), eighth),
        "bs": one,
        "bz": np.array(0, eighth),
        "ys": one,
        "yz": np.array(0, eighth),
    }
    source = one_node("QLinearMatMul", 21, inputs, initializers=tuple(inputs)[1:])
    (blocker,) = Conversion(source, 21, Options(expand=("QLinearMatMul",))).blockers
    assert "'a' is float8e4m3fn" in blocker.reason


def test_runtimes_that_take_qdq_alone_get_it() -> None:
    inputs: dict[str, Any] = {
        "x": integers((1, 3, 6, 6), np.int8),
        "xs": np.array(0.02, np.float32),
        "xz": np.array(0, np.int8),
        "w": integers((4, 3, 3, 3), np.int8) // 2,
        "ws": np.array([0.01, 0.02, 0.03, 0.05], np.float32),
        "wz": np.zeros(4, np.int8),
        "ys": np.array(0.2, np.float32),
        "yz": np.array(0, np.int8),
    }
    source = one_node("QLinearConv", 13, inputs, initializers=tuple(inputs)[1:])
    for options in (
        Options(runtime="tensorrt==8.6"),
        Options(allow_ops=("Conv", "DequantizeLinear", "QuantizeLinear")),
    ):
        result = ModelProto()
        result.CopyFrom(source)
        conversion = plan_for_runtime(result, options)
        conversion.apply()
        assert set(op_types(result)) == {"Conv", "DequantizeLinear", "QuantizeLinear"}
