"""Activations of com.microsoft in the default domain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.contrib import agrees, node

RNG = np.random.default_rng(5)
EDGES = np.array([np.nan, np.inf, 0, -0.0, 1, -1, 1e38, -1e38, -30, -8, 5, 1e-30], np.float32)


@pytest.mark.parametrize("op_type", ["Gelu", "FastGelu", "QuickGelu"])
@pytest.mark.parametrize("opset", [7, 13, 17, 20, pytest.param(24, marks=pytest.mark.newest)])
def test_of_one_input(op_type: str, opset: int) -> None:
    inputs = {"x": EDGES}
    agrees(node(op_type, inputs, ("x",), np.float32), inputs, ("x",), opset)


@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_alpha(alpha: float) -> None:
    inputs = {"x": EDGES}
    agrees(node("QuickGelu", inputs, ("x",), np.float32, alpha=alpha), inputs, ("x",), 13)


@pytest.mark.parametrize("op_type", ["BiasGelu", "FastGelu"])
@pytest.mark.parametrize("opset", [13, 17, 20])
def test_bias(op_type: str, opset: int) -> None:
    inputs: dict[str, Any] = {
        "x": RNG.normal(size=(2, 3, 4)).astype(np.float32),
        "bias": RNG.normal(size=4).astype(np.float32),
    }
    found = agrees(node(op_type, inputs, ("x",), np.float32), inputs, ("x",), opset)
    if opset == 20:
        assert [item.op_type for item in found.graph.node] == ["Add", "Gelu"]
