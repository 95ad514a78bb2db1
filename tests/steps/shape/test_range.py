"""Range across opsets 11 and 27."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import blockers, converts, converts_or_counts, one_node

RANGES = [(0, 5, 1), (5, 0, -2), (2, 9, 3), (3, 3, 1), (4, 1, 1), (1, 4, -1), (-7, 8, 5)]


@pytest.mark.parametrize("bounds", RANGES)
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float32, np.float64])
def test_range(bounds: tuple[int, int, int], dtype: type) -> None:
    inputs = {
        name: np.array(value, dtype) for name, value in zip(("a", "b", "c"), bounds, strict=True)
    }
    for initializers in ((), ("a", "c"), ("a", "b", "c")):
        source = one_node("Range", 11, inputs, initializers=initializers)
        for target in (10, 9):
            converts_or_counts(source, target, inputs)
    if np.issubdtype(dtype, np.floating):
        for target in (8, 7):
            converts_or_counts(one_node("Range", 11, inputs), target, inputs)
    fractions = {"a": np.array(0.1, dtype), "b": np.array(1.05, dtype), "c": np.array(0.3, dtype)}
    if np.issubdtype(dtype, np.floating):
        converts_or_counts(one_node("Range", 11, fractions), 10, fractions)


@pytest.mark.parametrize("stash", [1, 11])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64])
@pytest.mark.newest
def test_range_in_float(dtype, stash):
    inputs = {k: np.array(v, dtype) for k, v in (("a", 0), ("b", 9), ("c", 2))}
    source = one_node("Range", 27, inputs, output_shapes=[[None]], stash_type=stash)
    converts(source, 26, inputs)
    converts(source, 10, inputs)


@pytest.mark.newest
def test_range_in_float_blocked():
    inputs = {k: np.array(v, np.float16) for k, v in (("a", 0), ("b", 9), ("c", 2))}
    source = one_node("Range", 27, inputs, output_shapes=[[None]], stash_type=10)
    (blocker,) = blockers(source, 26)
    assert "nothing says how to count in that" in str(blocker)
