"""Tile: 6."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import blockers, converts, model, of_unknown_rank, one_node, op_types

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_one_axis_and_repeats():
    for counts in ([2, 3], [1, 1], [1, 4], [0, 1]):
        inputs = {"x": X, "r": np.array(counts)}
        low = converts(one_node("Tile", 6, inputs, initializers=("r",)), 5, inputs)
        assert len(low.graph.node) == max(1, sum(count != 1 for count in counts))
        if len(low.graph.node) == 1:  # The older version has no shape inference.
            converts(low, 6, inputs)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, np.int64, np.uint64, bool])
def test_one_axis_of_every_dtype_at_run_time(dtype):
    values = X.astype(dtype)
    if np.dtype(dtype).kind in "iu":
        values[0] = [np.iinfo(dtype).min, np.iinfo(dtype).max, np.iinfo(dtype).max // 3]
    inputs = {"x": values, "r": np.array([2, 3])}
    none = {**inputs, "r": np.array([0, 1])}
    empty = {"x": values[:, :0], "r": np.array([2, 1])}
    converts(one_node("Tile", 6, inputs, initializers=("r",)), 5, inputs, in_numpy=True)
    named = {"x": ["a", "b"], "r": [2]}
    source = one_node("Tile", 6, inputs, shapes=named, output_shapes=(["c", "d"],))
    if np.dtype(dtype).kind == "f":
        for target in (5, 3):
            converts(source, target, inputs, none, empty, in_numpy=True)
    else:
        (blocker,) = blockers(source, 5)
        assert "before opset 6 Tile takes floats only" in blocker.reason
        assert blocker.advice == "choose opset 6 or later"


def test_one_axis_of_more_than_the_dtype_counts():
    inputs = {"x": np.ones(1, np.float16), "r": np.array([2049])}
    low = converts(one_node("Tile", 6, inputs, initializers=("r",)), 5, inputs, in_numpy=True)
    assert op_types(low) == ["Cast", "Tile", "Cast"]


def test_one_axis_blocked():
    source = model(
        """<ir_version: 4, opset_import: ["" : 6]>
        g (float[2, 3] x, int64[n] s, int64[n] r) => (float[a, b] y)
        { z = Reshape (x, s) y = Tile (z, r) }"""
    )
    (blocker,) = blockers(source, 5)
    assert "is not known, and before opset 6 a Tile repeats along one axis" in blocker.reason


def test_repeats():
    source = model(
        """<ir_version: 4, opset_import: ["" : 1]> g (float[2, 3] x) => (float[2, 6] y)
        <float tiles = {2.0}, float axis = {1.0}> { y = Tile (x, tiles, axis) }"""
    )
    assert op_types(converts(source, 13, {"x": X})) == ["Tile"]


@pytest.mark.parametrize("tiles", ["float tiles", "float[1] tiles"])
def test_repeats_known_at_run_time(tiles):
    number = np.array([3], np.float32) if "[1]" in tiles else np.array(3, np.float32)
    for at, inputs in ((0, "float axis, "), (1, "float axis, "), (1, "")):
        constant = "" if inputs else "<float axis = {1.0}>"
        text = f"""<ir_version: 4, opset_import: ["" : 5]>
            g ({inputs}float[2, 3] x, {tiles}) => (float[a, b] y)
            {constant} {{ y = Tile (x, tiles, axis) }}"""
        feeds = {"x": X, "tiles": number, "axis": np.array(at, np.float32)}
        source = model(text)
        unknown, fed = of_unknown_rank(source, feeds, "x")
        for target in (6, 13):
            converts(source, target, feeds)
            converts(unknown, target, fed)


def test_integers_of_many_repeats_are_not_written_out():
    source = model("""<ir_version: 8, opset_import: ["" : 13]>
        g (int64[2,3] x) => (int64[2,N] y) {
            r = Constant<value_ints=[1, 1048576]>() y = Tile(x, r)
        }""")
    (blocker,) = blockers(source, 5)
    assert (
        blocker.reason == "axis 1 of its result has 3,145,728 elements, and 1,048,576 are the most"
    )
    assert blocker.advice == "choose opset 6 or later"
