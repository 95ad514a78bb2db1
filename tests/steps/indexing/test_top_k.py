"""TopK: 10 and 11."""

from __future__ import annotations

import numpy as np
import pytest

from onnxreduce_cli import convert
from onnxreduce_cli.engine import emulation
from tests.support import converts, converts_from_9, model, one_node, op_types, run_ort

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


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("named", [True, False])
def test_number_to_attribute_at_run_time(axis, named):
    """Of as many as there are the first K are taken; of an unknown number each is placed."""
    x = np.array([X, X[:, ::-1], -X])
    shapes = {"x": ["a", "b", "c"]} if named else {}
    options = {"shapes": shapes, "output_shapes": [[None] * 3] * 2, "outputs": 2, "axis": axis}
    source = one_node("TopK", 10, {"x": x, "k": K}, **options)
    for k in (0, 1, 2):
        inputs = {"x": x, "k": np.array([k])}
        for target in (9, 7):
            more = {**inputs, "x": x[:, :, :3]} if named else inputs
            converts_from_9(source, target, inputs, more)
    x = np.where(x == 0, np.nan, x)
    for target in (9, 8):
        converts_from_9(source, target, {"x": x, "k": K}, in_numpy=True)


@pytest.mark.parametrize("count", [0, 3])
def test_number_to_attribute_of_none(count):
    """Before opset 10 a K of 0 is not valid."""
    x, k = np.zeros((2, count), np.float32), np.array([0])
    for constant in (True, False):
        initializers = ("k",) if constant else ()
        source = one_node("TopK", 10, {"x": x, "k": k}, outputs=2, initializers=initializers)
        for target in (9, 7):
            convert = converts if constant or not count else converts_from_9
            convert(source, target, {"x": x, "k": k}, exact=True, in_numpy=True)


def test_number_to_attribute_by_counting():
    source = one_node(
        "TopK",
        10,
        {"x": X, "k": K},
        shapes={"x": ["a", "b"]},
        outputs=2,
        output_shapes=[[None] * 2] * 2,
    )
    assert "TopK" not in op_types(converts(source, 9, {"x": X, "k": K}, in_numpy=True))


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_largest_of_floats(axis, largest, dtype):
    x = X if dtype != np.int32 else INTS.astype(dtype)
    x = x.astype(dtype)
    source = top(11, x, axis=axis, largest=largest)
    result = converts(source, 10, {"x": x}, {"x": x[::-1].copy()}, exact=True)
    assert not any(a.name == "largest" for node in result.graph.node for a in node.attribute)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_largest_of_floats_of_unknown_rank(axis, largest):
    for x in (X, INTS.astype(np.int32)):
        source = top(11, x, axis=axis, largest=largest, hidden=("x",))
        for target in (10, 7):
            converts(source, target, {"x": x}, exact=True)


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


BIG = 2**53


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_largest_of_floats_of_64_bits(dtype, largest):
    """A double would not tell them apart; equal ones come by index."""
    lowest, highest = np.iinfo(dtype).min, np.iinfo(dtype).max
    near = [highest - 1, lowest, highest, lowest + 1, BIG, BIG + 1, BIG, 2**32, 2**32 - 1, 1]
    far = [2**63 - 513, 2**63 - 512, 2**63 - 1, 2**62, lowest, 0, highest - 1024, 3, 3, highest]
    x = np.array([near, far], dtype)
    number = np.array([7])
    for axis, run_time in ((1, False), (-1, True), (-2, True)):
        inputs = {"x": x, "k": number if axis != -2 else np.array([2])}
        source = one_node(
            "TopK",
            11,
            inputs,
            outputs=2,
            initializers=() if run_time else ("k",),
            shapes={"x": ["a", "b"]} if run_time else {},
            output_shapes=[[None, None]] * 2,
            axis=axis,
            largest=largest,
        )
        convert = converts_from_9 if run_time else converts
        for target in (10, 9, 7):
            convert(source, target, inputs, exact=True, in_numpy=dtype == np.uint64)
    if dtype == np.int64:
        y = np.concatenate([-x, x], 1)
        converts(source, 10, {"x": y, "k": np.array([1])}, exact=True)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
@pytest.mark.parametrize("dtype", ["int64", "float"])
def test_of_unknown_rank(axis, dtype, monkeypatch):
    monkeypatch.setattr(emulation, "MOST_NODES", 1_000)
    source = model(
        f'<ir_version: 7, opset_import: ["" : 11]> g ({dtype}[n] flat, int64[r] shape, int64[1] k)'
        f" => ({dtype}[a, b, c] y, int64[a, b, c] i) "
        f"{{ x = Reshape (flat, shape) y, i = TopK <axis = {axis}> (x, k) }}"
    )
    x = np.array([INTS, -INTS, INTS * 2]).astype(np.int64 if dtype == "int64" else np.float32)
    for shape in (x.shape, (2, 3, 5)):
        feeds = {"flat": x.reshape(-1), "shape": np.array(shape), "k": K}
        for target in (10, 9, 7):
            converts_from_9(source, target, feeds, exact=True)
