"""Unique below opset 11."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import blockers, converts, one_node

NAN = np.nan
FLOATS = np.array([[2, NAN, 0, -np.inf], [-0.0, 2, NAN, np.inf], [2, -1, np.inf, 0]], np.float32)


def node(x: np.ndarray, rank: int, *, named: bool = False, **more: Any) -> Any:
    """A Unique with all outputs but the inverse indices."""
    shapes = {"x": [f"d{axis}" for axis in range(x.ndim)]} if named else {}
    dims = [[None] * rank, [None], [None], [None]]
    found = one_node("Unique", 11, {"x": x}, outputs=4, shapes=shapes, output_shapes=dims, **more)
    found.graph.node[0].output[2] = ""
    del found.graph.output[2]
    return found


@pytest.mark.parametrize("ordered", [0, 1])
@pytest.mark.parametrize("named", [True, False])
def test_unique(ordered: int, named: bool) -> None:
    random = np.random.default_rng(2)
    x = random.integers(-3, 4, (3, 5)).astype(np.float32)
    source = node(x, 1, named=named, sorted=ordered)
    (blocker,) = blockers(source, 8)
    assert "before opset 9 only a Loop" in blocker.reason
    for target in (10, 9):
        more = {"x": x[:2, :3]} if named else {"x": -x}
        converts(source, target, {"x": x}, {"x": np.zeros_like(x)}, more, exact=True)
    # What ONNX Runtime makes of NaN depends on its place.
    source = node(FLOATS, 1, named=named, sorted=ordered)
    for target in (10, 9):
        converts(source, target, {"x": FLOATS}, exact=True, in_numpy=True)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64, np.uint64, bool, "f2"])
def test_unique_of_dtypes(dtype: Any) -> None:
    x = np.array([3, 1, 0, 3, 1, 2]).astype(dtype)
    if dtype in (np.int64, np.uint64):
        x = np.array([3, 2**62 + 1, 2**62, 2**53 + 1, 2**62, 2**53, 0, 0], dtype)
    for target in (10, 9):
        converts(node(x, 1), target, {"x": x}, exact=True, in_numpy=True)


def test_unique_of_nothing_and_one() -> None:
    for x in (np.zeros((0,), np.float32), np.zeros((2, 0), np.int64), np.full((1,), 3.0)):
        for ordered in (0, 1):
            for target in (10, 9):
                converts(node(x, 1, sorted=ordered), target, {"x": x}, exact=True, in_numpy=True)


@pytest.mark.parametrize("outputs", [1, 2])
def test_unique_of_fewer_outputs(outputs: int) -> None:
    x = np.array([2, 1, 2, 0])
    for ordered in (0, 1):
        source = one_node("Unique", 11, {"x": x}, outputs=outputs, sorted=ordered)
        converts(source, 10, {"x": x}, exact=True)


def test_unique_strings() -> None:
    source = one_node("Unique", 11, {"x": np.array(["a"], object)})
    (blocker,) = blockers(source, 10)
    assert "nothing before opset 11 orders elements of string" in str(blocker)
