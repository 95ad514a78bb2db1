"""BitwiseNot below opset 18."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, one_node

_KINDS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@pytest.mark.parametrize("kind", _KINDS)
def test_bitwise_not(kind: str) -> None:
    limits = np.iinfo(kind)
    x = np.array([limits.min, limits.min + 1, 0, 1, 5, limits.max - 1, limits.max], kind)
    source = one_node("BitwiseNot", 18, {"x": x})
    # Sub takes the short ones from opset 14 on.
    for target in (17, 14) if kind.endswith(("8", "16")) else (17, 14, 13, 11, 9, 7):
        converts(source, target, {"x": x}, exact=True)
