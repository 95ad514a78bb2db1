"""GatherElements, GatherND and ScatterND below opset 11, and GatherND below 12."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnxreduce_cli import ConversionError, convert
from tests.support import converts, converts_from_9, converts_or_counts, model, one_node

X = np.array([[[1, np.nan, 3], [4, 5, -0.0]], [[7, 8, np.inf], [10, 11, 12]]], np.float32)


def _named(array: np.ndarray, letter: str) -> list[str]:
    return [f"{letter}{axis}" for axis in range(array.ndim)]


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_gather_elements(axis: int, dtype: type) -> None:
    rng = np.random.default_rng(axis + 2)
    size = X.shape[axis]
    shape = [2, 2, 3]
    shape[axis] = 4
    shape[(axis + 1) % 3] = 1
    inputs = {"x": X, "i": rng.integers(-size, size, shape).astype(dtype)}
    known = one_node("GatherElements", 11, inputs, axis=axis, initializers=("i",))
    fixed = one_node("GatherElements", 11, inputs, axis=axis)
    names = {"x": _named(X, "d"), "i": _named(inputs["i"], "i")}
    named = one_node("GatherElements", 11, inputs, axis=axis, shapes=names)
    for target in (10, 9, 7):
        for source in (known, fixed):
            converts(source, target, inputs, exact=True)
        converts_from_9(named, target, inputs, exact=True)
    empty = {"x": X, "i": np.zeros((0, 2, 3), dtype)}
    converts(one_node("GatherElements", 11, empty, axis=axis), 10, empty)


def test_gather_elements_of_one_dimension() -> None:
    inputs = {"x": X[0, 1], "i": np.array([2, -1, 0, 0])}
    for shapes in ({}, {"x": ["n"], "i": ["m"]}):
        converts(one_node("GatherElements", 11, inputs, shapes=shapes), 10, inputs, exact=True)


@pytest.mark.parametrize("initializers", [(), ("i",)])
def test_indices_that_name_no_dimension_block(initializers: tuple[str, ...]) -> None:
    inputs = {"x": X, "i": np.zeros((2, 0), np.int64)}
    with pytest.raises(ConversionError, match="its indices name no dimension"):
        convert(one_node("GatherND", 11, inputs, initializers=initializers), 10)


def _of_unknown_rank(inputs: dict[str, np.ndarray], node: str, out: str) -> tuple[Any, Any]:
    """A model of one node whose inputs are reshaped at run time, and what it is run on."""
    kinds = {
        name: "int64" if value.dtype == np.int64 else "float" for name, value in inputs.items()
    }
    given = ", ".join(f"{kinds[name]}[n{name}] {name}, int64[r{name}] s{name}" for name in inputs)
    reshaped = " ".join(f"{name}r = Reshape ({name}, s{name})" for name in inputs)
    source = model(
        f'<ir_version: 6, opset_import: ["" : 11]> g ({given}) => (float[{out}] y) '
        f"{{ {reshaped} y = {node} ({', '.join(f'{name}r' for name in inputs)}) }}"
    )
    feeds = {name: value.reshape(-1) for name, value in inputs.items()}
    feeds |= {f"s{name}": np.array(value.shape, np.int64) for name, value in inputs.items()}
    return source, feeds


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_gather_elements_of_unknown_rank(axis: int) -> None:
    shape = [2, 2, 3]
    shape[axis] = 4
    size = X.shape[axis]
    inputs = {"x": X, "i": np.random.default_rng(1).integers(-size, size, shape)}
    source, feeds = _of_unknown_rank(inputs, f"GatherElements <axis = {axis}>", "a, b, c")
    empty = {**feeds, "i": feeds["i"][:0], "si": np.array([0, 2, 3])}
    for target in (10, 9, 8, 7):
        converts_from_9(source, target, feeds, exact=True)
        converts_from_9(source, target, empty, exact=True, in_numpy=True)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("lead", [(4,), (2, 3), ()])
def test_gather_nd_and_scatter_nd_of_unknown_rank(depth: int, lead: tuple[int, ...]) -> None:
    rng = np.random.default_rng(depth)
    high = np.array(X.shape[:depth])
    indices = rng.integers(-high, high, (*lead, depth))
    inputs = {"x": X, "i": indices}
    dims = ", ".join("abcde"[: len(lead) + X.ndim - depth])
    for target in (10, 9, 7) if dims else ():
        source, feeds = _of_unknown_rank(inputs, "GatherND", dims)
        converts_or_counts(source, target, feeds, exact=True)
    # Of places that come twice it is left open which update stays.
    rows = np.where(indices < 0, indices + high, indices).reshape(-1, depth)
    count = len(np.unique(rows, axis=0))
    updates = np.ones((*lead, *X.shape[depth:]), np.float32)
    if count == len(rows):
        updates = -np.arange(updates.size, dtype=np.float32).reshape(updates.shape)
    source, feeds = _of_unknown_rank({**inputs, "u": updates}, "ScatterND", "a, b, c")
    for target in (10, 9, 7):
        converts_or_counts(source, target, feeds, exact=True)


@pytest.mark.parametrize("axis", [1, -1])
def test_scatter_elements_of_unknown_rank(axis: int) -> None:
    inputs = {
        "x": X,
        "i": np.array([[[0, -1], [1, 0]]]) if axis == -1 else np.array([[[1, 0, -1]]]),
        "u": -np.arange(4 if axis == -1 else 3, dtype=np.float32),
    }
    inputs["u"] = inputs["u"].reshape(inputs["i"].shape)
    source, feeds = _of_unknown_rank(inputs, f"ScatterElements <axis = {axis}>", "a, b, c")
    for target in (10, 9, 8, 7):
        converts_or_counts(source, target, feeds, exact=True)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_gather_nd(depth: int) -> None:
    rng = np.random.default_rng(depth)
    high = np.array(X.shape[:depth])
    for shape in ((4,), (2, 3), *([()] if depth < X.ndim else [])):
        indices = rng.integers(-high, high, (*shape, depth))
        inputs = {"x": X, "i": indices}
        dims = {"x": ["n", 2, 3], "i": [*_named(indices, "i")[:-1], depth]}
        open_dims = {**dims, "x": ["a", "b", "c"]}
        for initializers, shapes in ((("i",), {}), ((), {}), ((), dims), ((), open_dims)):
            source = one_node("GatherND", 11, inputs, initializers=initializers, shapes=shapes)
            for target in (10, 9, 7):
                converts(source, target, inputs, exact=True)


def test_gather_nd_of_unknown_depth_and_of_slices_of_nothing() -> None:
    inputs = {"x": X, "i": np.zeros((2, 2), np.int64)}
    options: dict[str, Any] = {"output_shapes": [[None, None]]}
    depth = one_node("GatherND", 11, inputs, shapes={"i": ["n", "k"]}, **options)
    converts(depth, 10, inputs, exact=True)
    for dtype in (np.float32, np.int64):
        empty = {"x": np.zeros((2, 3, 0), dtype), "i": np.zeros((4, 2), np.int64)}
        for target in (10, 8):
            converts(one_node("GatherND", 11, empty), target, empty, exact=True, in_numpy=True)


@pytest.mark.parametrize("shape", [(2, 7, 0, 3), (2, 0, 3, 3), (0, 7, 2, 3)])
def test_gather_nd_of_sizes_that_may_be_zero(shape: tuple[int, ...]) -> None:
    full = {"x": np.arange(36, dtype=np.float32).reshape(2, 2, 3, 3), "i": np.array([[0, 1]])}
    shapes = {"x": ["a", "b", "c", 3], "i": ["m", 2]}
    source = one_node("GatherND", 13, full, shapes=shapes)
    rows = 0 if 0 in shape[:2] else 4
    empty = {"x": np.zeros(shape, np.float32), "i": np.ones((rows, 2), np.int64)}
    for target in (10, 8, 7):
        converts(source, target, full, empty, exact=True, in_numpy=True)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_scatter_nd(depth: int) -> None:
    places = np.array([[0, 1, 2], [1, -1, 0]])[:, :depth]
    updates = -np.arange(2 * np.prod(X.shape[depth:]), dtype=np.float32)
    inputs = {"x": X, "i": places, "u": updates.reshape(2, *X.shape[depth:])}
    for initializers in ((), ("i",)):
        source = one_node("ScatterND", 11, inputs, initializers=initializers)
        for target in (10, 9):
            converts(source, target, inputs, exact=True)


def test_scatter_nd_of_unknown_shape() -> None:
    inputs = {"x": X, "i": np.array([[1, 1], [0, -1]]), "u": -X[0, :, :3]}
    shapes = {"x": ["n", "k", "l"], "i": ["m", 2], "u": ["m", "l"]}
    source = one_node("ScatterND", 11, inputs, shapes=shapes)
    for target in (10, 9, 7):
        converts(source, target, inputs, exact=True)


@pytest.mark.parametrize("hidden", [(), ("x", "i")])
def test_without_batch_dims(hidden: tuple[str, ...]) -> None:
    x = np.arange(48, dtype=np.float32).reshape(2, 2, 3, 4)
    for batch_dims, indices in (
        (1, np.array([[[1], [0], [-1]], [[0], [1], [1]]])),
        (1, np.array([[1, -1], [0, 2]])),
        (2, np.array([[[2], [-1]], [[0], [1]]])),
        (2, np.array([[[2, -3], [0, 1]], [[0, 0], [1, 3]]])),
        (0, np.array([[1, 0]])),
    ):
        inputs = {"x": x, "i": indices}
        shape = [[None] * (indices.ndim - 1 + 4 - batch_dims - indices.shape[-1])]
        source = one_node(
            "GatherND", 13, inputs, hidden=hidden, batch_dims=batch_dims, output_shapes=shape
        )
        for target in (11, 10, 7):
            converts_or_counts(source, target, inputs, exact=True)
    converts(one_node("GatherND", 12, inputs, batch_dims=0), 11, inputs, exact=True)
    empty = {"x": x, "i": np.zeros((2, 0, 2), np.int64)}
    converts(one_node("GatherND", 12, empty, batch_dims=1), 11, empty, exact=True, in_numpy=True)
