"""FusedConv, FusedGemm and FusedMatMul in the default domain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.contrib import agrees, node, reason

RNG = np.random.default_rng(6)


def floats(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize(
    ("activation", "params"),
    [
        (None, None),
        ("Relu", None),
        ("Sigmoid", None),
        ("Tanh", None),
        ("LeakyRelu", [0.2]),
        ("Clip", [-0.5, 0.7]),
        ("HardSigmoid", [0.3, 0.4]),
    ],
)
@pytest.mark.parametrize("opset", [10, 13, 17])
def test_conv(activation: str | None, params: Any, added: bool, opset: int) -> None:
    inputs: dict[str, Any] = {"x": floats(1, 2, 5, 5), "w": floats(3, 2, 3, 3), "b": floats(3)}
    data: tuple[str, ...] = ("x",)
    if added:
        inputs["z"] = floats(1, 3, 5, 5)
        data = ("x", "z")
    attributes = {"activation": activation, "activation_params": params}
    given = {name: value for name, value in attributes.items() if value is not None}
    source = node("FusedConv", inputs, data, np.float32, pads=[1, 1, 1, 1], **given)
    agrees(source, inputs, data, opset)


def test_conv_with_another_activation_blocks() -> None:
    inputs: dict[str, Any] = {"x": floats(1, 2, 5, 5), "w": floats(3, 2, 3, 3)}
    source = node("FusedConv", inputs, ("x",), np.float32, activation="Silu")
    assert "its activation 'Silu' is not among those" in reason(source)
    source = node("FusedConv", inputs, ("x",), np.float32, activation="Clip")
    assert "'Clip' has 2 numbers, and 0 are given" in reason(source)


@pytest.mark.parametrize(
    ("activation", "numbers"),
    [
        ("Elu", {"alpha": 0.3}),
        ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}),
        ("LeakyRelu", {"alpha": 0.3}),
        ("Relu", {}),
        ("Selu", {"alpha": 0.3, "gamma": 1.1}),
        ("Sigmoid", {}),
        ("Softplus", {}),
        ("Softsign", {}),
        ("Tanh", {}),
        ("ThresholdedRelu", {"alpha": 0.3}),
    ],
)
@pytest.mark.parametrize("opset", [10, 17])
def test_gemm(activation: str, numbers: dict[str, float], opset: int) -> None:
    inputs: dict[str, Any] = {"a": floats(4, 3), "b": floats(5, 4), "c": floats(5)}
    attributes: dict[str, Any] = {f"activation_{name}": it for name, it in numbers.items()}
    attributes |= {"activation": activation, "transA": 1, "transB": 1, "alpha": 0.5}
    agrees(node("FusedGemm", inputs, ("a",), np.float32, **attributes), inputs, ("a",), opset)


def test_gemm_with_another_activation_blocks() -> None:
    inputs: dict[str, Any] = {"a": floats(4, 3), "b": floats(3, 4)}
    source = node("FusedGemm", inputs, ("a",), np.float32, activation="Celu")
    assert "its activation 'Celu' is not among those" in reason(source)
    source = node("FusedGemm", inputs, ("a",), np.float32, activation="Elu")
    assert "'Elu' lacks activation_alpha" in reason(source)


@pytest.mark.parametrize("alpha", [1.0, 0.125])
@pytest.mark.parametrize(
    ("a", "b", "flags"),
    [
        ((2, 3, 4), (2, 4, 5), ()),
        ((2, 4, 3), (2, 4, 5), ("transA",)),
        # Older runtimes end the process.
        pytest.param((3, 4), (2, 5, 4), ("transB",), marks=pytest.mark.newest),
        ((2, 4, 3), (5, 4), ("transA", "transB")),
        ((3, 2, 5, 4), (2, 5, 4, 3), ("transBatchA",)),
        ((3, 2, 5, 4), (2, 5, 3, 6), ("transA", "transBatchA")),
        ((2, 5, 3, 4), (4, 2, 5, 6), ("transBatchB",)),
        ((2, 5, 3, 6), (4, 2, 5, 6), ("transB", "transBatchB")),
        ((4,), (4, 5), ("transA",)),
    ],
)
@pytest.mark.parametrize("opset", [7, 17])
def test_mat_mul(
    a: tuple[int, ...], b: tuple[int, ...], flags: tuple[str, ...], alpha: float, opset: int
) -> None:
    inputs: dict[str, Any] = {"a": floats(*a), "b": floats(*b)}
    attributes: dict[str, Any] = {"alpha": alpha, **dict.fromkeys(flags, 1)}
    data = ("a", "b")
    agrees(node("FusedMatMul", inputs, data, np.float32, **attributes), inputs, data, opset)
