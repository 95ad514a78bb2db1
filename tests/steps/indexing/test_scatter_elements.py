"""ScatterElements and Scatter: 11."""

from __future__ import annotations

import numpy as np

from tests.support import converts, one_node, op_types

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_scatter_elements_and_scatter():
    inputs = {
        "x": X,
        "i": np.array([[0, 1, 2, 0], [2, 0, 1, 1]], np.int64),
        "u": -np.ones((2, 4), np.float32),
    }
    source = one_node("ScatterElements", 11, inputs)
    low = converts(source, 10, inputs, inputs | {"i": inputs["i"] - 3}, exact=True)
    assert op_types(low)[-1] == "Scatter"
    constant = one_node("ScatterElements", 11, inputs, initializers=("i",), axis=0)
    low = converts(constant, 9, inputs, exact=True)
    assert op_types(low) == ["Scatter"]
    high = converts(low, 18, inputs, exact=True)
    assert op_types(high) == ["ScatterElements"]


def test_scatter():
    """The way down is above, and here with an axis from the back."""
    inputs = {"x": X, "i": np.array([[-1], [0], [1]]), "u": np.zeros((3, 1), np.float32)}
    for initializers in ((), ("i",)):
        source = one_node("ScatterElements", 11, inputs, initializers=initializers, axis=-1)
        converts(source, 10, inputs, exact=True)
