"""GridSample below the opset it came with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import blockers, converts, one_node

RNG = np.random.default_rng(11)
X = RNG.normal(size=(2, 3, 4, 5)).astype(np.float32)
GRID = RNG.uniform(-2.5, 2.5, (2, 6, 7, 2)).astype(np.float32)
GRID[0, 0] = GRID[0, 0].clip(-1, 1)
GRID[1, 0, :, :] = np.linspace(-1, 1, 7, dtype=np.float32)[:, None]


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [0, 1])
def test_grid_sample_in_every_mode(mode: str, padding: str, align: int) -> None:
    inputs = {"x": X, "g": GRID}
    attributes: dict[str, Any] = {"mode": mode, "padding_mode": padding, "align_corners": align}
    source = one_node("GridSample", 16, inputs, **attributes)
    for target in (15, 13, 11, 9, 7):
        converts(source, target, inputs)
    thin = {"x": X[:, :, :1], "g": GRID}
    if padding != "reflection" or not align:  # Nothing says what that is.
        converts(one_node("GridSample", 16, thin, **attributes), 13, thin)
    shapes = {"x": ["n", "c", "h", "w"], "g": ["n", "k", "l", 2]}
    source = one_node("GridSample", 16, inputs, shapes=shapes, **attributes)
    for target in (13, 9):
        converts(source, target, inputs, {"x": X[:1, :, :, :3], "g": GRID[:1]})


@pytest.mark.newest
@pytest.mark.parametrize("dtype", [np.float16, np.float64])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_other_dtypes(mode: str, dtype: type) -> None:
    inputs = {"x": X.astype(dtype), "g": GRID}
    source = one_node("GridSample", 16, inputs, mode=mode)
    converts(source, 13, inputs, in_numpy=True)


def test_integers() -> None:
    inputs = {"x": np.arange(120).reshape(2, 3, 4, 5), "g": GRID}
    converts(one_node("GridSample", 16, inputs, mode="nearest"), 13, inputs, in_numpy=True)


@pytest.mark.parametrize("align", [0, 1])
def test_cubic(align: int) -> None:
    inputs = {"x": X, "g": GRID}
    source = one_node("GridSample", 16, inputs, mode="bicubic", align_corners=align)
    for target in (13, 9, 7):
        converts(source, target, inputs)
    for padding in ("border", "reflection"):
        source = one_node("GridSample", 16, inputs, mode="bicubic", padding_mode=padding)
        (blocker,) = blockers(source, 15)
        assert "cubic" in blocker.reason
