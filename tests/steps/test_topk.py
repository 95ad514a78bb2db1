"""TopK: 10 and 11."""

from __future__ import annotations

import numpy as np
import pytest

from onnxreduce_cli import convert
from tests.support import blockers, converts, one_node, op_types, run_ort

X = np.array([[3, 1, 3, -2, 0], [-1, np.inf, 2, -np.inf, 2]], np.float32)
INTS = np.array([[3, 1, 3, -2, 0], [-1, 100, 2, -100, 2]])
K = np.array([2])


def top(opset, x=X, run_time=False, **attributes):
    return one_node(
        "TopK",
        opset,
        {"x": x, "k": K},
        outputs=2,
        initializers=() if run_time else ("k",),
        output_shapes=[[None, None]] * 2,
        **attributes,
    )


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_number_to_attribute_and_number_to_input(axis):
    low = converts(top(10, axis=axis), 7, {"x": X})
    assert {a.name for a in low.graph.node[0].attribute} == {"axis", "k"}
    high = converts(low, 21, {"x": X})
    assert len(high.graph.node[0].input) == 2


def test_number_to_attribute_blocked():
    (blocker,) = blockers(top(10, run_time=True), 9)
    assert "its K 'k' is only known at run time" in str(blocker)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_largest_of_floats(axis, largest, dtype):
    x = X if dtype != np.int32 else INTS.astype(dtype)
    x = x.astype(dtype)
    source = top(11, x, axis=axis, largest=largest)
    result = converts(source, 10, {"x": x}, {"x": x[::-1].copy()}, exact=True)
    assert not any(a.name == "largest" for node in result.graph.node for a in node.attribute)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.uint32])
def test_largest_of_floats_of_small_integers(dtype):
    x = np.abs(INTS).astype(dtype)
    converts(top(11, x, largest=0), 10, {"x": x}, exact=True)


def test_largest_of_floats_unsorted():
    source = top(11, sorted=0)
    result = convert(source, 10)
    assert op_types(result) == ["TopK"]
    (before, _), (after, _) = run_ort(source, {"x": X}), run_ort(result, {"x": X})
    np.testing.assert_array_equal(np.sort(before), np.sort(after))


def test_largest_of_floats_blocked():
    (blocker,) = blockers(top(11, INTS), 10)
    assert "it orders 64-bit integers" in str(blocker)
