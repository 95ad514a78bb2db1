"""Mod of floats below opset 10, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from onnxreduce_cli import convert, executor
from tests.support import (
    converts,
    one_node,
    run_ort,
)


def numbers(dtype: type, count: int) -> np.ndarray:
    """Of all exponents, and what is special."""
    info = np.finfo(dtype)
    bits = np.random.default_rng(3).integers(0, 256, count * info.bits // 8, np.uint8)
    with np.errstate(invalid="ignore"):
        some = bits.view(dtype).astype(dtype)
    special = [0.0, -0.0, 1, -3, 0.1, np.inf, -np.inf, np.nan]
    limits = [info.max, info.min, info.tiny, info.smallest_subnormal]
    return np.concatenate([some, np.array(special + limits, dtype)])


@pytest.mark.parametrize(("dtype", "count"), [(np.float16, 200), (np.float32, 200)])
@pytest.mark.parametrize("target", [9, 8, 7])
def test_mod_of_floats_to_the_last_bit(dtype: type, count: int, target: int) -> None:
    x = numbers(dtype, count)
    feeds = {"a": x[:, None], "b": np.concatenate([x, np.arange(1, 8, dtype=dtype)])[None]}
    with np.errstate(invalid="ignore"):
        truth = np.fmod(feeds["a"], feeds["b"])
    model = convert(one_node("Mod", 13, feeds, fmod=1), target, check=False, emulate=True)
    for result in (executor.run(model, feeds)["y0"], *run_ort(model, feeds)):
        np.testing.assert_array_equal(result, truth)
        number = ~np.isnan(truth)
        assert np.array_equal(np.signbit(result[number]), np.signbit(truth[number]))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_mod_of_floats_of_any_shape(dtype: type) -> None:
    x = np.array([[5.5, -7, 0, 3], [1e4, -0.3, 2, 9]], dtype)
    for y in (x[:1] + 1, np.array(2.5, dtype), x[:, :1] * 3, x[:0, None] + 1):
        feeds = {"x": x, "y": y}
        named = one_node("Mod", 10, feeds, fmod=1, shapes={"x": ["n", None]})
        for target in (9, 8, 7):
            converts(one_node("Mod", 10, feeds, fmod=1), target, feeds, exact=True)
            converts(named, target, feeds, exact=True)
