"""CastLike below its first opset."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, one_node, op_types


@pytest.mark.parametrize("to", [np.float32, np.int32, np.float16, bool])
def test_cast_like(to: type) -> None:
    inputs = {"x": np.array([1.5, -2, 0], np.float32), "y": np.zeros(2, to)}
    found = converts(one_node("CastLike", 15, inputs), 14, inputs)
    assert op_types(found) == ["Identity" if to == np.float32 else "Cast"]
