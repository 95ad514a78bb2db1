"""Operators on bits, below the opset they came with."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, one_node, op_types

_KINDS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@pytest.mark.parametrize("kind", _KINDS)
def test_bitwise_not(kind: str) -> None:
    limits = np.iinfo(kind)
    x = np.array([limits.min, limits.min + 1, 0, 1, 5, limits.max - 1, limits.max], kind)
    source = one_node("BitwiseNot", 18, {"x": x})
    # Sub takes the short ones from opset 14 on.
    for target in (17, 14) if kind.endswith(("8", "16")) else (17, 14, 13, 11, 9, 7):
        converts(source, target, {"x": x}, exact=True)


@pytest.mark.parametrize("op_type", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
@pytest.mark.parametrize("kind", _KINDS)
def test_bitwise(op_type: str, kind: str) -> None:
    limits = np.iinfo(kind)
    x = np.array([limits.min, limits.min + 1, 0, 1, 5, 100, limits.max - 1, limits.max], kind)
    y = np.concatenate([x, np.array([3, 77], kind)])[:, None]
    source = one_node(op_type, 18, {"x": x, "y": y})
    for target in (17, 13, 11, 9, 7):
        converts(source, target, {"x": x, "y": y}, exact=True)
    inputs = {"x": x, "y": np.array(6, kind)}
    source = one_node(op_type, 18, inputs, initializers=("y",), shapes={"x": ["n"]})
    converts(source, 13, inputs, exact=True)
    converts(source, 13, {"x": x[:0], "y": inputs["y"]}, in_numpy=True)


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
