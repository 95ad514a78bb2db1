"""MatMul, Gemm and PRelu of integers below opset 9."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import blockers, converts, one_node

KINDS = ["int32", "uint32", "int64", "uint64"]


def nasty(kind: str, *shape: int) -> np.ndarray:
    """Integers of every size, the largest and the lowest among them."""
    info = np.iinfo(kind)
    rng = np.random.default_rng(len(shape))
    array = rng.integers(info.min, info.max, shape, kind, endpoint=True)
    array.reshape(-1)[:5] = [info.min, info.max, 0, 1, info.max // 3]
    return array


@pytest.mark.parametrize("kind", KINDS)
def test_product_of_parts(kind: str) -> None:
    for shapes in (((3, 5), (5, 4)), ((2, 3, 5), (5, 2)), ((5,), (5, 2)), ((3, 5), (5,))):
        inputs = {"x": nasty(kind, *shapes[0]), "y": nasty(kind, *shapes[1])}
        source = one_node("MatMul", 9, inputs)
        for target in (8, 7):
            converts(source, target, inputs, exact=True)
    unknown = {"x": ["m", "k"], "y": ["k", "n"]}
    inputs = {"x": nasty(kind, 3, 6), "y": nasty(kind, 6, 4)}
    converts(one_node("MatMul", 9, inputs, shapes=unknown), 8, inputs, exact=True)


@pytest.mark.parametrize("kind", KINDS)
def test_integers_apart(kind: str) -> None:
    inputs = {"a": nasty(kind, 5, 3), "b": nasty(kind, 4, 5), "c": nasty(kind, 1, 5)[:, :4]}
    for settings in ({}, {"alpha": 2.0, "beta": 3.0}, {"beta": 0.0}):
        source = one_node("Gemm", 9, inputs, transA=1, transB=1, **settings)
        for target in (8, 7):
            converts(source, target, inputs, exact=True)
    (blocker,) = blockers(one_node("Gemm", 9, inputs, transA=1, transB=1, alpha=0.5), 8)
    assert blocker.reason.startswith("it has alpha=0.5 for integers")


@pytest.mark.parametrize("kind", KINDS)
def test_slope_of_integers(kind: str) -> None:
    inputs = {"x": nasty(kind, 3, 4), "slope": np.array([2, 3, 0, 1], kind)}
    source = one_node("PRelu", 9, inputs)
    for target in (8, 7):
        converts(source, target, inputs, exact=True)
