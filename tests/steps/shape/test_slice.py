"""Slice and Shape."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, converts_or_counts, model, one_node, op_types

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
ALL = ("starts", "ends", "axes", "steps")
MAX, MIN = np.iinfo(np.int64).max, np.iinfo(np.int64).min


def sliced(opset, starts, ends, axes=None, steps=None, dtype=np.int64, run_time=(), **options):
    given = dict(zip(ALL, (starts, ends, axes, steps), strict=True))
    lists = {k: None if v is None else np.array(v, dtype) for k, v in given.items()}
    initializers = [name for name in ALL if lists[name] is not None and name not in run_time]
    inputs = {"x": X, **lists}
    if steps is None:
        inputs.pop("steps")
        if axes is None:
            inputs.pop("axes")
    return one_node("Slice", opset, inputs, initializers=tuple(initializers), **options)


CASES = [
    ([1], [3], [0]),
    ([-2, 0], [MAX, -1], [2, 1]),
    ([5], [9], [1]),
    ([3, 1], [1, 2], None),
    ([-99], [99], [2]),
]


@pytest.mark.parametrize(("starts", "ends", "axes"), CASES)
def test_inputs_to_attributes_and_back(starts, ends, axes):
    low = converts(sliced(10, starts, ends, axes), 9, {"x": X}, exact=True)
    assert len(low.graph.node[0].input) == 1
    high = converts(low, 13, {"x": X}, exact=True)
    assert len(high.graph.node[0].input) == (3 if axes is None else 4)


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ([0], [MAX], [1], [2]),
        ([-1], [MIN + 1], [1], [-1]),
        ([3, 1], [0, 5], [1, 2], [-2, 3]),
        ([-1], [-99], [-1], [-2]),
        ([2], [1], [0], [1]),
        ([2], [1], [0], [2]),
    ],
)
def test_inputs_to_attributes_with_steps(starts, ends, axes, steps):
    source = sliced(11, starts, ends, axes, steps)
    low = converts(source, 9, {"x": X}, exact=True)
    assert set(op_types(low)) <= {"Gather", "Slice"}


BOUNDS = [
    ([0], [9], [0], [2]),
    ([-1], [-99], [1], [-1]),
    ([5, 3], [0, MIN + 1], [2, 1], [-2, -3]),
    ([1, -2], [MAX, 3], [1, 2], None),
    ([2], [1], [0], [1]),
    ([9], [12], [0], [3]),
    ([0, 0, 0], [2, 2, 2], None, None),
]


@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), BOUNDS)
@pytest.mark.parametrize("run_time", [(), ("starts",), ("ends",), ("starts", "ends")])
def test_inputs_to_attributes_at_run_time(starts, ends, axes, steps, run_time):
    shapes = {"x": ["a", "b", "c"]}
    shape = [[None] * 3]
    source = sliced(
        11, starts, ends, axes, steps, run_time=run_time, shapes=shapes, output_shapes=shape
    )
    inputs = {"x": X, "starts": np.array(starts), "ends": np.array(ends)}
    converts(source, 9, inputs, inputs | {"x": X[:0]}, inputs | {"x": X[:1, :2, :1]}, exact=True)


def test_inputs_to_attributes_of_int32():
    source = sliced(
        11, [0], [2], [0], dtype=np.int32, run_time=("ends",), output_shapes=[[None] * 3]
    )
    converts(source, 9, {"x": X, "ends": np.array([2], np.int32)}, exact=True)


@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), [b for b in BOUNDS if b[2]])
@pytest.mark.parametrize(
    ("run_time", "hidden"), [(("axes",), ()), (("steps",), ("x",)), (ALL, ("x",))]
)
def test_inputs_to_attributes_with_axes_at_run_time(starts, ends, axes, steps, run_time, hidden):
    given = (starts, ends, axes, steps or [1] * len(axes))
    source = sliced(11, *given, run_time=run_time, hidden=hidden, output_shapes=[[None] * 3])
    inputs = {"x": X, **dict(zip(ALL, map(np.array, given), strict=True))}
    negative = inputs | {"axes": inputs["axes"] - 3}
    converts(source, 9, inputs, negative, exact=True)
    if hidden:
        converts(source, 9, inputs | {"x": X[:0]}, exact=True, in_numpy=True)


def test_inputs_to_attributes_with_axes_at_run_time_below_9():
    given = ([5, 3], [0, MIN + 1], [2, 1], [-2, -3])
    source = sliced(10, *given, run_time=ALL, hidden=("x",), output_shapes=[[None] * 3])
    inputs = dict(zip(ALL, map(np.array, given), strict=True))
    for target in (8, 7):
        converts_or_counts(source, target, {"x": X, **inputs}, exact=True)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_negative_axes(dtype):
    source = sliced(11, [1, 0], [2, 3], [-1, -3], [1, 2], dtype=dtype)
    converts(source, 10, {"x": X}, exact=True)
    source = sliced(11, [1, 0], [2, 3], [2, 0], [1, 2], dtype=dtype)
    converts(source, 10, {"x": X}, exact=True)


@pytest.mark.parametrize("axes", [[-1, -3], [-2], [0, -1]])
@pytest.mark.parametrize("steps", [None, 1, 2])
def test_negative_axes_of_unknown_rank(axes, steps):
    starts, ends = [1, 0][: len(axes)], [2, 3][: len(axes)]
    steps = steps and [steps] * len(axes)
    source = sliced(11, starts, ends, axes, steps, hidden=("x",))
    for target in (10, 9, 7):
        converts_or_counts(
            source, target, {"x": X}, {"x": X[:, :0]}, exact=True, in_numpy=target == 7
        )


def test_axes_in_any_order():
    """Shape inference below 10 takes them for ascending, and the full check refuses others."""
    x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    source = model("""<ir_version: 8, opset_import: ["" : 13]>
        g (float[3,4,5] x) => (float[2,3,4] y)
        <int64[3] axes = {-1, 0, 1}, int64[3] starts = {1, 0, 1}, int64[3] ends = {9, 2, 4}> {
            y = Slice(x, starts, ends, axes)
        }""")
    for target in (10, 9, 5):
        converts(source, target, {"x": x}, exact=True)
