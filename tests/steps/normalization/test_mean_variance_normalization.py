"""MeanVarianceNormalization below opset 9, and its axes across 9."""

from __future__ import annotations

import numpy as np

from tests.support import converts, converts_or_counts, one_node


def test_mean_variance_normalization_of_unknown_rank() -> None:
    x = np.random.default_rng(0).normal(2, 3, (2, 3, 4, 5)).astype(np.float32)
    for axes in ([-1], [0, -1], [1, 2]):
        shape = [[None] * 4]
        source = one_node(
            "MeanVarianceNormalization",
            9,
            {"x": x},
            hidden=("x",),
            output_shapes=shape,
            axes=axes,
        )
        for target in (8, 7):
            converts_or_counts(source, target, {"x": x})


def test_mean_variance_normalization() -> None:
    x = np.random.default_rng(0).normal(2, 3, (2, 3, 4, 5)).astype(np.float32)
    for attributes in ({}, {"axes": [1, 2]}, {"axes": [-1]}):
        shapes = [x.shape]
        source = one_node(
            "MeanVarianceNormalization", 9, {"x": x}, output_shapes=shapes, **attributes
        )
        for target in (8, 7):
            converts(source, target, {"x": x})


def test_mean_variance_axes() -> None:
    inputs = {"x": np.random.default_rng(5).normal(size=(2, 3, 4, 5)).astype(np.float32)}
    source = one_node("MeanVarianceNormalization", 9, inputs, output_shapes=[[2, 3, 4, 5]])
    high = converts(source, 13, inputs)
    assert list(high.graph.node[0].attribute[0].ints) == [0, 2, 3]
    converts(high, 9, inputs)
    given = one_node("MeanVarianceNormalization", 9, inputs, output_shapes=[[2, 3, 4, 5]], axes=[1])
    assert list(converts(given, 13, inputs).graph.node[0].attribute[0].ints) == [1]
