"""BitShift below opsets 28 and 11."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, one_node, op_types

_KINDS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("kind", [kind for kind in _KINDS if kind.startswith("u")])
def test_bit_shift(kind: str, direction: str) -> None:
    bits = np.iinfo(kind).bits
    x = np.array([[0, 1, 3, 200, np.iinfo(kind).max]], kind)
    y = np.array([[0], [1], [bits - 1], [bits // 2]], kind)
    source = one_node("BitShift", 11, {"x": x, "y": y}, direction=direction)
    for target in (10, 9, 7):
        converts(source, target, {"x": x, "y": y}, exact=True)


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.newest
def test_shifts_in_range(kind: str, direction: str) -> None:
    limits = np.iinfo(kind)
    x = np.array([limits.min, limits.min + 5, 0, 1, 3, 77, limits.max // 3, limits.max], kind)
    bits = limits.bits
    y = np.array([0, 1, 3, bits - 1, bits, bits + 1, 127, limits.min, limits.max], kind)[:, None]
    source = one_node("BitShift", 28, {"x": x, "y": y}, direction=direction)
    for target in (27, 13, 11, 10, 7):
        converts(source, target, {"x": x, "y": y}, exact=True)
    inside = {"x": x, "y": y[:4]}
    source = one_node("BitShift", 28, inside, initializers=("y",), direction=direction)
    result = converts(source, 27, inside, exact=True)
    assert op_types(result).count("Where") == (2 if kind[0] == "i" and direction == "RIGHT" else 0)
