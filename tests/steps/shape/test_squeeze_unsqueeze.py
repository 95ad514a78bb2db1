"""Squeeze and Unsqueeze: axes to an input and back, and made non-negative."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

import onnxreduce_cli
from tests.support import blockers, converts, converts_or_counts, one_node

X = np.arange(6, dtype=np.float32).reshape(1, 2, 1, 3, 1)


def axes_of(found: Any) -> list[int]:
    return next((list(a.ints) for a in found.graph.node[0].attribute if a.name == "axes"), [])


@pytest.mark.parametrize("op_type", ["Squeeze", "Unsqueeze"])
@pytest.mark.parametrize("axes", [[0], [0, 2], [4, 0], [-1], [-1, 0]])
def test_there_and_back(op_type: str, axes: list[int]) -> None:
    source = one_node(op_type, 11, {"x": X}, axes=axes)
    up = converts(source, 13, {"x": X}, exact=True)
    assert list(up.graph.node[0].input) == ["x", "node_axes"]
    assert converts(up, 11, {"x": X}, exact=True).graph == source.graph


@pytest.mark.parametrize(
    ("op_type", "axes", "positive"),
    [
        ("Squeeze", [-1], [4]),
        ("Squeeze", [0, -3], [0, 2]),
        ("Unsqueeze", [-1], [5]),
        ("Unsqueeze", [-1, 0], [0, 6]),
        ("Unsqueeze", [-7, -1], [0, 6]),
    ],
)
def test_negative_axes(op_type: str, axes: list[int], positive: list[int]) -> None:
    for opset in (11, 13):
        inputs = {"x": X} | ({"axes": np.array(axes)} if opset == 13 else {})
        given = {"axes": axes} if opset == 11 else {}
        source = one_node(op_type, opset, inputs, initializers=("axes",), **given)
        for target in (10, 7, 1):
            assert axes_of(converts(source, target, inputs, exact=True)) == positive


def test_squeeze_without_axes() -> None:
    for opset, target in ((11, 13), (13, 11), (13, 1), (1, 18)):
        source = one_node("Squeeze", opset, {"x": X})
        assert not converts(source, target, {"x": X}, exact=True).graph.node[0].attribute


def test_squeeze_of_empty_axes() -> None:
    source = one_node(
        "Squeeze", 13, {"x": X, "axes": np.array([], np.int64)}, initializers=("axes",)
    )
    (blocker,) = blockers(source, 12)
    assert "before opset 13 that means all axes" in blocker.reason


def test_unsqueeze_of_empty_axes() -> None:
    axes = np.array([], np.int64)
    source = one_node("Unsqueeze", 13, {"x": X, "axes": axes}, initializers=("axes",))
    found = onnxreduce_cli.convert(source, 12)
    assert axes_of(found) == []
    assert [a.name for a in found.graph.node[0].attribute] == ["axes"]


@pytest.mark.parametrize("hidden", [(), ("x",), ("axes",), ("x", "axes")])
@pytest.mark.parametrize("op_type", ["Squeeze", "Unsqueeze"])
def test_axes_at_run_time(op_type: str, hidden: tuple[str, ...]) -> None:
    given = ([0, -1], [-3, 4] if op_type == "Squeeze" else [5, -5])
    feeds = [{"x": X, "axes": np.array(axes)} for axes in given]
    more = [{"x": X[:, :, :, :0], "axes": feeds[0]["axes"]}] if "x" in hidden else []
    rank = 3 if op_type == "Squeeze" else 7
    source = one_node(op_type, 13, feeds[0], hidden=hidden, output_shapes=[[None] * rank])
    for target in (12, 11, 10, 9, 8, 7):
        converts_or_counts(source, target, *feeds, *more, exact=True, in_numpy=target == 8)


def test_unsqueeze_of_a_scalar_at_run_time() -> None:
    inputs = {"x": np.array(3, np.float32), "axes": np.array([1, 0])}
    source = one_node("Unsqueeze", 13, inputs, output_shapes=[[None, None]])
    for target in (12, 9, 7):
        converts_or_counts(source, target, inputs, exact=True)


@pytest.mark.parametrize("axes", [[-1], [-1, -3], [-5], [-1, 0]])
@pytest.mark.parametrize("op_type", ["Squeeze", "Unsqueeze"])
def test_negative_axes_of_an_unknown_rank(op_type: str, axes: list[int]) -> None:
    source = one_node(op_type, 11, {"x": X}, axes=axes, hidden=("x",))
    if max(axes) >= 0:
        (blocker,) = blockers(source, 6)
        assert "before opset 9 only a Loop counts up to it" in blocker.reason
    for target in (10, 7) if max(axes) >= 0 else (10, 7, 1):
        empty = {"x": X[:, :0]}
        converts_or_counts(source, target, {"x": X}, exact=True)
        converts_or_counts(source, target, empty, exact=True, in_numpy=max(axes) >= 0)


@pytest.mark.parametrize("dtype", [np.int64, np.bool_, np.float16, np.uint8])
def test_every_dtype_moves(dtype: Any) -> None:
    x = X.astype(dtype)
    source = one_node("Squeeze", 13, {"x": x, "axes": np.array([0])}, initializers=("axes",))
    converts(source, 5, {"x": x}, exact=True)
    assert helper.np_dtype_to_tensor_dtype(x.dtype)


@pytest.mark.parametrize("axes", [[4, 0], [-1, 0], [2, 0, -1]])
@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("op_type", ["Squeeze", "Unsqueeze"])
def test_axes_in_any_order(op_type: str, opset: int, axes: list[int]) -> None:
    """Shape inference below 11 takes them for ascending, and the full check refuses others."""
    rank = 5 + (len(axes) if op_type == "Unsqueeze" else -len(axes))
    feeds = {"x": np.zeros((1, 2, 1, 3, 1), np.float32), "axes": np.array(axes)}
    stated = {"output_shapes": [[None] * rank]}
    if opset == 13:
        source = one_node(op_type, 13, feeds, initializers=("axes",), **stated)
    else:
        source = one_node(op_type, 11, {"x": feeds["x"]}, axes=axes, **stated)
    for target in (10, 5):
        found = axes_of(converts(source, target, feeds, exact=True))
        assert found == sorted(found)
