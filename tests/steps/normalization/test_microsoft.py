"""ONNX Runtime's own normalizations in standard operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser

import onnxreduce_cli
from tests.contrib import agrees, node, reason
from tests.support import assert_same, op_types, run

RNG = np.random.default_rng(7)
SKIP = "SkipLayerNormalization"
SIMPLIFIED = "SkipSimplifiedLayerNormalization"
PARAMETERS = {SKIP: ("gamma", "beta", "bias"), SIMPLIFIED: ("gamma", "bias")}


def inputs_of(op_type: str, *lacking: str, dtype: type = np.float32) -> dict[str, Any]:
    inputs: dict[str, Any] = {name: RNG.normal(size=(2, 3, 4)) for name in ("x", "skip")}
    inputs |= {name: RNG.normal(size=4) for name in PARAMETERS[op_type]}
    return {n: None if n in lacking else array.astype(dtype) for n, array in inputs.items()}


@pytest.mark.parametrize("lacking", [(), ("bias",), ("beta",), ("beta", "bias")])
@pytest.mark.parametrize("op_type", [SKIP, SIMPLIFIED])
@pytest.mark.parametrize("opset", [7, 13, 17, 23])
def test_of_a_sum(op_type: str, lacking: tuple[str, ...], opset: int) -> None:
    inputs = inputs_of(op_type, *lacking)
    data = ("x", "skip")
    found = agrees(node(op_type, inputs, data, np.float32, epsilon=1e-3), inputs, data, opset)
    last = "LayerNormalization" if op_type == SKIP else "RMSNormalization"
    if opset == 23:
        assert op_types(found)[-1] == last


@pytest.mark.parametrize("op_type", [SKIP, SIMPLIFIED])
def test_the_default_epsilon_is_small(op_type: str) -> None:
    inputs = inputs_of(op_type, "beta", "bias")
    inputs |= {name: inputs[name] * np.float32(1e-4) for name in ("x", "skip")}
    agrees(node(op_type, inputs, ("x", "skip"), np.float32), inputs, ("x", "skip"), 13)


@pytest.mark.parametrize(
    "outputs",
    [
        ("y", "", "", "s"),
        # Older runtimes leave this output out.
        pytest.param(("y", "", "f2"), marks=pytest.mark.newest),
        pytest.param(("y", "", "f2", "s"), marks=pytest.mark.newest),
    ],
)
@pytest.mark.parametrize("op_type", [SKIP, SIMPLIFIED])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("opset", [13, 17, 23])
def test_its_other_outputs(op_type: str, outputs: tuple[str, ...], dtype: type, opset: int) -> None:
    inputs = inputs_of(op_type, dtype=dtype)
    data = ("x", "skip")
    agrees(node(op_type, inputs, data, dtype, outputs, epsilon=1e-3), inputs, data, opset)


@pytest.mark.newest
def test_the_mean() -> None:
    inputs = inputs_of(SKIP)
    data = ("x", "skip")
    source = node(SKIP, inputs, data, np.float32, ("y", "f1", "f2", "s"))
    agrees(source, inputs, data, 17)
    assert "'mean' is read: of an infinity it is NaN" in reason(source, 13)
    source = node(SIMPLIFIED, inputs_of(SIMPLIFIED), data, np.float32, ("y", "f1"))
    assert "'mean' is read" in reason(source)


@pytest.mark.parametrize("op_type", [SKIP, SIMPLIFIED])
def test_the_sum_of_halves_is_normalised_before_it_is_rounded(op_type: str) -> None:
    inputs = inputs_of(op_type, dtype=np.float16)
    large = np.array([[60000, -60000, 50000, 1]], np.float16)
    inputs |= {"x": large, "skip": large}
    data = ("x", "skip")
    source = node(op_type, inputs, data, np.float16, ("y", "", "", "s"))
    found = agrees(source, inputs, data, 13)
    assert np.isinf(run(found, {"x": large, "skip": large})["s"]).any()


@pytest.mark.parametrize("op_type", [SKIP, SIMPLIFIED])
@pytest.mark.parametrize("shape", [(3, 4), (0, 3, 4), (2, 0, 4)])
def test_other_shapes(op_type: str, shape: tuple[int, ...]) -> None:
    inputs = inputs_of(op_type)
    inputs |= {name: RNG.normal(size=shape).astype(np.float32) for name in ("x", "skip")}
    data = ("x", "skip")
    agrees(node(op_type, inputs, data, np.float32, sizes=False), inputs, data, 13)


@pytest.mark.parametrize("op_type", [SKIP, SIMPLIFIED])
def test_a_skip_that_is_broadcast(op_type: str) -> None:
    inputs = inputs_of(op_type)
    inputs["skip"] = inputs["skip"][0]
    agrees(node(op_type, inputs, ("x", "skip"), np.float32), inputs, ("x", "skip"), 13)


# Older runtimes take the square of the mean off the mean of squares, which overflows.
@pytest.mark.newest
@pytest.mark.parametrize("op_type", [SKIP, SIMPLIFIED])
def test_numbers_at_their_edges(op_type: str) -> None:
    inputs = inputs_of(op_type)
    rows = [[1, np.inf, 2, 3], [np.nan, 1, 2, 3], [-np.inf, 0, 0, 0], [1e20, -1e20, 1e20, 1e21]]
    inputs |= {"x": np.array(rows, np.float32), "skip": np.zeros((4, 4), np.float32)}
    agrees(node(op_type, inputs, ("x", "skip"), np.float32), inputs, ("x", "skip"), 13)


TEXT = """<ir_version: 8, opset_import: ["": {0}]>
g ({1}[b, 3, 4] x) => ({2}[b, 3, 4] y) <{2}[4] scale = {{1.0, 2.0, 0.5, 3.0}}> {{
  y = {3}<axis = -1, epsilon = 0.001>(x, scale)
}}"""


def of_default_domain(
    op_type: str, opset: int, data: str = "float", scale: str = "float"
) -> ModelProto:
    found: ModelProto = parser.parse_model(TEXT.format(opset, data, scale, op_type))
    return found


@pytest.mark.parametrize("expand", ["com.microsoft", "SimplifiedLayerNormalization"])
@pytest.mark.parametrize("opset", [7, 13, 17, 23, 24])
def test_simplified_of_the_default_domain(expand: str, opset: int) -> None:
    source = of_default_domain("SimplifiedLayerNormalization", 17)
    result = onnxreduce_cli.convert(source, opset, expand=(expand,))
    assert "SimplifiedLayerNormalization" not in op_types(result)
    x = RNG.normal(size=(2, 3, 4)).astype(np.float32)
    before, after = (run(item, {"x": x})["y"] for item in (source, result))
    np.testing.assert_allclose(before, after, rtol=1e-5)


@pytest.mark.parametrize("outputs", [("y",), ("y", "f1")])
@pytest.mark.parametrize("scale", [np.float16, np.float32])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("opset", [13, 23])
def test_simplified_of_two_dtypes(
    dtype: type, scale: type, outputs: tuple[str, ...], opset: int
) -> None:
    inputs: dict[str, Any] = {
        "x": RNG.normal(size=(2, 3, 4)).astype(dtype),
        "scale": RNG.normal(size=4).astype(scale),
    }
    source = node("SimplifiedLayerNormalization", inputs, ("x",), scale, outputs, domain="")
    agrees(source, inputs, ("x",), opset)


@pytest.mark.parametrize("axis", [0, 1, 2, -2])
def test_simplified_over_more_axes(axis: int) -> None:
    inputs = {"x": RNG.normal(size=(2, 3, 4)), "scale": RNG.normal(size=(2, 3, 4))}
    inputs = {name: array.astype(np.float64) for name, array in inputs.items()}
    inputs["scale"] = inputs["scale"][(0,) * (axis % 3)]
    name = "SimplifiedLayerNormalization"
    source = node(name, inputs, ("x",), np.float64, domain="", axis=axis)
    agrees(source, inputs, ("x",), 13)


def test_what_simplified_blocks() -> None:
    inputs: dict[str, Any] = {"x": np.ones((2, 3), np.float32), "scale": np.ones((2, 3))}
    inputs["scale"] = inputs["scale"].astype(np.float32)
    name = "SimplifiedLayerNormalization"
    outputs = ("y", "f1")
    source = node(name, inputs, ("x",), np.float32, outputs, domain="", axis=0)
    assert "it normalises more than the last axis" in reason(source)
    source = node(name, inputs, ("x",), np.float32, outputs, domain="", stash_type=11)
    assert "may be a double" in reason(source)


@pytest.mark.parametrize("expand", ["com.microsoft", "LayerNormalization"])
@pytest.mark.parametrize("target", [7, 13, 16])
def test_layer_normalization_before_onnx_had_it(expand: str, target: int) -> None:
    source = of_default_domain("LayerNormalization", 13)
    result = onnxreduce_cli.convert(source, target, expand=(expand,))
    assert "LayerNormalization" not in op_types(result)
    x = RNG.normal(size=(2, 3, 4)).astype(np.float32)
    before, after = (run(item, {"x": x})["y"] for item in (source, result))
    np.testing.assert_allclose(before, after, rtol=1e-5, atol=1e-6)


def test_layer_normalization_of_two_dtypes_blocks() -> None:
    source = of_default_domain("LayerNormalization", 13, "float16")
    assert "must have one dtype" in reason(source, 13)


@pytest.mark.parametrize("op_type", ["LayerNormalization", "SimplifiedLayerNormalization"])
def test_a_list_of_operators_without_them(op_type: str) -> None:
    source = of_default_domain(op_type, 13)
    allowed = ("Add", "Div", "Mul", "Pow", "ReduceMean", "Sqrt", "Sub")
    result = onnxreduce_cli.convert(source, allow_ops=allowed)
    assert {*op_types(result)} <= {*allowed}
    x = RNG.normal(size=(2, 3, 4)).astype(np.float32)
    before, after = (run(item, {"x": x})["y"] for item in (source, result))
    assert_same(before, after)


EMBED = "EmbedLayerNormalization"
EMBEDDED = ("ids", "segments", "mask", "places")


def embedded(shape: tuple[int, int] = (2, 5), dtype: type = np.float32) -> dict[str, Any]:
    tables = {"words": (11, 8), "positions": (7, 8), "kinds": (3, 8), "gamma": (8,), "beta": (8,)}
    found: dict[str, Any] = {
        "ids": RNG.integers(0, 11, size=shape).astype(np.int32),
        "segments": RNG.integers(0, 3, size=shape).astype(np.int32),
    }
    found |= {name: RNG.normal(size=size).astype(dtype) for name, size in tables.items()}
    return {
        **found,
        "mask": RNG.integers(-1, 3, size=shape).astype(np.int32),
        "places": RNG.integers(0, 7, size=shape).astype(np.int32),
    }


@pytest.mark.parametrize(
    "lacking",
    [(), ("places",), ("mask",), ("segments", "kinds"), ("segments", "kinds", "mask", "places")],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("opset", [7, 13, 17])
def test_embeddings(lacking: tuple[str, ...], dtype: type, opset: int) -> None:
    inputs = embedded(dtype=dtype) | dict.fromkeys(lacking)
    data = tuple(name for name in EMBEDDED if name not in lacking)
    source = node(EMBED, inputs, data, dtype, ("y", "i1", "s"), epsilon=1e-3)
    agrees(source, inputs, data, opset)


def test_embeddings_alone() -> None:
    inputs = embedded()
    inputs |= {name: inputs[name] * np.float32(1e-6) for name in ("words", "positions", "kinds")}
    data = ("ids", "segments", "mask", "places")
    agrees(node(EMBED, inputs, data, np.float32, ("y", "i1")), inputs, data, 13)


@pytest.mark.parametrize("shape", [(0, 5), (2, 0), (3, 4)])
def test_embeddings_of_sizes_at_run_time(shape: tuple[int, int]) -> None:
    inputs = embedded(shape) | dict.fromkeys(["mask", "places"])
    data = ("ids", "segments")
    source = node(EMBED, inputs, data, np.float32, ("y", "i1"), sizes=False)
    for value in source.graph.input:
        value.type.tensor_type.shape.dim[1].dim_param = "length"
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    agrees(source, inputs, data, 13)
