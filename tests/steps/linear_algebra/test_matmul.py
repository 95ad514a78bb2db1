"""MatMul of integers below opset 9."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, one_node

KINDS = ["int32", "uint32", "int64", "uint64"]


def nasty(kind: str, *shape: int) -> np.ndarray:
    """Integers of every size, the largest and the lowest among them."""
    info = np.iinfo(kind)
    rng = np.random.default_rng(len(shape))
    array = rng.integers(info.min, info.max, shape, kind, endpoint=True)
    array.reshape(-1)[:5] = [info.min, info.max, 0, 1, info.max // 3]
    return array


@pytest.mark.parametrize("kind", KINDS)
def test_matmul_of_integers(kind: str) -> None:
    for shapes in (((3, 5), (5, 4)), ((2, 3, 5), (5, 2)), ((5,), (5, 2)), ((3, 5), (5,))):
        inputs = {"x": nasty(kind, *shapes[0]), "y": nasty(kind, *shapes[1])}
        source = one_node("MatMul", 9, inputs)
        for target in (8, 7):
            converts(source, target, inputs, exact=True)
    unknown = {"x": ["m", "k"], "y": ["k", "n"]}
    inputs = {"x": nasty(kind, 3, 6), "y": nasty(kind, 6, 4)}
    converts(one_node("MatMul", 9, inputs, shapes=unknown), 8, inputs, exact=True)
