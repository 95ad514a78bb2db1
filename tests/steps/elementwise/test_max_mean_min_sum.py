"""Max, Mean, Min and Sum below opset 8, Max and Min of integers below 12."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import (
    blockers,
    converts,
    of_unknown_rank,
    one_node,
    op_types,
)

X = np.array([[1, -2, np.inf], [0, np.nan, -np.inf]], np.float32)


@pytest.mark.parametrize("op_type", ["Max", "Mean", "Min", "Sum"])
def test_one_shape(op_type):
    same = {"x": X, "z": X[::-1].copy()}
    assert op_types(converts(one_node(op_type, 8, same), 7, same)) == [op_type]
    for other in ((3,), (2, 1), (), (1, 1, 3)):
        for initializers in ((), ("z",)):
            inputs = {"x": X, "z": np.full(other, 0.5, np.float32)}
            source = one_node(op_type, 8, inputs, initializers=initializers)
            converts(source, 7, inputs)
            if len(other) < 3 and (initializers or op_type == "Sum"):
                converts(source, 6, inputs)
    alone = {"x": X}
    converts(one_node(op_type, 8, alone), 7, alone)


def test_one_shape_of_three():
    inputs = {"x": X[:, :1], "z": X[1:, :], "w": X}
    for op_type in ("Max", "Mean", "Min", "Sum"):
        converts(one_node(op_type, 8, inputs), 7, inputs)


@pytest.mark.parametrize("op_type", ["Max", "Min"])
def test_one_shape_clips(op_type):
    for limit in (0.0, np.inf, -np.inf):
        inputs = {"x": X, "z": np.array(limit, np.float32)}
        source = one_node(op_type, 8, inputs, initializers=("z",), shapes={"x": ["a", "b"]})
        assert op_types(converts(source, 7, inputs)) == ["Clip"]


@pytest.mark.parametrize("op_type", ["Max", "Mean"])
def test_one_shape_of_sizes_known_at_run_time(op_type):
    inputs = {"x": X, "z": X[:1], "w": X[:, :1]}
    shapes = {"x": ["a", "b"], "z": ["c", "b"], "w": [None, None]}
    more = {"x": X[1:], "z": X[:1], "w": X}
    source = one_node(op_type, 8, inputs, shapes=shapes)
    for target in (7, 6):
        converts(source, target, inputs, more)
    source, fed = of_unknown_rank(one_node(op_type, 8, inputs), inputs, "x", "w")
    assert fed
    (blocker,) = blockers(source, 7)
    assert "is not known, and before opset 8 nothing gives values of" in blocker.reason
    assert "choose opset 8 or later" in blocker.advice


@pytest.mark.parametrize("op_type", ["Max", "Min"])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int32, np.uint32])
def test_max_min_of_integers(op_type, dtype):
    info = np.iinfo(dtype)
    x = np.array([[info.min, info.max, 5]], dtype)
    inputs = {"x": x, "y": x[:, ::-1].reshape(3, 1).copy(), "z": np.array(7, dtype)}
    result = converts(one_node(op_type, 12, inputs), 11, inputs, exact=True)
    assert ("Where" in op_types(result)) == (np.dtype(dtype).itemsize == 8)
    converts(one_node(op_type, 12, inputs), 9, inputs, exact=True)
    converts(one_node(op_type, 12, {"x": x}), 11, {"x": x}, exact=True)
