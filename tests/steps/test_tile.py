"""Tile: 6."""

from __future__ import annotations

import numpy as np

from tests.support import blockers, converts, model, one_node, op_types

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_one_axis_and_repeats():
    for counts in ([2, 3], [1, 1], [1, 4], [0, 1]):
        inputs = {"x": X, "r": np.array(counts)}
        low = converts(one_node("Tile", 6, inputs, initializers=("r",)), 5, inputs)
        assert len(low.graph.node) == max(1, sum(count != 1 for count in counts))
        if len(low.graph.node) == 1:  # The older version has no shape inference.
            converts(low, 6, inputs)


def test_one_axis_blocked():
    inputs = {"x": X, "r": np.array([2, 1])}
    (blocker,) = blockers(one_node("Tile", 6, inputs, output_shapes=[[None] * 2]), 5)
    assert "its repeats 'r' are only known at run time" in str(blocker)
    whole = {"x": X.astype(np.int64), "r": np.array([2, 1])}
    (blocker,) = blockers(one_node("Tile", 6, whole, initializers=("r",)), 5)
    assert "it repeats no floats" in str(blocker)


def test_repeats():
    source = model(
        """<ir_version: 4, opset_import: ["" : 1]> g (float[2, 3] x) => (float[2, 6] y)
        <float tiles = {2.0}, float axis = {1.0}> { y = Tile (x, tiles, axis) }"""
    )
    assert op_types(converts(source, 13, {"x": X})) == ["Tile"]
    source = model(
        """<ir_version: 4, opset_import: ["" : 1]> g (float[2, 3] x, float tiles) => (float[2, n] y)
        <float axis = {1.0}> { y = Tile (x, tiles, axis) }"""
    )
    (blocker,) = blockers(source, 6)
    assert "its tiles or its axis are only known at run time" in str(blocker)
