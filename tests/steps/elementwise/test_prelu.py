"""PRelu across opsets 7 and 9."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, of_unknown_rank, one_node, op_types

IMAGE = np.linspace(-2, 2, 24, dtype=np.float32).reshape(2, 3, 2, 2)


@pytest.mark.parametrize("shape", [(3, 1, 1), (1, 3, 1, 1), (1,), (1, 1, 1), ()])
def test_slope_for_channels_and_slope_aligned(shape):
    inputs = {
        "x": IMAGE,
        "s": np.linspace(-1, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape),
    }
    low = converts(one_node("PRelu", 7, inputs), 6, inputs)
    converts(low, 9, inputs)


def test_slope_aligned():
    matrix = IMAGE.reshape(2, 12)
    inputs = {"x": matrix, "s": np.arange(12, dtype=np.float32)}
    low = converts(one_node("PRelu", 7, inputs), 6, inputs)
    assert op_types(converts(low, 7, inputs)) == ["PRelu"]


@pytest.mark.parametrize("shape", [(2,), (2, 1), (3, 1, 2), (2, 3, 2, 2), (3, 1, 1), (1,), ()])
def test_slope_for_channels_which_are_all_elements(shape):
    values = IMAGE.copy()
    values[0, 0] = [[np.nan, np.inf], [-np.inf, -0.0]]
    slope = np.linspace(-1, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    inputs = {"x": values, "s": slope}
    empty = {"x": values[:0], "s": slope[:0] if shape[:1] == (2,) and len(shape) == 4 else slope}
    source = one_node("PRelu", 7, inputs, output_shapes=(["n", 3, "h", "w"],))
    converts(source, 6, inputs, in_numpy=True, exact=True)
    named = {"x": ["n", 3, "h", "w"], "s": [None] * len(shape)}
    source = one_node("PRelu", 7, inputs, shapes=named)
    converts(source, 6, inputs, empty, in_numpy=True, exact=True)


@pytest.mark.parametrize("names", [("x",), ("s",), ("x", "s")])
def test_slope_aligned_of_unknown_rank(names):
    for values in (IMAGE, IMAGE[0, :, :, 0].T):
        inputs = {"x": values, "s": np.array([-1, 2, 0.5], np.float32)}
        declared = [f"y{axis}" for axis in range(values.ndim)]
        source = one_node("PRelu", 6, inputs, output_shapes=(declared,))
        source, fed = of_unknown_rank(source, inputs, *names)
        converts(source, 7, fed, in_numpy=True)
        converts(source, 9, fed)


KINDS = ["int32", "uint32", "int64", "uint64"]


def nasty(kind: str, *shape: int) -> np.ndarray:
    """Integers of every size, the largest and the lowest among them."""
    info = np.iinfo(kind)
    rng = np.random.default_rng(len(shape))
    array = rng.integers(info.min, info.max, shape, kind, endpoint=True)
    array.reshape(-1)[:5] = [info.min, info.max, 0, 1, info.max // 3]
    return array


@pytest.mark.parametrize("kind", KINDS)
def test_slope_of_integers(kind: str) -> None:
    inputs = {"x": nasty(kind, 3, 4), "slope": np.array([2, 3, 0, 1], kind)}
    source = one_node("PRelu", 9, inputs)
    for target in (8, 7):
        converts(source, target, inputs, exact=True)
