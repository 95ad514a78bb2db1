"""DFT across its boundary."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from onnxreduce_cli import convert, executor
from tests.support import (
    blockers,
    converts,
    converts_or_counts,
    model,
    one_node,
    op_types,
    run,
)

X = np.random.default_rng(2).standard_normal((2, 4, 6, 1)).astype(np.float32)


@pytest.mark.parametrize("axis", [None, 1, 2, -2, -3])
def test_axis_up(axis: int | None) -> None:
    given = {} if axis is None else {"axis": axis}
    source = one_node("DFT", 17, {"x": X}, **given)
    newer = converts(source, 20, {"x": X})
    assert len(newer.graph.node[0].input) == 3
    converts(newer, 19, {"x": X})


def test_default_axis_down() -> None:
    for onesided in (0, 1):
        source = one_node("DFT", 20, {"x": X}, onesided=onesided)
        older = converts(source, 19, {"x": X})
        assert next(a.i for a in older.graph.node[0].attribute if a.name == "axis") == -2


def test_length_stays() -> None:
    feeds = {"x": X, "length": np.array(3), "axis": np.array(1)}
    source = one_node("DFT", 20, feeds, initializers=("length", "axis"))
    converts(source, 17, {"x": X})


@pytest.mark.parametrize("axis", [0, 2, -2, -3])
@pytest.mark.parametrize("target", [16, 9])
def test_axis_to_attribute_where_it_is_computed(axis: int, target: int) -> None:
    feeds = {"x": X, "length": None, "axis": np.array(axis)}
    source = one_node("DFT", 20, feeds, output_shapes=[[None] * 4])
    given = {"x": X, "axis": np.array(axis)}
    converts_or_counts(source, 19, given, in_numpy=True)
    close(source, target, given)
    named = one_node("DFT", 20, feeds, shapes={"x": ["a", "b", "c", 1]}, output_shapes=[[None] * 4])
    close(named, target, given)


def close(source: ModelProto, target: int, feeds: dict[str, Any]) -> ModelProto:
    """The source converted, which gives the same up to what sums of as many numbers are rounded.

    ONNX Runtime computes lengths that are no power of two less precisely than NumPy.
    """
    result = convert(source, target, check=False, emulate=True)
    onnx.checker.check_model(result, full_check=True)
    wanted = executor.run(source, feeds)["y0"]
    for found in (executor.run(result, feeds)["y0"], run(result, feeds)["y0"]):
        assert found.shape == wanted.shape
        assert found.dtype == wanted.dtype
        fine = wanted.dtype.itemsize > 4
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-13 if fine else 2e-6)
    return result


#: inverse, onesided, numbers for each element; older releases of onnx knew no real inverse.
KINDS = [
    *((0, 0, 1), (0, 0, 2), (0, 1, 1), (1, 0, 2), (1, 0, 1)),
    pytest.param(1, 1, 2, marks=pytest.mark.newest),
]


@pytest.mark.parametrize(("inverse", "onesided", "parts"), KINDS)
@pytest.mark.parametrize("length", [None, 4, 7])
def test_dft_below_the_opset_that_introduced_it(
    inverse: int, onesided: int, parts: int, length: int | None
) -> None:
    dtype = np.float32 if length else np.float64
    x = np.random.default_rng(1).standard_normal((2, 5, 3, parts)).astype(dtype)
    kind = {"inverse": inverse, "onesided": onesided}
    feeds = {"x": x, "l": None if length is None else np.array(length, np.int32)}
    known = one_node("DFT", 17, feeds, initializers=("l",), **kind)
    assert "Cos" not in op_types(close(known, 16, {"x": x}))
    unknown = one_node(
        "DFT",
        17,
        feeds,
        shapes={"x": [None] * 3 + [parts]},
        output_shapes=[[None] * 4],
        axis=2,
        **kind,
    )
    given = {name: value for name, value in feeds.items() if value is not None}
    close(unknown, 16, given)
    if length == 4:
        close(known, 7, {"x": x})
        close(unknown, 9, given)


def test_dft_of_what_is_only_known_at_run_time() -> None:
    for parts in (1, 2):
        x = np.random.default_rng(1).standard_normal((2, 3, 4, parts)).astype(np.float32)
        free = one_node("DFT", 17, {"x": x}, shapes={"x": [None] * 4}, output_shapes=[[None] * 4])
        close(free, 16, {"x": x})
    text = """
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[a, b, c] x, int64[n] s) => (float[w, h, d, k] y0)
        { r = Reshape(x, s)  y0 = DFT<axis=-2>(r) }
    """
    feeds = {"x": x.reshape(6, 4, 2), "s": np.array([2, 3, 4, 2])}
    close(model(text), 16, feeds)
    half = x.astype(np.float16)
    converts(one_node("DFT", 17, {"x": half}), 16, {"x": half}, in_numpy=True)
    empty = x[:0]
    converts(one_node("DFT", 17, {"x": empty}), 16, {"x": empty}, in_numpy=True)


@pytest.mark.newest
def test_a_real_inverse_along_an_axis_known_at_run_time() -> None:
    x = np.random.default_rng(1).standard_normal((1, 4, 3, 2)).astype(np.float32)
    feeds = {"x": x, "n": None, "axis": np.array(1)}
    source = one_node("DFT", 20, feeds, inverse=1, onesided=1)
    given = {"x": x, "axis": np.array(1)}
    close(source, 19, given)
    close(source, 9, given)


def test_a_long_dft_is_not_written_down() -> None:
    x = np.random.default_rng(1).standard_normal((1, 1200, 1))
    source = one_node("DFT", 17, {"x": x}, onesided=1)
    result = convert(source, 16, check=False, emulate=True)
    assert result.ByteSize() < 1 << 17
    found = run(result, {"x": x})["y0"]
    np.testing.assert_allclose(found, executor.run(source, {"x": x})["y0"], atol=1e-11)


def test_a_signal_has_one_or_two_parts() -> None:
    node = one_node("DFT", 19, {"x": np.zeros((1, 10, 10), np.float32)}, axis=1)
    (blocker,) = blockers(node, 16)
    assert blocker.reason == "its signal has 10 numbers for an element, not 1 or 2"
