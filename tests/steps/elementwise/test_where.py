"""Where below opset 9."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, converts_or_counts, one_node

WHERE_SHAPES = [
    ((2, 3), (2, 3), (2, 3)),
    ((3,), (2, 1), ()),
    ((2, 0), (2, 0), ()),
    ((), (3,), (2, 1)),
]


@pytest.mark.parametrize("shapes", WHERE_SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32, np.uint8, bool])
def test_where(shapes: tuple[tuple[int, ...], ...], dtype: type) -> None:
    rng = np.random.default_rng(1)
    values = np.array([1, 0, -1, 5, 100] if dtype is not np.uint8 else [1, 2, 255]).astype(dtype)
    if dtype in (np.float32, np.float64):
        values = np.array([1, -0.0, np.nan, np.inf, -np.inf], dtype)
    c, x, y = (
        rng.choice(source, shape)
        for source, shape in zip(([True, False], values, values), shapes, strict=True)
    )
    inputs = {"c": np.asarray(c), "x": np.asarray(x, dtype), "y": np.asarray(y, dtype)}
    source = one_node("Where", 9, inputs)
    flipped = {**inputs, "c": np.array(~inputs["c"])}
    for target in (8, 7):
        converts(source, target, inputs, flipped, exact=True)


@pytest.mark.parametrize("target", [7, 8])
def test_where_of_shapes_known_at_run_time(target: int) -> None:
    inputs = {
        "c": np.arange(6).reshape(2, 3, 1) % 4 > 1,
        "x": np.array([[[1, np.nan]], [[-np.inf, -0.0]]], np.float32),
        "y": np.array([[np.nan, 5], [np.inf, 6], [7, -0.0]], np.float32),
    }
    shapes = {"c": ["a", "b", 1], "x": ["a", 1, "n"], "y": ["b", "n"]}
    source = one_node("Where", 9, inputs, shapes=shapes)
    flipped = {**inputs, "c": ~inputs["c"]}
    nothing = {"c": inputs["c"][:, :0], "x": inputs["x"], "y": inputs["y"][:0]}
    converts_or_counts(source, target, inputs, flipped, nothing, exact=True)


def test_where_of_unknown_rank() -> None:
    x = np.array([[1, np.nan, -0.0], [np.inf, 2, 3]], np.float32)
    for y in (x[:1, ::-1].copy(), np.array(7, np.float32)):
        inputs = {"c": x > 1, "x": x, "y": y}
        for hidden in (("x",), ("y",), ("x", "y")):
            source = one_node("Where", 9, inputs, hidden=hidden, output_shapes=[[None, None]])
            for target in (8, 7):
                converts_or_counts(source, target, inputs, exact=True)
    empty = {"c": np.array(True), "x": x[:0], "y": x[:1]}
    source = one_node("Where", 9, empty, hidden=("x", "y"), output_shapes=[[None, None]])
    converts_or_counts(source, 8, empty, exact=True, in_numpy=True)
