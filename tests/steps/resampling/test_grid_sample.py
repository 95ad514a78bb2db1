"""GridSample across its boundaries and below the opset it came with."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from onnxreduce_cli import plan
from tests.support import blockers, converts, converts_or_counts, one_node, run

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


@pytest.mark.newest  # Older ONNX Runtimes take such positions for others.
@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize(
    ("mode", "padding"),
    [
        (mode, padding)
        for mode in ("bilinear", "nearest", "bicubic")
        for padding in ("zeros", "border", "reflection")
        if (mode, padding) != ("bicubic", "border")  # Not defined, so it blocks.
    ],
)
@pytest.mark.parametrize("align", [0, 1])
def test_positions_that_are_no_finite_numbers(mode: str, padding: str, align: int) -> None:
    grid = GRID.copy()
    grid[0, 0, :6, 0] = grid[1, 1, 1:, 1] = [np.nan, np.inf, -np.inf, np.nan, np.inf, -np.inf]
    grid[0, 0, 0, 1] = np.nan
    inputs = {"x": X, "g": grid}
    attributes: dict[str, Any] = {"mode": mode, "padding_mode": padding, "align_corners": align}
    source = one_node("GridSample", 16, inputs, **attributes)
    for target in (15, 9):
        converts(source, target, inputs)
    (expected,), (found,) = (
        run(source, inputs, in_numpy=in_numpy).values() for in_numpy in (False, True)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


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


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("padding", ["zeros", "reflection"])
def test_cubic(align: int, padding: str) -> None:
    inputs = {"x": X, "g": GRID}
    attributes: dict[str, Any] = {"mode": "bicubic", "align_corners": align}
    source = one_node("GridSample", 16, inputs, padding_mode=padding, **attributes)
    for target in (13, 9, 7):
        converts_or_counts(source, target, inputs)


def test_cubic_beyond_a_repeated_border() -> None:
    inputs = {"x": X, "g": GRID}
    source = one_node("GridSample", 16, inputs, mode="bicubic", padding_mode="border")
    (blocker,) = blockers(source, 15)
    assert "border" in blocker.reason


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest", None])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_names_of_modes(mode: str | None, padding: str) -> None:
    feeds = {"x": X, "grid": GRID}
    given = {} if mode is None else {"mode": mode}
    source = one_node("GridSample", 16, feeds, padding_mode=padding, **given)
    newer = converts(source, 20, feeds)
    converts(source, 22, feeds)
    converts(newer, 19, feeds)


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [0, 1])
def test_a_volume(mode: str, padding: str, align: int) -> None:
    feeds = {
        "x": RNG.normal(size=(2, 2, 3, 4, 5)).astype(np.float32),
        "g": RNG.uniform(-2, 2, (2, 2, 3, 4, 3)).astype(np.float32),
    }
    attributes: dict[str, Any] = {"mode": mode, "padding_mode": padding, "align_corners": align}
    source = one_node("GridSample", 20, feeds, **attributes)
    for target in (19, 13, 7):
        converts_or_counts(source, target, feeds)
    shapes = {"x": ["n", "c", "d", "h", "w"], "g": ["n", "i", "j", "k", 3]}
    source = one_node("GridSample", 20, feeds, shapes=shapes, **attributes)
    for target in (19, 7):
        converts_or_counts(source, target, feeds)


@pytest.mark.usefixtures("any_size")
@pytest.mark.newest
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_other_ranks(mode: str) -> None:
    """ONNX Runtime has no kernel for lines, nor for cubic volumes."""
    for dims in ((5,), (2, 3, 4)) if mode == "cubic" else ((5,),):
        feeds = {
            "x": RNG.normal(size=(2, 2, *dims)).astype(np.float32),
            "g": RNG.uniform(-1.5, 1.5, (2, *dims, len(dims))).astype(np.float32),
        }
        converts_or_counts(one_node("GridSample", 20, feeds, mode=mode), 15, feeds, in_numpy=True)


@pytest.mark.parametrize("name", ["mode", "padding_mode"])
def test_a_mode_that_does_not_exist(name: str) -> None:
    x, grid = np.zeros((1, 1, 3, 3), np.float32), np.zeros((1, 2, 2, 2), np.float32)
    source = one_node("GridSample", 20, {"x": x, "grid": grid}, **{name: "x"})
    (blocker,) = blockers(source, 15)
    assert blocker.reason == f"its {name}='x' does not exist"


def test_cubic_images_take_too_many_nodes() -> None:
    feeds = {"x": X, "g": GRID}
    (blocker,) = blockers(one_node("GridSample", 16, feeds, mode="bicubic"), 15)
    assert re.fullmatch(r"it would take \d+ nodes, more than 128, at opset 15", blocker.reason)
    assert blocker.advice == "choose a later opset"


def test_why_a_runtime_needs_them() -> None:
    (blocker,) = plan(
        one_node("GridSample", 16, {"x": X, "g": GRID}, mode="bicubic"), runtime="mnn==3.6"
    ).blockers
    assert blocker.reason.startswith("the runtime interpolates by no cubic function; in other ")
