"""Tile, Expand and Split in the Concats and Slices that every runtime takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto

from tests.support import blockers, converts, one_node, op_types

CONCATS = ("Concat", "Identity", "Unsqueeze")
SLICES = ("Identity", "Slice")
#: Where one is needed for repeats and for sizes.
SIZES = st.sampled_from((1, 2, 3, 63, 64, 65, 200, 4097))


def numbered(shape: Any) -> Any:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), SIZES), min_size=1, max_size=2))
def test_tiled(dims: list[tuple[int, int]]) -> None:
    sizes, repeats = (np.array(item) for item in zip(*dims, strict=True))
    x = numbered(sizes)
    if np.prod(sizes * repeats) > 1 << 20:
        return
    source = one_node("Tile", 13, {"x": x, "r": repeats}, initializers=("r",))
    result = converts(source, 13, {"x": x}, exact=True, allow_ops=CONCATS)
    assert {*op_types(result)} <= {*CONCATS}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from((0, 1, 3)), max_size=3), st.lists(SIZES, max_size=2))
def test_expanded(sizes: list[int], more: list[int]) -> None:
    shape = [*more, *[7 if size == 1 else size for size in sizes]]
    if np.prod(shape) > 1 << 20:
        return
    x = numbered(tuple(sizes))
    source = one_node("Expand", 13, {"x": x, "s": np.array(shape, np.int64)}, initializers=("s",))
    result = converts(source, 13, {"x": x}, exact=True, allow_ops=CONCATS)
    assert {*op_types(result)} <= {*CONCATS}


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize(("axis", "number"), [(0, 2), (1, 3), (-1, 3), (0, 1)])
def test_equal_parts(opset: int, axis: int, number: int) -> None:
    x = numbered((4, 6))
    options: dict[str, Any] = {"num_outputs": number} if opset >= 18 else {}
    source = one_node("Split", opset, {"x": x}, outputs=number, axis=axis, **options)
    result = converts(source, opset, {"x": x}, exact=True, allow_ops=SLICES)
    assert op_types(result) == ["Slice"] * number


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_parts_of_given_sizes(opset: int) -> None:
    x, sizes = numbered((4, 6)), [1, 0, 5]
    feeds = {"x": x} if opset < 13 else {"x": x, "s": np.array(sizes)}
    options: dict[str, Any] = {"split": sizes} if opset < 13 else {}
    source = one_node("Split", opset, feeds, initializers=("s",), outputs=3, axis=1, **options)
    result = converts(source, opset, {"x": x}, exact=True, allow_ops=SLICES)
    assert op_types(result) == ["Slice"] * 3


def test_what_blocks() -> None:
    x = numbered((4, 6))
    source = one_node("Split", 13, {"x": x}, outputs=2, shapes={"x": ["n", 6]}, axis=0)
    (found,) = blockers(source, 13, allow_ops=SLICES)
    assert "the size that it splits is not known" in found.reason
    assert found.advice == "fix it: --dim NAME=SIZE"
    source = one_node("Split", 13, {"x": x, "s": np.array([2, 2])}, outputs=2)
    (found,) = blockers(source, 13, allow_ops=SLICES)
    assert "its sizes are only known at run time" in found.reason
    source = one_node("Tile", 13, {"x": x, "r": np.array([1, 2])})
    (found,) = blockers(source, 13, allow_ops=CONCATS)
    assert "its repeats are only known at run time" in found.reason


@pytest.mark.parametrize(
    "node",
    [
        one_node("Mod", 13, {"a": np.array([5, -7]), "b": np.array(3)}, initializers=("a", "b")),
        one_node("Trilu", 14, {"x": numbered((3, 3))}, initializers=("x",), upper=0),
        one_node(
            "Range",
            11,
            {"start": np.array(9), "limit": np.array(0), "delta": np.array(-2)},
            initializers=("start", "limit", "delta"),
            output_shapes=[[5]],
        ),
    ],
    ids=lambda source: source.graph.node[0].op_type,
)
def test_what_is_known_becomes_a_constant(node: ModelProto) -> None:
    opset = node.opset_import[0].version
    result = converts(node, opset, {}, exact=True, allow_ops=["Constant"])
    assert op_types(result) == ["Constant"]
