"""Gather, GatherND and ScatterND of constant indices in Slices and Concats."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto

import onnxreduce_cli
from tests.support import blockers, converts, one_node, op_types

SLICES = ("Concat", "Identity", "Reshape", "Slice", "Squeeze")
REDUCED = {"none": SLICES, "add": (*SLICES, "Add"), "mul": (*SLICES, "Mul")}
DTYPES = ("float32", "int64", "bool", "object")


def values(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    pool = {
        "float32": np.array([math.nan, math.inf, -math.inf, -0.0, 1, 2.5], np.float32),
        "int64": np.array([-(2**63), 2**63 - 1, 3]),
        "bool": np.array([True, False]),
        "object": np.array(["a", "", "é"], object),
    }
    return rng.choice(pool[dtype], shape)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, Any, Any]:
    """Data, indices of which no two are the same, and a generator of numbers."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    depth = draw(st.integers(1, len(shape)))
    if depth < len(shape) and draw(st.booleans()):
        shape = (*shape[:-1], 0)
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    if draw(st.booleans()):
        chosen = []
        for size in shape[:depth]:
            start = draw(st.integers(0, size - 1))
            step = draw(st.integers(1, 2))
            chosen.append(np.arange(start, draw(st.integers(start + 1, size)), step))
        indices = np.stack(np.meshgrid(*chosen, indexing="ij"), -1)
    else:
        every = np.stack(np.unravel_index(np.arange(math.prod(shape[:depth])), shape[:depth]), -1)
        count = draw(st.integers(1, len(every)))
        indices = rng.permutation(every)[:count]
        if draw(st.booleans()):
            indices = indices[np.lexsort(indices.T[::-1])]
        outer = {"list": (count,), "matrix": (1, count), "one": ()}[
            draw(st.sampled_from(("list", "matrix", "one")))
        ]
        indices = indices[:1].reshape(depth) if not outer else indices.reshape(*outer, depth)
    negative = rng.random(indices.shape) < 0.3
    indices = np.where(negative, indices - np.array(shape[:depth]), indices)
    return values(draw(st.sampled_from(DTYPES)), shape, rng), indices, rng


def gathered(x: Any, indices: Any, opset: int = 13, **attributes: Any) -> ModelProto:
    feeds = {"x": x, "indices": indices}
    first = attributes.get("batch_dims", 0) + indices.shape[-1]
    shapes = [(*indices.shape[:-1], *x.shape[first:])]
    return one_node(
        "GatherND", opset, feeds, initializers=("indices",), output_shapes=shapes, **attributes
    )


def scattered(x: Any, indices: Any, updates: Any, opset: int = 18, **options: Any) -> ModelProto:
    feeds = {"x": x, "indices": indices, "updates": updates}
    return one_node("ScatterND", opset, feeds, initializers=("indices",), **options)


@settings(max_examples=80, deadline=None)
@given(cases())
def test_gathered(case: tuple[Any, Any, Any]) -> None:
    x, indices, _ = case
    result = converts(gathered(x, indices), 13, {"x": x}, exact=True, allow_ops=SLICES)
    assert {*op_types(result)} <= {*SLICES}


@settings(max_examples=80, deadline=None)
@given(cases(), st.sampled_from(("none", "add", "mul")))
def test_scattered(case: tuple[Any, Any, Any], reduction: str) -> None:
    x, indices, rng = case
    if x.dtype.kind in "bO":
        reduction = "none"
    shape = (*indices.shape[:-1], *x.shape[indices.shape[-1] :])
    updates = values(x.dtype.name, shape, rng)
    source = scattered(x, indices, updates, reduction=reduction)
    feeds = {"x": x, "updates": updates}
    result = converts(source, 18, feeds, exact=True, in_numpy=True, allow_ops=REDUCED[reduction])
    assert {*op_types(result)} <= {*REDUCED[reduction]}


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.lists(st.integers(1, 3), max_size=2),
    st.integers(0, 999),
    st.sampled_from(DTYPES),
)
def test_gathered_along_an_axis(shape: list[int], outer: list[int], seed: int, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    axis = int(rng.integers(-len(shape), len(shape)))
    indices = rng.integers(-shape[axis], shape[axis], outer)
    x = values(dtype, tuple(shape), rng)
    feeds = {"x": x, "indices": indices}
    axis %= len(shape)
    dims = [(*shape[:axis], *outer, *shape[axis + 1 :])]
    source = one_node("Gather", 13, feeds, initializers=("indices",), output_shapes=dims, axis=axis)
    # Of each row of strings ONNX Runtime gathers the first alone.
    rows = dtype == "object"
    result = converts(source, 13, {"x": x}, exact=True, in_numpy=rows, allow_ops=SLICES)
    assert {*op_types(result)} <= {*SLICES}


@pytest.mark.parametrize("batch_dims", [1, 2])
def test_batches(batch_dims: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 3, 4, 2)).astype(np.float32)
    indices = rng.integers(-2, 2, (2, 3, 1)[: batch_dims + 1])
    for taken in (indices, indices.reshape(*indices.shape[:-1], 1, -1)):
        source = gathered(x, taken, batch_dims=batch_dims)
        converts(source, 13, {"x": x}, exact=True, allow_ops=SLICES)


def test_what_torch_assigns() -> None:
    """``x[:, 2:4, ::2] = u`` of 100 rows: their number does not count."""
    rows, middle, columns = np.arange(100), np.arange(2, 4), np.arange(0, 6, 2)
    indices = np.stack(np.meshgrid(rows, middle, columns, indexing="ij"), -1)
    x, u = np.zeros((100, 5, 6), np.float32), np.ones((100, 2, 3), np.float32)
    result = converts(
        scattered(x, indices, u), 18, {"x": x, "updates": u}, exact=True, allow_ops=SLICES
    )
    assert len(result.graph.node) < 14
    read = converts(gathered(x, indices), 13, {"x": x}, exact=True, allow_ops=SLICES)
    assert op_types(read) == ["Slice", "Slice"]


def test_sizes_that_are_not_indexed_may_be_unknown() -> None:
    x, u, indices = np.zeros((4, 3)), np.ones((2, 3)), np.array([[1], [2]])
    shapes = {"x": [4, "n"], "updates": [2, "n"]}
    source = scattered(x, indices, u, shapes=shapes)
    result = converts(source, 18, {"x": x, "updates": u}, exact=True, allow_ops=SLICES)
    assert op_types(result) == ["Slice", "Slice", "Concat"]


def test_it_is_taken_last() -> None:
    x = np.zeros((4, 3), np.float32)
    source = gathered(x, np.array([[1], [2]]))
    result = onnxreduce_cli.convert(source, 13, allow_ops=[*SLICES, "Gather"])
    assert op_types(result) == ["Gather"]
    result = onnxreduce_cli.convert(source, 13, allow_ops=SLICES)
    assert op_types(result) == ["Slice"]


X = np.zeros((4, 3), np.float32)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (one_node("GatherND", 13, {"x": X, "i": np.array([[1]])}), "only known at run time"),
        (gathered(X, np.array([[4]])), "beyond its data"),
        (gathered(X, np.zeros((0, 1), np.int64)), "it has no indices"),
        (gathered(np.zeros(200), np.arange(200)[::-1, None].copy()), "into 200 pieces"),
        (scattered(X, np.array([[1], [-3]]), X[:2]), "point to one place"),
        (scattered(X, np.array([[1], [2]]), X[:2], reduction="max"), "'max' is not written out"),
        (
            one_node(
                "GatherND",
                13,
                {"x": X, "indices": np.array([[1]])},
                initializers=("indices",),
                shapes={"x": ["n", 3]},
                output_shapes=[[1, 3]],
            ),
            "not all sizes of its data that are indexed are known",
        ),
        (
            one_node(
                "GatherND",
                13,
                {"x": X, "indices": np.array([[[1], [2]]])},
                initializers=("indices",),
                shapes={"x": [4, "n"]},
                output_shapes=[[1, 2, None]],
            ),
            "not all sizes of its data are known",
        ),
    ],
)
def test_what_blocks(source: ModelProto, reason: str) -> None:
    opset = source.opset_import[0].version
    (found,) = blockers(source, opset, allow_ops=SLICES)
    assert reason in found.reason
