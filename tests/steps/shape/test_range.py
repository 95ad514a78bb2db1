"""Range below 11."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, one_node

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
            converts(source, target, inputs)
    if np.issubdtype(dtype, np.floating):
        for target in (8, 7):
            converts(one_node("Range", 11, inputs), target, inputs)
    fractions = {"a": np.array(0.1, dtype), "b": np.array(1.05, dtype), "c": np.array(0.3, dtype)}
    if np.issubdtype(dtype, np.floating):
        converts(one_node("Range", 11, fractions), 10, fractions)
