"""STFT below opset 17."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, converts_or_counts, one_node

SIGNAL = np.random.default_rng(5).standard_normal((2, 20, 1)).astype(np.float32)


WINDOW = np.hanning(8).astype(np.float32)


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("target", [16, 8])
@pytest.mark.parametrize(("window", "length"), [(True, False), (False, True), (True, True)])
def test_stft(onesided: int, target: int, window: bool, length: bool) -> None:
    feeds = {
        "x": SIGNAL,
        "step": np.array(3),
        "w": WINDOW if window else None,
        "l": np.array(8, np.int64) if length else None,
    }
    given = {name: value for name, value in feeds.items() if value is not None}
    open_ = [[None] * 4]
    known = one_node(
        "STFT", 17, feeds, initializers=("step", "l"), output_shapes=open_, onesided=onesided
    )
    converts_or_counts(known, target, given)
    shapes = {"x": ["b", "n", 1], "w": ["m"]}
    unknown = one_node("STFT", 17, feeds, shapes=shapes, output_shapes=open_, onesided=onesided)
    converts_or_counts(unknown, target, given)


def test_stft_of_complex_and_other_dtypes() -> None:
    signal = np.concatenate([SIGNAL, SIGNAL[:, ::-1]], axis=2)
    for dtype in (np.float32, np.float64, np.float16):
        feeds = {
            "x": signal.astype(dtype),
            "step": np.array(4, np.int32),
            "w": WINDOW.astype(dtype),
        }
        source = one_node("STFT", 17, feeds, output_shapes=[[None] * 4], onesided=0)
        converts(source, 16, feeds, in_numpy=True)


def test_stft_of_the_whole_signal() -> None:
    feeds = {"x": SIGNAL, "step": np.array(1)}
    converts(one_node("STFT", 17, feeds, output_shapes=[[None] * 4]), 16, feeds, in_numpy=True)


@pytest.mark.parametrize("target", [16, 13])
@pytest.mark.parametrize(("window", "length"), [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("dims", [[2, 20], ["b", "n"]])
def test_stft_of_a_signal_of_rank_2(
    target: int, window: bool, length: bool, dims: list[int | str]
) -> None:
    feeds = {
        "x": SIGNAL[:, :, 0],
        "step": np.array(3),
        "w": WINDOW if window else None,
        "l": np.array(8, np.int64) if length else None,
    }
    given = {name: value for name, value in feeds.items() if value is not None}
    source = one_node(
        *("STFT", 17, feeds),
        initializers=("step", "l"),
        shapes={"x": dims},
        output_shapes=[[None] * 4],
    )
    converts(source, target, given)
