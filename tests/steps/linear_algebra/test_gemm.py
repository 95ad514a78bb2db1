"""Gemm below opsets 11, 9 and 7, and up to 7."""

from __future__ import annotations

import numpy as np
import pytest

import onnxreduce_cli
from tests.support import blockers, converts, of_unknown_rank, one_node, run

A, B = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((3, 4), np.float32)


@pytest.mark.parametrize("shape", [(), (1,), (4,), (1, 4), (2, 1), (2, 4), (1, 1)])
@pytest.mark.parametrize("constant", [False, True])
def test_gemm_with_broadcast_and_gemm_without_broadcast(shape, constant):
    inputs = {
        "a": A,
        "b": B,
        "c": np.linspace(1, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape),
    }
    source = one_node("Gemm", 7, inputs, initializers=("c",) if constant else (), beta=2.0)
    low = converts(source, 6, inputs)
    high = converts(low, 13, inputs)
    assert not any(a.name == "broadcast" for a in high.graph.node[-1].attribute)


def test_gemm_with_broadcast_of_sizes_known_at_run_time():
    inputs = {"a": A, "b": B, "c": np.array([[1], [2]], np.float32)}
    wide = {**inputs, "c": np.linspace(1, 2, 8, dtype=np.float32).reshape(2, 4)}
    for shapes in ({"c": ["m", 1], "a": ["m", 3]}, {"c": ["m", 1], "b": [3, "n"]}):
        converts(one_node("Gemm", 7, inputs, shapes=shapes), 6, inputs, in_numpy=True)
    either = one_node("Gemm", 7, inputs, shapes={"c": ["m", "n"]})
    converts(either, 6, inputs, wide, in_numpy=True)
    feeds = {"a": A.T.copy(), "b": B.T.copy(), "c": inputs["c"]}
    shapes = {"a": [3, "m"], "b": ["n", 3], "c": ["m", 1]}
    turned = one_node("Gemm", 7, feeds, shapes=shapes, transA=1, transB=1)
    converts(turned, 6, feeds, in_numpy=True)
    source, _ = of_unknown_rank(one_node("Gemm", 7, inputs), inputs, "c")
    (blocker,) = blockers(source, 6)
    assert "is not known, and before opset 7 broadcasting depends on it" in blocker.reason


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("target", [10, 9, 6])
def test_gemm_with_bias(dtype, target):
    inputs = {"a": A.astype(dtype), "b": B.astype(dtype)}
    converts(one_node("Gemm", 11, inputs, alpha=0.5), target, inputs)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("settings", [{"alpha": 0.0}, {"beta": -2.0}, {"beta": 0.0}])
def test_gemm_with_bias_keeps_the_sign_of_zero(dtype, settings):
    a = np.array([[-1.0, 0.0], [-0.0, -0.0], [2.0, -3.0], [np.inf, 1.0]], dtype)
    inputs = {"a": a, "b": np.array([[0.0, 1.0], [0.0, -1.0]], dtype)}
    source = one_node("Gemm", 13, inputs, **settings)
    assert np.signbit(next(iter(run(source, inputs).values()))).any()
    result = onnxreduce_cli.convert(source, 7)
    for in_numpy in (False, True):
        (before,), (after,) = (
            run(found, inputs, in_numpy=in_numpy).values() for found in (source, result)
        )
        assert after.dtype == before.dtype
        np.testing.assert_array_equal(after, before)
        np.testing.assert_array_equal(np.signbit(after), np.signbit(before))


KINDS = ["int32", "uint32", "int64", "uint64"]


def nasty(kind: str, *shape: int) -> np.ndarray:
    """Integers of every size, the largest and the lowest among them."""
    info = np.iinfo(kind)
    rng = np.random.default_rng(len(shape))
    array = rng.integers(info.min, info.max, shape, kind, endpoint=True)
    array.reshape(-1)[:5] = [info.min, info.max, 0, 1, info.max // 3]
    return array


@pytest.mark.parametrize("kind", KINDS)
def test_gemm_of_integers(kind: str) -> None:
    inputs = {"a": nasty(kind, 5, 3), "b": nasty(kind, 4, 5), "c": nasty(kind, 1, 5)[:, :4]}
    for settings in ({}, {"alpha": 2.0, "beta": 3.0}, {"beta": 0.0}):
        source = one_node("Gemm", 9, inputs, transA=1, transB=1, **settings)
        for target in (8, 7):
            converts(source, target, inputs, exact=True)
    (blocker,) = blockers(one_node("Gemm", 9, inputs, transA=1, transB=1, alpha=0.5), 8)
    assert blocker.reason.startswith("it scales integers by alpha=0.5")


def test_a_bias_of_more_dimensions_than_the_result_blocks() -> None:
    """Inference lets it pass; the shape may be a false statement."""
    inputs = {"a": np.ones((2, 3)), "b": np.ones((3, 4)), "c": np.ones((3, 2, 4))}
    source = one_node(
        "Gemm", 11, {name: array.astype(np.float32) for name, array in inputs.items()}
    )
    (blocker,) = blockers(source, 6)
    assert "'c' of rank 3 does not broadcast" in blocker.reason
