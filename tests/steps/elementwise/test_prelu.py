"""Gemm, PRelu, Mod, BitShift, Selu and Range."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import blockers, converts, model, of_unknown_rank, one_node, op_types

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


IMAGE = np.linspace(-2, 2, 24, dtype=np.float32).reshape(2, 3, 2, 2)


@pytest.mark.parametrize("shape", [(3, 1, 1), (1, 3, 1, 1), (1,), (1, 1, 1), ()])
def test_slope_for_channels_and_slope_aligned(shape):
    inputs = {
        "x": IMAGE,
        "s": np.linspace(-1, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape),
    }
    low = converts(one_node("PRelu", 7, inputs), 6, inputs)
    converts(low, 9, inputs)


def test_slope_aligned():
    matrix = IMAGE.reshape(2, 12)
    inputs = {"x": matrix, "s": np.arange(12, dtype=np.float32)}
    low = converts(one_node("PRelu", 7, inputs), 6, inputs)
    assert op_types(converts(low, 7, inputs)) == ["PRelu"]


@pytest.mark.parametrize("shape", [(2,), (2, 1), (3, 1, 2), (2, 3, 2, 2), (3, 1, 1), (1,), ()])
def test_slope_for_channels_which_are_all_elements(shape):
    values = IMAGE.copy()
    values[0, 0] = [[np.nan, np.inf], [-np.inf, -0.0]]
    slope = np.linspace(-1, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    inputs = {"x": values, "s": slope}
    empty = {"x": values[:0], "s": slope[:0] if shape[:1] == (2,) and len(shape) == 4 else slope}
    source = one_node("PRelu", 7, inputs, output_shapes=(["n", 3, "h", "w"],))
    converts(source, 6, inputs, in_numpy=True, exact=True)
    named = {"x": ["n", 3, "h", "w"], "s": [None] * len(shape)}
    source = one_node("PRelu", 7, inputs, shapes=named)
    converts(source, 6, inputs, empty, in_numpy=True, exact=True)


@pytest.mark.parametrize("names", [("x",), ("s",), ("x", "s")])
def test_slope_aligned_of_unknown_rank(names):
    for values in (IMAGE, IMAGE[0, :, :, 0].T):
        inputs = {"x": values, "s": np.array([-1, 2, 0.5], np.float32)}
        declared = [f"y{axis}" for axis in range(values.ndim)]
        source = one_node("PRelu", 6, inputs, output_shapes=(declared,))
        source, fed = of_unknown_rank(source, inputs, *names)
        converts(source, 7, fed, in_numpy=True)
        converts(source, 9, fed)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.newest
def test_floor_of_floats(dtype):
    values = np.array([0.0, -0.0, 1.5, -1.5, 7, -7, np.inf, -np.inf, np.nan, 0.1], dtype)
    a, b = (part.reshape(-1) for part in np.meshgrid(values, values))
    inputs = {"a": a, "b": b}
    low = converts(one_node("Mod", 28, inputs), 13, inputs)
    assert "Where" in op_types(low)


@pytest.mark.newest
def test_floor_of_floats_leaves_integers():
    inputs = {"a": np.array([7, -7], np.int32), "b": np.array([3, 3], np.int32)}
    for fmod in (0, 1):
        low = converts(one_node("Mod", 28, inputs, fmod=fmod), 13, inputs)
        assert op_types(low) == ["Mod"]


X = np.array([[1.5, -2, 0], [np.inf, -np.inf, np.nan], [-0.0, 3, -4]], np.float32)


def test_selu_older_defaults_and_selu_newer_defaults():
    low = converts(one_node("Selu", 6, {"x": X}), 1, {"x": X})
    assert len(low.graph.node[0].attribute) == 2
    source = model(
        '<ir_version: 4, opset_import: ["" : 1]> g (float[3, 3] x) => (float[3, 3] y) '
        "{ y = Selu <consumed_inputs=[0]> (x) }"
    )
    high = converts(source, 6, {"x": X})
    assert {a.name for a in high.graph.node[0].attribute} == {"alpha", "gamma"}


@pytest.mark.parametrize("stash", [1, 11])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64])
@pytest.mark.newest
def test_range_in_float(dtype, stash):
    inputs = {k: np.array(v, dtype) for k, v in (("a", 0), ("b", 9), ("c", 2))}
    source = one_node("Range", 27, inputs, output_shapes=[[None]], stash_type=stash)
    converts(source, 26, inputs)
    converts(source, 10, inputs)


@pytest.mark.newest
def test_range_in_float_blocked():
    inputs = {k: np.array(v, np.float16) for k, v in (("a", 0), ("b", 9), ("c", 2))}
    source = one_node("Range", 27, inputs, output_shapes=[[None]], stash_type=10)
    (blocker,) = blockers(source, 26)
    assert "nothing says how to count in that" in str(blocker)
