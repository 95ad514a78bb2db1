"""Experimental operators that ONNX removed, and that ONNX Runtime still has."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper

import onnxreduce_cli
from onnxreduce_cli.steps.removed import REMOVED
from tests.support import assert_same, blockers, converts, run

X = np.linspace(-3, 3, 3 * 6 * 7, dtype=np.float32).reshape(1, 3, 6, 7)
FORMULAS: dict[str, list[dict[str, Any]]] = {
    "Affine": [{"alpha": 2.0, "beta": 0.5}],
    "Crop": [{"border": [1, 2, 0, 1]}, {"border": [1, 2, 0, 0], "scale": [3, 2]}],
    "ImageScaler": [{"scale": 2.0, "bias": [1.0, 2.0, 3.0]}],
    "ParametricSoftplus": [{"alpha": 2.0, "beta": 0.5}],
    "Scale": [{"scale": 2.0}, {}],
    "ScaledTanh": [{"alpha": 2.0, "beta": 0.5}],
    "ThresholdedRelu": [{"alpha": 0.5}],
}


def of(op_type: str, opset: int, attributes: dict[str, Any], shape: list[Any]) -> ModelProto:
    graph = helper.make_graph(
        [
            helper.make_node(op_type, ["x"], ["v"], **attributes),
            helper.make_node("Softmax", ["v"], ["y"], axis=1),
        ],
        "g",
        [helper.make_tensor_value_info("x", 1, X.shape)],
        [helper.make_tensor_value_info("y", 1, shape)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=4)


@pytest.mark.parametrize("op_type", FORMULAS)
def test_what_a_formula_defines(op_type: str) -> None:
    for attributes in FORMULAS[op_type]:
        source = of(op_type, 9, attributes, [1, 3, None, None])
        for target in (8, 11) if op_type == "Crop" else (8, 13):
            result = converts(source, target, {"x": X}, check=target == 8)
            kept = op_type == "ThresholdedRelu" and target >= 10
            assert (op_type in {node.op_type for node in result.graph.node}) == kept


@pytest.mark.parametrize(("attributes", "factor"), [({"scale": -2.5}, -2.5), ({}, 1.0)])
@pytest.mark.parametrize("target", [8, 13])
def test_scale_multiplies(attributes: dict[str, Any], factor: float, target: int) -> None:
    """By its definition in ONNX 1.4, ``Y = scale * X`` with a scale of 1 by default."""
    result = onnxreduce_cli.convert(of("Scale", 9, attributes, X.shape), target)
    assert "Scale" not in {node.op_type for node in result.graph.node}
    powers = np.exp(factor * X.astype(np.float64))
    expected = (powers / powers.sum()).astype(np.float32)
    assert_same(expected, run(result, {"x": X})["y"], "y")


def test_what_nothing_stands_for() -> None:
    source = of("GivenTensorFill", 9, {"values": [1.0], "shape": [1]}, [1])
    onnx.checker.check_model(source, full_check=True)
    (blocker,) = blockers(source, 13)[:1]
    assert "ONNX removed this experimental operator" in blocker.reason
    assert set(FORMULAS) < set(REMOVED)
