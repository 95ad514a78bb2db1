"""Round below opset 11."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, one_node, run


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_round(dtype: type) -> None:
    steps = np.arange(-6, 6.25, 0.25)
    large = [8388607.5, -8388606.5, 4194303.5, 1e10, -1e30, np.inf, -np.inf, np.nan]
    close = [0.49999997, -0.49999997, 0.5000001, 2.4999998, 1e-30, 0.0, -0.0]
    x = np.array([*steps, *large, *close], dtype)
    source = one_node("Round", 11, {"x": x})
    for target in (10, 9, 7):
        found = run(converts(source, target, {"x": x}, exact=True), {"x": x})["y0"]
        assert np.array_equal(np.signbit(found), np.signbit(x))
    half = x[:-15].astype(np.float16)
    converts(one_node("Round", 11, {"x": half}), 10, {"x": half}, exact=True)
