"""Scatter below the opset it came with."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, one_node, op_types

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


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("initializers", [("i",), ()])
def test_slices_of_size_0(depth: int, initializers: tuple[str, ...]) -> None:
    indices = np.array([[0, 1, 0], [-1, 0, 1]])[:, :depth]
    feeds = []
    for shape in ((2, 3, 2, 2), (2, 3, 0, 0), (2, 2, 2, 0)):
        data = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
        updates = np.full((2, *shape[depth:]), -1.0)
        feeds.append({"x": data, "i": indices, "u": updates})
    shapes = {"x": ["a", "b", "c", "d"], "u": ["e", "f", "g", "h"][depth - 1 :]}
    source = one_node("ScatterND", 13, feeds[0], initializers=initializers, shapes=shapes)
    for target in (10, 8):
        low = converts(source, target, *feeds)
        assert target < 9 or depth > 1 or "Reshape" not in op_types(low)[-1:]
    none = {"x": feeds[0]["x"], "i": indices[:0], "u": feeds[0]["u"][:0]}
    if not initializers:
        shapes["i"] = ["n", depth]
        converts(one_node("ScatterND", 13, none, shapes=shapes), 10, none, feeds[0])


def test_scatter_of_size_0() -> None:
    feeds = []
    for shape, updates in (((2, 3, 2), (1, 3, 2)), ((2, 3, 0), (1, 3, 0)), ((2, 3, 2), (0, 3, 2))):
        data = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        feeds.append(
            {"x": data, "i": np.ones(updates, np.int64), "u": np.full(updates, -1.0, np.float32)}
        )
    names = {name: [f"{name}{axis}" for axis in range(3)] for name in feeds[0]}
    source = one_node("ScatterElements", 11, feeds[0], shapes=names)
    for target in (10, 8, 7):
        converts(source, target, *feeds)
