"""LayerNormalization and RMSNormalization below opsets 17 and 23."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

import onnxreduce_cli
from tests.support import converts, converts_or_counts, one_node, op_types, run


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("axis", [-1, 1, 0, -2])
@pytest.mark.newest
def test_layer_normalization(axis: int, dtype: type) -> None:
    rng = np.random.default_rng(axis + 5)
    x = rng.normal(3, 2, (2, 3, 5)).astype(dtype)
    x[0, 1] = 1e-3
    scale, bias = (rng.normal(size=x.shape[axis:]).astype(dtype) for _ in range(2))
    inputs = {"x": x, "s": scale, "b": bias}
    outputs = 1 if dtype == np.float64 else 3
    source = one_node("LayerNormalization", 17, inputs, outputs=outputs, axis=axis, epsilon=1e-3)
    nasty = x.copy()
    nasty[0, 0, 0], nasty[1, 1, 1] = np.nan, np.inf
    special = one_node("LayerNormalization", 17, inputs, axis=axis, epsilon=1e-3)
    for target in (16, 13, 11, 9, 7):
        converts(source, target, inputs)
        converts(special, target, {**inputs, "x": nasty})
    short = {"x": x, "s": scale}
    converts(one_node("LayerNormalization", 17, short, axis=axis), 13, short)


@pytest.mark.parametrize("opset", [16, 11, 6, 1])
def test_mean_and_deviation_are_what_the_nodes_give(opset: int) -> None:
    inputs = {"x": np.ones((2, 3), np.float32) * np.arange(3, dtype=np.float32)}
    inputs["s"] = inputs["x"][0]
    source = one_node("LayerNormalization", 17, inputs, outputs=3)
    result = converts(source, opset, inputs)
    assert "Identity" not in op_types(result)


def test_without_a_bias_zeros_keep_their_signs() -> None:
    x = np.array([[-1, 0, 1, 2], [3, 3, -3, -3]], np.float32)
    inputs = {"x": x, "s": np.array([0, -0.0, 0, 1], np.float32)}
    source = one_node("LayerNormalization", 17, inputs, axis=-1)
    result = onnxreduce_cli.convert(source, 13)
    assert op_types(result)[-1] == "Add"
    before, after = (run(found, inputs)["y0"] for found in (source, result))
    assert np.signbit(before[before == 0]).any()
    np.testing.assert_array_equal(np.signbit(after), np.signbit(before))


def test_layer_normalization_of_large_mean() -> None:
    x = (10000 + np.arange(8, dtype=np.float32) / 8).reshape(1, 8)
    result = converts_to_truth(x)
    np.testing.assert_allclose(result, (x - x.mean()) / x.astype(float).std(), rtol=1e-3)


def converts_to_truth(x: np.ndarray) -> np.ndarray:
    """What LayerNormalization gives at opset 13, where the textbook formula cancels."""
    inputs = {"x": x, "s": np.ones(x.shape[-1:], np.float32)}
    source = one_node("LayerNormalization", 17, inputs, epsilon=0.0)
    found: np.ndarray = run(onnxreduce_cli.convert(source, 13), inputs)["y0"]
    return found


SHAPES = [[None] * 3] * 3


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
@pytest.mark.newest
def test_layer_normalization_of_unknown_rank(axis: int) -> None:
    x = np.random.default_rng(axis + 5).normal(3, 2, (2, 3, 5)).astype(np.float32)
    inputs = {"x": x, "s": x[(0,) * (axis % 3)] + 1, "b": x[(1,) * (axis % 3)]}
    layer = one_node(
        "LayerNormalization", 17, inputs, outputs=3, axis=axis, hidden=("x",), output_shapes=SHAPES
    )
    mean_square = one_node(
        "RMSNormalization", 23, {"x": x, "s": inputs["s"]}, axis=axis, hidden=("x",)
    )
    for target in (13, 10, 7):
        converts_or_counts(layer, target, inputs)
        converts_or_counts(mean_square, target, inputs)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("axis", [-1, 1, -2])
def test_rms_normalization(axis: int, dtype: type) -> None:
    rng = np.random.default_rng(axis + 5)
    x = rng.normal(3, 2, (2, 3, 5)).astype(dtype)
    inputs = {"x": x, "s": rng.normal(size=x.shape[axis:]).astype(dtype)}
    source = one_node("RMSNormalization", 23, inputs, axis=axis)
    nasty = x.copy()
    nasty[0, 0, 0], nasty[1, 1, 1] = np.nan, np.inf
    for target in (22, 17, 13, 11, 9, 7):
        converts(source, target, inputs, {**inputs, "x": nasty})


@pytest.mark.parametrize(
    ("opset", "node"),
    [
        (17, "LayerNormalization<stash_type = 1000>(x, s)"),
        (23, "RMSNormalization<stash_type = 1000>(x, s)"),
        (21, "GroupNormalization<stash_type = 1000, num_groups = 1>(x, s, s)"),
    ],
)
def test_a_stash_type_that_is_none(opset: int, node: str) -> None:
    source = parser.parse_model(f"""<ir_version: 10, opset_import: ["": {opset}]>
        g (float[2,4,4] x, float[4] s) => (float[2,4,4] y) {{ y = {node} }}""")
    (blocker,) = onnxreduce_cli.plan(source, 16).blockers
    assert blocker.reason == "its stash_type 1000 is not a float dtype"
