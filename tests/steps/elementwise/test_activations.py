"""Activations, normalizations and comparisons below the opset they came with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onnxreduce_cli
from onnxreduce_cli import schemas
from tests.support import converts, one_node, op_types, run

NASTY = [0.0, -0.0, 1e-20, -1e-7, 0.3, -0.5, 1, -1, 3, -3, 8.7, -9, 60, -100, 3e4, -3e4]
SPECIAL = [np.inf, -np.inf, np.nan]


def _nasty(dtype: type) -> np.ndarray:
    more = [1e30, -1e30] if dtype != np.float16 else [6e4, -6e4]
    return np.array([*NASTY, *more, *SPECIAL], dtype)


ACTIVATIONS = [
    ("Gelu", 20, {}, (19, 17, 13, 9)),
    ("Gelu", 20, {"approximate": "tanh"}, (19, 13, 9, 7)),
    ("Mish", 18, {}, (17, 13, 11, 9, 7)),
    ("HardSwish", 14, {}, (13, 11, 9, 7)),
    ("Swish", 24, {}, (23, 13, 11, 7)),
    ("Swish", 24, {"alpha": 1.7}, (23, 13, 11, 7)),
    ("SwiGLU", 28, {"alpha": -0.3}, (27, 23, 13, 11, 7)),
    ("Celu", 12, {}, (11, 9, 7)),
    ("Celu", 12, {"alpha": 0.01}, (11, 9, 7)),
    ("ThresholdedRelu", 10, {"alpha": 0.25}, (9, 8, 7)),
    ("Shrink", 9, {"lambd": 1.0, "bias": 0.5}, (8, 7)),
    ("IsNaN", 9, {}, (8, 7)),
    ("IsInf", 10, {}, (9, 8, 7)),
    ("IsInf", 10, {"detect_negative": 0}, (9, 8, 7)),
    ("IsInf", 10, {"detect_positive": 0}, (9, 8, 7)),
    ("IsInf", 10, {"detect_positive": 0, "detect_negative": 0}, (9, 8, 7)),
    ("Sign", 9, {}, (8, 7)),
]


def _has_dtype(case: tuple[Any, ...], dtype: type) -> bool:
    """Whether the operator takes the dtype at its birth and ONNX Runtime computes in it."""
    op_type, _, attributes, _ = case
    if op_type in ("Celu", "IsInf"):
        return dtype == np.float32 or (op_type == "IsInf" and dtype == np.float64)
    # Of doubles ONNX Runtime computes these, or their factors, in float.
    in_float = op_type == "Shrink" or attributes.get("approximate") == "tanh"
    return dtype != np.float64 or not in_float


@pytest.mark.parametrize(
    ("op_type", "opset", "attributes", "targets", "dtype"),
    [
        (*case, dtype)
        for case in ACTIVATIONS
        if case[1] <= schemas.newest_opset()
        for dtype in (np.float32, np.float64, np.float16)
        if _has_dtype(case, dtype)
    ],
)
def test_element_wise(
    op_type: str, opset: int, attributes: dict[str, Any], targets: tuple[int, ...], dtype: type
) -> None:
    data = _nasty(dtype)
    if op_type == "Sign" and dtype == np.float16:
        data = data[:-1]  # Of a NaN that is a float16, and no other, ONNX Runtime's gives 0.
    names = ["x", "y"] if op_type == "SwiGLU" else ["x"]
    arrays = dict(zip(names, (data, data[::-1].copy()), strict=False))
    source = one_node(op_type, opset, arrays, **attributes)
    for target in targets:
        converts(source, target, arrays, {name: array[::-1] for name, array in arrays.items()})
    scalars = {name: np.array(0.7, dtype) for name in names}
    converts(one_node(op_type, opset, scalars, **attributes), targets[0], scalars)
    empty = {name: np.zeros((2, 0), dtype) for name in names}
    converts(one_node(op_type, opset, empty, **attributes), targets[-1], empty)


@pytest.mark.parametrize("alpha", [-1.0, -2.0, 0.0, -0.0])
def test_celu_with_alpha_that_is_not_positive(alpha: float) -> None:
    x = np.array([-300, -3, -1e-6, -0.0, 0, 0.5, 3, 1e30, np.inf, -np.inf, np.nan], np.float32)
    for target in (11, 7):
        converts(one_node("Celu", 12, {"x": x}, alpha=alpha), target, {"x": x}, in_numpy=True)
        converts(one_node("Celu", 12, {"x": x[1:8]}, alpha=alpha), target, {"x": x[1:8]})


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
        converts(layer, target, inputs)
        converts(mean_square, target, inputs)


SHAPES = [[None] * 3] * 3


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
    ("shape", "dtype"),
    [
        (shape, dtype)
        for shape in ((2, 4, 3, 5), (2, 4), (2, 4, 6))
        for dtype in (np.float32, np.float64, np.float16)
        # ONNX Runtime's variance of two doubles is not exact enough to compare with.
        if shape != (2, 4) or dtype != np.float64
    ],
)
def test_group_normalization(shape: tuple[int, ...], dtype: type) -> None:
    rng = np.random.default_rng(7)
    inputs = {
        "x": rng.normal(2, 3, shape).astype(dtype),
        "s": np.array([0.5, -2, 1, 3], dtype),
        "b": np.array([1, 0, 2, -1], dtype),
    }
    options = {"num_groups": 2, "stash_type": 11 if dtype == np.float64 else 1}
    source = one_node("GroupNormalization", 21, inputs, **options, output_shapes=[shape])
    symbolic = [f"d{axis}" if axis != 1 else 4 for axis in range(len(shape))]
    named = one_node(
        "GroupNormalization",
        21,
        inputs,
        **options,
        shapes={"x": symbolic},
        output_shapes=[symbolic],
    )
    for target in (20, 17, 13, 11, 9, 7):
        converts(source, target, inputs)
        converts(named, target, inputs)


def test_group_normalization_of_nothing() -> None:
    """ONNX Runtime fails on it before, so it is not run."""
    inputs = {"x": np.zeros((0, 4, 3), np.float32), "s": np.ones(4, np.float32)}
    inputs["b"] = inputs["s"]
    source = one_node("GroupNormalization", 21, inputs, num_groups=2, output_shapes=[(0, 4, 3)])
    assert op_types(onnxreduce_cli.convert(source, 13)) == ["Identity"]


def test_group_normalization_by_group() -> None:
    """The definition of opset 18, which is deprecated but was exported."""
    x = np.random.default_rng(3).normal(2, 3, (2, 4, 6)).astype(np.float32)
    inputs = {"x": x, "s": np.array([0.5, -2], np.float32), "b": np.array([1, 0], np.float32)}
    source = one_node("GroupNormalization", 21, inputs, num_groups=2, output_shapes=[x.shape])
    source.opset_import[0].version = 18
    grouped = x.reshape(2, 2, 12)
    deviation = np.sqrt(grouped.var(2, keepdims=True) + 1e-5)
    expected = (grouped - grouped.mean(2, keepdims=True)) / deviation
    expected = expected * inputs["s"][:, None] + inputs["b"][:, None]
    for target in (17, 13, 9):
        actual = run(onnxreduce_cli.convert(source, target), inputs)["y0"]
        np.testing.assert_allclose(actual, expected.reshape(x.shape), rtol=1e-5, atol=1e-6)


def test_mean_variance_normalization_of_unknown_rank() -> None:
    x = np.random.default_rng(0).normal(2, 3, (2, 3, 4, 5)).astype(np.float32)
    for axes in ([-1], [0, -1], [1, 2]):
        shape = [[None] * 4]
        source = one_node(
            "MeanVarianceNormalization",
            9,
            {"x": x},
            hidden=("x",),
            output_shapes=shape,
            axes=axes,
        )
        for target in (8, 7):
            converts(source, target, {"x": x})


def test_mean_variance_normalization() -> None:
    x = np.random.default_rng(0).normal(2, 3, (2, 3, 4, 5)).astype(np.float32)
    for attributes in ({}, {"axes": [1, 2]}, {"axes": [-1]}):
        shapes = [x.shape]
        source = one_node(
            "MeanVarianceNormalization", 9, {"x": x}, output_shapes=shapes, **attributes
        )
        for target in (8, 7):
            converts(source, target, {"x": x})


@pytest.mark.parametrize("op_type", ["GreaterOrEqual", "LessOrEqual"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.newest
def test_or_equal(op_type: str, dtype: type) -> None:
    values = [1, 0, -1, 3, -7] if dtype in (np.int32, np.int64) else [*NASTY[:6], *SPECIAL]
    data = np.array(values, dtype)
    inputs = {"a": data[:, None], "b": data}
    source = one_node(op_type, 12, inputs, output_shapes=[[len(data), len(data)]])
    assert op_types(converts(source, 11, inputs))[-1] in ("Or", "Not")
    if dtype in (np.int32, np.int64):
        converts(source, 9, inputs)


WHERE_SHAPES = [
    ((2, 3), (2, 3), (2, 3)),
    ((3,), (2, 1), ()),
    ((2, 0), (2, 0), ()),
    ((), (3,), (2, 1)),
]


@pytest.mark.parametrize("shapes", WHERE_SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32, np.uint8, bool])
def test_where(shapes: tuple[tuple[int, ...], ...], dtype: type) -> None:
    rng = np.random.default_rng(1)
    values = np.array([1, 0, -1, 5, 100] if dtype is not np.uint8 else [1, 2, 255]).astype(dtype)
    if dtype in (np.float32, np.float64):
        values = np.array([1, -0.0, np.nan, np.inf, -np.inf], dtype)
    c, x, y = (
        rng.choice(source, shape)
        for source, shape in zip(([True, False], values, values), shapes, strict=True)
    )
    inputs = {"c": np.asarray(c), "x": np.asarray(x, dtype), "y": np.asarray(y, dtype)}
    source = one_node("Where", 9, inputs)
    flipped = {**inputs, "c": np.array(~inputs["c"])}
    for target in (8, 7):
        converts(source, target, inputs, flipped, exact=True)


@pytest.mark.parametrize("target", [7, 8])
def test_where_of_shapes_known_at_run_time(target: int) -> None:
    inputs = {
        "c": np.arange(6).reshape(2, 3, 1) % 4 > 1,
        "x": np.array([[[1, np.nan]], [[-np.inf, -0.0]]], np.float32),
        "y": np.array([[np.nan, 5], [np.inf, 6], [7, -0.0]], np.float32),
    }
    shapes = {"c": ["a", "b", 1], "x": ["a", 1, "n"], "y": ["b", "n"]}
    source = one_node("Where", 9, inputs, shapes=shapes)
    flipped = {**inputs, "c": ~inputs["c"]}
    nothing = {"c": inputs["c"][:, :0], "x": inputs["x"], "y": inputs["y"][:0]}
    converts(source, target, inputs, flipped, nothing, exact=True)


def test_where_of_unknown_rank() -> None:
    x = np.array([[1, np.nan, -0.0], [np.inf, 2, 3]], np.float32)
    for y in (x[:1, ::-1].copy(), np.array(7, np.float32)):
        inputs = {"c": x > 1, "x": x, "y": y}
        for hidden in (("x",), ("y",), ("x", "y")):
            source = one_node("Where", 9, inputs, hidden=hidden, output_shapes=[[None, None]])
            for target in (8, 7):
                converts(source, target, inputs, exact=True)
    empty = {"c": np.array(True), "x": x[:0], "y": x[:1]}
    source = one_node("Where", 9, empty, hidden=("x", "y"), output_shapes=[[None, None]])
    converts(source, 8, empty, exact=True, in_numpy=True)


def test_mean_variance_axes() -> None:
    inputs = {"x": np.random.default_rng(5).normal(size=(2, 3, 4, 5)).astype(np.float32)}
    source = one_node("MeanVarianceNormalization", 9, inputs, output_shapes=[[2, 3, 4, 5]])
    high = converts(source, 13, inputs)
    assert list(high.graph.node[0].attribute[0].ints) == [0, 2, 3]
    converts(high, 9, inputs)
    given = one_node("MeanVarianceNormalization", 9, inputs, output_shapes=[[2, 3, 4, 5]], axes=[1])
    assert list(converts(given, 13, inputs).graph.node[0].attribute[0].ints) == [1]
