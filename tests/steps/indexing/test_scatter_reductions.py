"""Scatters that reduce: 16 and 18."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from onnxreduce_cli import ConversionError, convert
from tests.support import converts, model, one_node, op_types

RNG = np.random.default_rng(7)
REDUCTIONS = ("add", "mul", "max", "min")


def elements(dtype: type) -> dict[str, np.ndarray]:
    return {
        "x": RNG.uniform(-3, 3, (3, 4)).astype(dtype),
        "i": np.array([[0, 1, 1], [-1, 0, 1], [0, 0, -2], [2, 1, 1], [0, 2, 1]]),
        "u": RNG.uniform(-3, 3, (5, 3)).astype(dtype),
    }


def slices(dtype: type) -> dict[str, np.ndarray]:
    return {
        "x": RNG.uniform(-3, 3, (3, 4, 2)).astype(dtype),
        "i": np.array([[[0, 1], [2, 3]], [[-3, 1], [2, -1]], [[0, 1], [1, 1]]]),
        "u": RNG.uniform(-3, 3, (3, 2, 2)).astype(dtype),
    }


def source(op_type: str, inputs: dict[str, Any], reduction: str, **given: Any) -> ModelProto:
    return one_node(op_type, 18, inputs, reduction=reduction, **given)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32, np.int64])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_extremes_and_sums_and_products_one_after_the_other(reduction: str, dtype: type) -> None:
    for op_type, inputs in (("ScatterElements", elements(dtype)), ("ScatterND", slices(dtype))):
        for target in (17, 15, 13, 11):
            # ONNX Runtime reduces no halves.
            converts(
                source(op_type, inputs, reduction), target, inputs, in_numpy=dtype == np.float16
            )


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_below_opset_11(reduction: str) -> None:
    for op_type, inputs in (
        ("ScatterElements", elements(np.float32)),
        ("ScatterND", slices(np.float32)),
    ):
        converts(source(op_type, inputs, reduction), 9, inputs)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_special_values(reduction: str) -> None:
    for op_type, inputs in (
        ("ScatterElements", elements(np.float32)),
        ("ScatterND", slices(np.float32)),
    ):
        inputs["u"].flat[::3] = np.inf, -np.inf, -0.0, 0.0, np.nan
        converts(source(op_type, inputs, reduction), 13, inputs)


@pytest.mark.parametrize("axis", [1, -1])
def test_another_axis(axis: int) -> None:
    inputs = {key: value.T.copy() for key, value in elements(np.float32).items()}
    converts(source("ScatterElements", inputs, "add", axis=axis), 13, inputs)


@pytest.mark.parametrize("op_type", ["ScatterElements", "ScatterND"])
def test_sizes_known_at_run_time(op_type: str) -> None:
    inputs = elements(np.float32) if op_type == "ScatterElements" else slices(np.float32)
    shapes = {"x": ["a", "b", "c"][: inputs["x"].ndim], "i": ["n", "k"], "u": ["n", "k"]}
    if op_type == "ScatterND":
        shapes |= {"i": ["n", "k", 2], "u": ["n", "k", "c"]}
    empty = {**inputs, "i": inputs["i"][:0], "u": inputs["u"][:0]}
    converts(source(op_type, inputs, "add", shapes=shapes), 13, inputs, empty)


@pytest.mark.parametrize("rest", [(0, 2), (2, 0)])
def test_slices_of_a_size_that_may_be_zero(rest: tuple[int, ...]) -> None:
    full = {"x": np.zeros((3, 2, 2)), "i": np.array([[1], [1]]), "u": np.ones((2, 2, 2))}
    shapes = {"x": ["a", "b", "c"], "i": ["n", 1], "u": ["n", "b", "c"]}
    empty = {**full, "x": np.zeros((3, *rest)), "u": np.ones((2, *rest))}
    for target in (15, 13, 11):
        converts(source("ScatterND", full, "add", shapes=shapes), target, full, empty)


def test_indices_that_differ_need_no_loop() -> None:
    inputs = slices(np.float32)
    inputs["i"] = np.array([[[0, 1], [2, 3]], [[-2, 1], [2, -2]], [[0, 0], [1, 0]]])
    found = converts(source("ScatterND", inputs, "add", initializers=("i",)), 13, inputs)
    assert op_types(found) == ["GatherND", "Add", "ScatterND"]


@pytest.mark.parametrize(("opset", "reduction"), [(16, "min"), (18, "or")])
def test_a_reduction_that_does_not_exist_blocks(opset: int, reduction: str) -> None:
    feeds = {"x": np.zeros(3, np.float32), "i": np.array([0]), "u": np.ones(1, np.float32)}
    source = one_node("ScatterElements", opset, feeds, reduction=reduction)
    with pytest.raises(ConversionError, match=f"its reduction='{reduction}' does not exist"):
        convert(source, 13)


def test_no_reduction_stays() -> None:
    inputs = slices(np.float32)
    found = converts(source("ScatterND", inputs, "none"), 13, inputs)
    assert op_types(found) == ["ScatterND"]


def test_unknown_depth() -> None:
    inputs = slices(np.float32)
    shapes = {"i": ["n", "k", "d"]}
    converts(source("ScatterND", inputs, "add", shapes=shapes), 13, inputs)


@pytest.mark.parametrize("op_type", ["ScatterElements", "ScatterND"])
def test_unknown_rank(op_type: str) -> None:
    inputs = elements(np.float32) if op_type == "ScatterElements" else slices(np.float32)
    dims = ", ".join("abc"[: inputs["x"].ndim])
    found = model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[n] x, int64[r] xs, int64[m] i, '
        f"int64[s] is, float[k] u, int64[t] us) => (float[{dims}] y0) {{ xr = Reshape (x, xs) "
        "ir = Reshape (i, is) ur = Reshape (u, us) "
        f'y0 = {op_type} <reduction = "max"> (xr, ir, ur) }}'
    )
    feeds = {name: value.reshape(-1) for name, value in inputs.items()}
    feeds |= {f"{name}s": np.array(value.shape) for name, value in inputs.items()}
    for target in (17, 13, 11):
        converts(found, target, feeds)
