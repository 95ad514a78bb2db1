"""Shape: 15."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, one_node

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("target", [14, 9])
@pytest.mark.parametrize("start", [None, 0, 1, -2, -9, 9])
@pytest.mark.parametrize("end", [None, 0, 2, -1, -9, 9])
def test_whole_shape(start, end, target):
    attributes = {k: v for k, v in (("start", start), ("end", end)) if v is not None}
    source = one_node("Shape", 15, {"x": X}, shapes={"x": ["a", "b", "c"]}, **attributes)
    scalar = np.array(3, np.float32)
    converts(source, target, {"x": X}, {"x": X[:0]})
    if target == 14:
        converts(one_node("Shape", 15, {"x": scalar}, **attributes), target, {"x": scalar})
