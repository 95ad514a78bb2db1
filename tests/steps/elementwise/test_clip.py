"""Clip: 6, 11, 12 and 13."""

from __future__ import annotations

import numpy as np
import pytest

import onnxreduce_cli
from tests.support import converts, model, one_node, op_types, run

X = np.array([-9, -1, -0.0, 0.5, 7, np.inf, -np.inf, np.nan], np.float32)


def clip(opset, x, low=None, high=None, run_time=False):
    limits = {
        name: None if limit is None else np.array(limit, x.dtype)
        for name, limit in (("min", low), ("max", high))
    }
    names = () if run_time else tuple(name for name in limits if limits[name] is not None)
    inputs = {"x": x, **limits}
    return one_node("Clip", opset, inputs, initializers=names), {
        name: array for name, array in inputs.items() if array is not None
    }


@pytest.mark.parametrize("limits", [(-1, 2), (3, -3), (None, 2), (0, None), (None, None)])
@pytest.mark.parametrize("run_time", [False, True])
@pytest.mark.parametrize("target", [12, 11, 10, 8])
def test_ordered_limits(limits, run_time, target):
    source, inputs = clip(13, X, *limits, run_time=run_time)
    converts(source, target, inputs)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("limits", [(1, 5), (None, 5), (2, None), (None, None)])
@pytest.mark.parametrize("run_time", [False, True])
def test_integers(dtype, limits, run_time):
    info = np.iinfo(dtype)
    x = np.array([info.min, info.min + 1, 0, 1, 3, info.max - 1, info.max], dtype)
    source, inputs = clip(12, x, *limits, run_time=run_time)
    converts(source, 11, inputs, exact=True)
    converts(source, 9, inputs, exact=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("limits", [(-1, 2), (None, 2), (0.1, None), (None, None)])
def test_limits_to_attributes_and_limits_to_inputs(dtype, limits):
    # ONNX Runtime computes float16 in float, whose limits are others.
    x = X.astype(dtype) if dtype != np.float16 else X[:5].astype(dtype)
    source, inputs = clip(11, x, *limits)
    low = converts(source, 10, inputs)
    converts(low, 11, inputs)
    converts(low, 13, inputs)


def test_limits_to_attributes_at_run_time():
    source, inputs = clip(11, X, -1, 2, run_time=True)
    assert op_types(converts(source, 10, inputs)) == ["Max", "Min"]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
@pytest.mark.parametrize(
    ("attributes", "in_float"),
    [({}, [True]), ({"min": -1.0}, [True, True]), ({"max": 2.0}, [True, False, True])],
)
def test_limits_to_inputs(dtype, attributes, in_float):
    x = X.astype(dtype)
    high = converts(one_node("Clip", 6, {"x": x}, **attributes), 11, {"x": x})
    given = [bool(name) for name in high.graph.node[0].input]
    # An absent limit was that of float, whatever the dtype.
    assert given == (in_float if dtype == np.float32 else [True, True, True])


@pytest.mark.parametrize(
    "attributes",
    [{}, {"min": -1.0}, {"max": 1.0}, {"min": -0.5, "max": 7e4}, {"min": -7e4}, {"max": -7e4}],
)
def test_limits_beyond_float16_leave_its_infinities(attributes):
    x = np.array([np.inf, -np.inf, np.nan, 65504, -65504, 0.5, -0.0, 6e-8], np.float16)
    source = one_node("Clip", 10, {"x": x}, **attributes)
    before, numpy = (run(source, {"x": x}, in_numpy=both)["y0"] for both in (False, True))
    np.testing.assert_array_equal(numpy, before)
    for target in (5, 11, 13, 18):
        result = onnxreduce_cli.convert(source, target)
        for in_numpy in (False, True):
            after = run(result, {"x": x}, in_numpy=in_numpy)["y0"]
            assert after.dtype == np.float16
            np.testing.assert_array_equal(after, before)


def old(dtype, attributes="", shape="[8]"):
    return model(
        f'<ir_version: 4, opset_import: ["" : 1]> g ({dtype}{shape} x) => ({dtype}{shape} y) '
        f"{{ y = Clip <consumed_inputs=[0]{attributes}> (x) }}"
    )


def test_limits_of_type_written_and_limits_written_out():
    high = converts(old("float"), 6, {"x": X})
    assert not high.graph.node[0].attribute
    half = X.astype(np.float16)
    converts(old("float16"), 6, {"x": half})
    converts(old("double", ", min=-1.0, max=3.5"), 11, {"x": X.astype(np.float64)})
    wide = X.astype(np.float64)
    for attributes in ("", ", min=-1.0", ", max=3.5"):
        for target in (6, 8, 11, 13):
            converts(old("double", attributes), target, {"x": wide}, in_numpy=True, exact=True)


@pytest.mark.parametrize("attributes", ["", ", min=-1.0", ", max=3.5"])
@pytest.mark.parametrize("target", [6, 7, 8, 11])
def test_limits_of_type_written_for_a_scalar(attributes, target):
    source = old("double", attributes, shape="")
    for value in (-9.0, 9.0, -0.0, np.inf, -np.inf, np.nan):
        converts(source, target, {"x": np.array(value)}, in_numpy=True, exact=True)
    onnxreduce_cli.convert(source, target)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_limits_written_out(dtype):
    x = X.astype(dtype)[:5]
    low = converts(one_node("Clip", 6, {"x": x}, max=3.0), 5, {"x": x})
    assert {a.name for a in low.graph.node[0].attribute} == {"min", "max"}


@pytest.mark.parametrize("low", [None, 0.0, -2.5])
@pytest.mark.parametrize("high", [None, 6.0])
@pytest.mark.parametrize("target", [10, 7, 6, 5, 1])
def test_constant_limits_become_attributes(low, high, target):
    source, inputs = clip(13, X, low, high)
    result = converts(source, target, inputs, exact=True)
    given = {a.name: a.f for a in result.graph.node[0].attribute}
    expected = {"min": low, "max": high}
    if target < 6:
        # The defaults were those of the type.
        largest = np.finfo(np.float32).max
        expected = {"min": -largest if low is None else low, "max": high or largest}
    assert given == {name: limit for name, limit in expected.items() if limit is not None}
    assert not result.graph.initializer


def test_limits_found_in_an_outer_scope():
    source = model("""<ir_version: 8, opset_import: ["" : 13]>
        g (float[8] x, bool c) => (float[8] y) <float low = {0}, float high = {6}> {
            y = If (c) <
                then_branch = t () => (float[8] a) { a = Clip(x, low, high) },
                else_branch = e () => (float[8] b) { b = Identity(x) }
            >
        }""")
    result = converts(source, 9, {"x": X, "c": np.array(True)}, exact=True)
    assert not result.graph.initializer


def test_an_infinite_limit_at_run_time_before_8():
    """What stands in for the absent limit leaves infinity alone, in both executors."""
    source, _ = clip(13, X, None, 6, run_time=True)
    feeds = [{"x": X, "max": np.array(limit, np.float32)} for limit in (6, np.inf, -np.inf)]
    converts(source, 7, *feeds, check=True)
