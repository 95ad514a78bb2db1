"""TensorScatter below opset 24."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.support import converts, converts_from_9, model, one_node, op_types

RANDOM = np.random.default_rng(3)


def inputs_for(
    shape: tuple[int, ...], axis: int, length: int, at: Any, dtype: Any
) -> dict[str, Any]:
    changed = list(shape)
    changed[axis] = length
    return {
        "cache": RANDOM.integers(0, 99, shape).astype(dtype),
        "update": RANDOM.integers(100, 120, changed).astype(dtype),
        "at": None if at is None else np.array(at, np.int64),
    }


@pytest.mark.parametrize("axis", [-2, 1, -1])
@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_tensor_scatter(axis: int, mode: str) -> None:
    for at, dtype in itertools.product(([1, 2], None), (np.float32, np.int64, np.float16)):
        if at and mode == "circular":
            at = [3, 5]
        inputs = inputs_for((2, 4, 4, 4), axis, 2, at, dtype)
        feeds = {name: array for name, array in inputs.items() if array is not None}
        names = {"cache": ["b", "c", "d", "e"], "update": ["b", "f", "g", "h"], "at": ["b"]}
        known = one_node("TensorScatter", 24, inputs, axis=axis, mode=mode)
        named = one_node(
            "TensorScatter",
            24,
            inputs,
            shapes=names,
            output_shapes=[[None] * 4],
            axis=axis,
            mode=mode,
        )
        for target in (23, 18, 17, 13, 11, 10, 9, 8, 7) if dtype == np.float32 else (23, 13, 9):
            converts(known, target, feeds, exact=True)
            converts_from_9(named, target, feeds, exact=True)


@pytest.mark.parametrize("given", ["", ", at"])
@pytest.mark.parametrize("axis", [-2, 1])
def test_tensor_scatter_of_unknown_rank(axis: int, given: str) -> None:
    source = model(
        '<ir_version: 11, opset_import: ["" : 24]> g (float[n] flat, int64[k] shape, float[m] part,'
        " int64[k] new, int64[b] at) => (float[c, d, e] y) { x = Reshape (flat, shape)"
        f" update = Reshape (part, new) y = TensorScatter <axis = {axis}> (x, update{given}) }}"
    )
    feeds = {
        "flat": np.arange(24, dtype=np.float32),
        "shape": np.array([2, 4, 3]),
        "part": -np.arange(12, dtype=np.float32),
        "new": np.array([2, 2, 3]),
        "at": np.array([2, 1]),
    }
    for target in (23, 13, 11):
        converts(source, target, feeds, exact=True)


def test_tensor_scatter_of_nothing() -> None:
    for shape, length in (((2, 4, 0), 2), ((2, 4, 3), 0), ((0, 4, 3), 2)):
        at = [0] * shape[0]
        inputs = inputs_for(shape, -2, length, at, np.float32)
        converts(one_node("TensorScatter", 24, inputs), 23, inputs, exact=True, in_numpy=True)


def test_tensor_scatter_without_indices() -> None:
    inputs = inputs_for((2, 4, 3), 1, 2, None, np.float32)
    source = one_node("TensorScatter", 24, inputs)
    assert op_types(converts(source, 23, inputs)) == ["Slice", "Concat"]
