"""Pad: 2, 11, 18 and 19."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from onnxreduce_cli import executor
from tests.support import (
    blockers,
    converts,
    converts_or_counts,
    dims_of,
    model,
    one_node,
    op_types,
    without_ranks,
)

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def pad(opset, pads, value=None, axes=None, run_time=(), x=X, **options):
    inputs = {"x": x, "pads": np.array(pads)}
    inputs["value"] = None if value is None else np.array(value, x.dtype)
    inputs["axes"] = None if axes is None else np.array(axes, np.int64)
    if axes is None:
        del inputs["axes"]
    names = tuple(n for n, a in inputs.items() if n not in ("x", *run_time) and a is not None)
    source = one_node("Pad", opset, inputs, initializers=names, **options)
    return source, {name: array for name, array in inputs.items() if array is not None}


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
@pytest.mark.parametrize("value", [None, 2.5, -np.inf, np.nan])
def test_pads_to_attributes_and_pads_to_inputs(mode, value):
    source, inputs = pad(11, [1, 0, 2, 3], value, mode=mode)
    low = converts(source, 10, inputs)
    assert len(low.graph.node[0].input) == 1
    high = converts(low, 13, inputs)
    assert len(high.graph.node[0].input) == (3 if value is not None and mode == "constant" else 2)
    converts(low, 1, inputs)


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_pads_to_inputs_of_other_floats(dtype):
    source, inputs = pad(11, [1, 0, 2, 3], 2.5, x=X.astype(dtype))
    converts(converts(source, 9, inputs), 13, inputs)


UNKNOWN = {"shapes": {"x": ["n", "m"]}, "output_shapes": [[None] * 2]}


@pytest.mark.parametrize("target", [10, 8, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8, np.bool_])
def test_pads_to_attributes_of_a_value_at_run_time(dtype, target):
    x = X.astype(dtype)
    for pads in ([1, 0, 2, 3], [-1, 2, 0, -3], [-1, -1, 0, 0], [0] * 4):
        for options in ({}, UNKNOWN):
            source, inputs = pad(13, pads, 1, run_time=("value",), x=x, **options)
            assert "Pad" not in op_types(converts(source, target, inputs, exact=True))


@pytest.mark.parametrize("target", [10, 8, 7])
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_pads_to_attributes_of_pads_at_run_time(mode, dtype, target):
    x = X.astype(dtype)
    wanted = [[1, 0, 2, 3], [-1, 2, 0, -1], [-1, -1, 0, 0], [0] * 4, [-1, 1, 1, -1]]
    for value in (None, 5):
        for shapes in ({}, UNKNOWN["shapes"]):
            options = {"mode": mode, "shapes": shapes, "output_shapes": [[None] * 2]}
            source, inputs = pad(11, wanted[0], value, run_time=("pads",), x=x, **options)
            more = [{**inputs, "pads": np.array(pads)} for pads in wanted[1:]]
            converts_or_counts(source, target, inputs, *more, exact=True)


def test_pads_to_attributes_of_nothing():
    for x in (np.ones((0, 2), np.float32), np.ones((0, 2), np.int64)):
        options = {"run_time": ("pads", "value"), "x": x, **UNKNOWN}
        source, inputs = pad(11, [1, 0, 1, 1], 3, **options)
        converts(source, 10, inputs, exact=True)
    source = one_node("Pad", 11, {"x": np.float32(2), "pads": np.array([], np.int64)})
    converts(source, 10, {"x": np.float32(2), "pads": np.array([], np.int64)}, in_numpy=True)


def test_pads_to_attributes_of_a_value_that_float_does_not_hold():
    for x, value in ((X.astype(np.float64), 0.1), (X.astype(np.int32), 2**24 + 1)):
        source, inputs = pad(11, [1] * 4, value, x=x)
        converts(source, 10, inputs, exact=True)


def test_pads_to_attributes_with_one_element_beside_what_is_reflected():
    options = {"mode": "reflect", "run_time": ("pads",), **UNKNOWN}
    for x in (X[:1], X[:0]):
        source, inputs = pad(11, [0, 2, 0, 1], x=x, **options)
        converts_or_counts(source, 7, inputs, exact=True)


def test_pads_to_attributes_reflected_more_than_once():
    options = {"mode": "reflect", "run_time": ("pads",), **UNKNOWN}
    source, inputs = pad(11, [7, 0, 0, 9], **options)
    converts(source, 10, inputs, exact=True, in_numpy=True)


def test_pads_to_attributes_blocked():
    source, _ = pad(
        11,
        [1] * 4,
        1,
        run_time=("pads",),
        shapes={"x": None, "pads": [None]},
        output_shapes=[[None] * 2],
    )
    (blocker,) = blockers(source, 10)
    assert "its pads 'pads' are not known either" in str(blocker)


@pytest.mark.parametrize("run_time", [(), ("pads",)])
def test_other_dtypes(run_time):
    for x, value in ((np.array([["a", "b"], ["c", "d"]]), "-"), (X.astype(np.complex64) * 1j, 2)):
        options = {"run_time": run_time, "x": x, "output_shapes": [[None] * 2]}
        source, inputs = pad(13, [1, -1, 0, 2], value, **options)
        # ONNX Runtime gathers the first string of each row only.
        in_numpy = bool(run_time) or x.dtype.kind == "c"
        assert "Pad" not in op_types(converts(source, 12, inputs, exact=True, in_numpy=in_numpy))


@pytest.mark.parametrize("axes", [[1], [-1], [0, 1], [1, 0], []])
@pytest.mark.parametrize("run_time", [(), ("pads",)])
def test_pads_of_every_axis(axes, run_time):
    pads = [1, -1, 2, 3][: len(axes)] + [3, 0][: len(axes)]
    source, inputs = pad(
        18, np.array(pads, np.int64), 1, axes, run_time, output_shapes=[[None] * 2]
    )
    converts(source, 17, inputs, exact=True)
    if not run_time:
        converts(source, 7, inputs, exact=True)


@pytest.mark.parametrize("run_time", [("axes",), ("pads", "axes")])
@pytest.mark.parametrize("target", [17, 10, 7])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_pads_of_every_axis_at_run_time(run_time, target, dtype):
    for axes, pads in (([1], [1, 2]), ([-1, 0], [1, -1, 2, 3]), ([], [])):
        source, inputs = pad(
            18, np.array(pads, np.int64), 1, axes, run_time, output_shapes=[[None] * 2]
        )
        inputs["axes"] = inputs["axes"].astype(dtype)
        for value in source.graph.input:
            if value.name == "axes":
                value.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        converts_or_counts(source, target, inputs, exact=True)


@pytest.mark.parametrize("run_time", [(), ("axes", "pads")])
def test_pads_of_every_axis_of_unknown_rank(run_time):
    for axes, pads in (([1], [1, 2]), ([-1, 0], [1, -1, 2, 3])):
        source, inputs = pad(18, pads, 1, axes, run_time, output_shapes=[[None] * 2])
        feeds = {**inputs, **dims_of(inputs)}
        source = without_ranks(source, ["x"])
        for target in (17, 11):
            converts(source, target, feeds, exact=True)
        (blocker,) = blockers(source, 10)
        assert "the rank of 'x_shaped' is not known" in str(blocker)


@pytest.mark.parametrize("pads", [[1, 2, 3, 0], [0, 0, 0, 0], [3, 4, 3, 4], [0, 1, 0, 0]])
@pytest.mark.parametrize("target", [18, 9])
def test_wrapped(pads, target):
    source, inputs = pad(19, pads, mode="wrap")
    converts(source, target, inputs, exact=True)
    source, inputs = pad(19, [2, 1], axes=[-1], mode="wrap")
    converts(source, target, inputs, exact=True)
    source, inputs = pad(19, [2, 1], axes=[-1], mode="edge")
    converts(source, target, inputs, exact=True)


@pytest.mark.parametrize("target", [18, 10, 7])
@pytest.mark.parametrize("run_time", [(), ("pads",), ("pads", "axes")])
@pytest.mark.parametrize("shapes", [{}, UNKNOWN["shapes"]])
def test_wrapped_around_more_than_once(run_time, shapes, target):
    # ONNX Runtime 1.23 reads beyond the data where it wraps around more than once.
    for pads in ([9, 0, 1, 11], [-1, 4, 7, -2], [-1, -1, -1, -1]):
        for axes in (None, [1, 0]):
            if axes is None and "axes" in run_time:
                continue
            options = {"mode": "wrap", "shapes": shapes, "output_shapes": [[None] * 2]}
            source, inputs = pad(19, pads, None, axes, run_time, **options)
            converts_or_counts(source, target, inputs, exact=True, in_numpy=True)


def test_wrapped_blocked():
    options = {"mode": "wrap", "shapes": {"x": None, "pads": [None]}}
    source, _ = pad(19, [1, 0, 0, 0], run_time=("pads",), output_shapes=[[None] * 2], **options)
    (blocker,) = blockers(source, 18)
    assert "its pads 'pads' are not known either" in str(blocker)


def test_pads_to_paddings_and_paddings_to_pads():
    source = one_node("Pad", 2, {"x": X}, pads=[-1, 2, 0, -3], value=5.0)
    low = converts(source, 1, {"x": X})
    assert op_types(low) == ["Slice", "Pad"]
    converts(low, 2, {"x": X})
    for mode in ("edge", "reflect"):
        source = one_node("Pad", 2, {"x": X}, pads=[-1, 2, 1, -1], mode=mode)
        low = converts(source, 1, {"x": X})
        assert op_types(low) == ["Slice", "Pad"]


def test_paddings_to_pads():
    source = model(
        '<ir_version: 4, opset_import: ["" : 1]> g (float[3, 4] x) => (float[4, 4] y) '
        "{ y = Pad <paddings=[1, 0, 0, 0]> (x) }"
    )
    converts(source, 13, {"x": X})


def test_wrapped_of_size_0():
    x = np.arange(10.0).reshape(2, 5)
    pads = np.array([0, 1, 0, 2])
    source = one_node("Pad", 19, {"x": x, "p": pads}, shapes={"x": ["a", "b"]}, mode="wrap")
    feeds = [{"x": x, "p": pads}, {"x": x[:0], "p": pads}]
    feeds.append({"x": x[:, :0], "p": np.zeros(4, np.int64)})
    for target in (18, 10):
        converts(source, target, *feeds, in_numpy=True)


def test_there_is_nothing_to_wrap():
    x, pads = np.zeros((2, 0)), np.array([0, 1, 0, 2])
    source = one_node("Pad", 19, {"x": x, "p": pads}, initializers=("p",), mode="wrap")
    assert "axis of size 0" in blockers(source, 18)[0].reason


@pytest.mark.parametrize("target", [10, 13, 17])
def test_strings_are_padded_with_empty_ones(target):
    inputs = {"x": np.array([["a", "b", "c"], ["d", "e", "f"]], object), "shape": np.array([4, 2])}
    source = one_node("CenterCropPad", 18, inputs, initializers=("shape",))
    found = converts(source, target, inputs, exact=True, in_numpy=True)
    wanted = [["", ""], ["a", "b"], ["d", "e"], ["", ""]]
    assert executor.run(found, {"x": inputs["x"]})["y0"].tolist() == wanted
