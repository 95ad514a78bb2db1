"""Pow of int64 and whole exponents below opset 12."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import blockers, converts, one_node, op_types

WHOLE = np.array([[0, 1, -1, 2, -2, 3], [-3, 7, 10, 1 << 40, -(1 << 31), 3037000499]])


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 5, 39, 62, [[3], [2]], [0, 63, 1, 62, 31, 40]])
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint64])
def test_whole_powers_of_64_bits_are_exact(exponent, dtype):
    feeds = {"x": WHOLE, "e": np.array(exponent, dtype)}
    # ONNX Runtime computes them in double, which rounds.
    for target in (11, 7):
        known = one_node("Pow", 12, feeds, initializers=("e",))
        result = converts(known, target, feeds, in_numpy=True, exact=True)
        assert "Loop" not in op_types(result)


@pytest.mark.parametrize("target", [11, 9, 8, 7])
def test_whole_powers_in_onnxruntime(target):
    feeds = {"x": WHOLE[:, :4] % 1000 - 5, "e": np.array([[0, 1, 5, 3]])}
    unknown = one_node("Pow", 12, feeds, shapes={"x": ["n", None]}, initializers=("e",))
    converts(unknown, target, feeds, exact=True)
    converts(one_node("Pow", 12, feeds, initializers=("e",)), target, feeds, exact=True)
    empty = {"x": WHOLE[:0], "e": np.array(3, np.int32)}
    converts(one_node("Pow", 12, empty, initializers=("e",)), target, empty)


def test_negative_exponents_block():
    negative = {"x": np.array([0, 1, -1, 2, -3]), "e": np.array(-3, np.int32)}
    (blocker,) = blockers(one_node("Pow", 12, negative, initializers=("e",)), 11)
    assert "its exponents 'e' are not known or some are negative" in blocker.reason
