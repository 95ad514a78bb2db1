"""Compress below opset 9."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import converts, one_node


@pytest.mark.parametrize("attributes", [{}, {"axis": 0}, {"axis": 1}, {"axis": -1}])
def test_compress(attributes: dict[str, Any]) -> None:
    inputs = {
        "x": np.arange(12, dtype=np.float32).reshape(3, 4),
        "c": np.array([False, True, True]),
    }
    source = one_node("Compress", 11, inputs, **attributes)
    for target in (8, 7):
        converts(source, target, inputs, exact=True)
