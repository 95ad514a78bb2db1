"""Scatter below the opset it came with."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, one_node

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("initializers", [(), ("i",)])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_scatter_below_opset_9(axis: int, initializers: tuple[str, ...]) -> None:
    rng = np.random.default_rng(5)
    indices = np.argsort(rng.random(X.shape), axis=axis)
    indices = np.take(indices, [0], axis=axis)[:, :2]
    inputs = {"x": X, "i": indices, "u": -np.ones(indices.shape, np.float32)}
    source = one_node("ScatterElements", 11, inputs, initializers=initializers, axis=axis)
    for target in (8, 7):
        converts(source, target, inputs, exact=True)


@pytest.mark.parametrize("dtype", [np.int64, np.bool_])
def test_sizes_known_at_run_time(dtype: type) -> None:
    inputs = {"x": X.astype(dtype), "i": np.array([[[2, 0, 3]]]), "u": np.ones((1, 1, 3), dtype)}
    shapes = {"x": ["a", "b", "c"], "i": ["d", "e", "f"], "u": ["d", "e", "f"]}
    source = one_node("ScatterElements", 11, inputs, shapes=shapes, axis=2)
    none = {**inputs, "i": inputs["i"][:0], "u": inputs["u"][:0]}
    converts(source, 7, inputs, none, exact=True)


@pytest.mark.parametrize("initializers", [(), ("i",)])
def test_slices(initializers: tuple[str, ...]) -> None:
    inputs = {"x": X, "i": np.array([[1, 2], [0, -1]]), "u": -np.ones((2, 4), np.float32)}
    source = one_node("ScatterND", 11, inputs, initializers=initializers)
    converts(source, 7, inputs, exact=True)


@pytest.mark.parametrize("axis", [0, -1])
def test_scatter_of_unknown_rank(axis: int) -> None:
    inputs = {"x": X, "i": np.array([[[1, 0]], [[0, -1]]]), "u": -np.ones((2, 1, 2), np.float32)}
    source = one_node(
        "ScatterElements", 11, inputs, axis=axis, hidden=("x", "i"), output_shapes=[[None] * 3]
    )
    for target in (10, 8):
        converts(source, target, inputs, exact=True)
