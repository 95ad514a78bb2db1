"""Pad: 2, 11, 18 and 19."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import blockers, converts, model, one_node, op_types

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


def test_pads_to_attributes_blocked():
    for name in ("pads", "value"):
        source, _ = pad(11, [1] * 4, 1, run_time=(name,), output_shapes=[[None] * 2])
        (blocker,) = blockers(source, 10)
        assert f"its {name} {name!r} " in str(blocker)
        assert "only known at run time" in str(blocker)
    source, _ = pad(11, [1] * 4, 0.1, x=X.astype(np.float64))
    (blocker,) = blockers(source, 10)
    assert "its value 0.1 is no number that float can hold" in str(blocker)


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


def test_pads_of_every_axis_blocked():
    source, _ = pad(18, [1, 1], 1, [0], ("axes",), output_shapes=[[None] * 2])
    (blocker,) = blockers(source, 17)
    assert "its axes 'axes' are only known at run time" in str(blocker)


@pytest.mark.parametrize("pads", [[1, 2, 3, 0], [0, 0, 0, 0], [3, 4, 3, 4], [0, 1, 0, 0]])
@pytest.mark.parametrize("target", [18, 9])
def test_wrapped(pads, target):
    source, inputs = pad(19, pads, mode="wrap")
    converts(source, target, inputs, exact=True)
    source, inputs = pad(19, [2, 1], axes=[-1], mode="wrap")
    converts(source, target, inputs, exact=True)
    source, inputs = pad(19, [2, 1], axes=[-1], mode="edge")
    converts(source, target, inputs, exact=True)


def test_wrapped_blocked():
    source, _ = pad(19, [9, 0, 0, 0], mode="wrap")
    (blocker,) = blockers(source, 18)
    assert "pads 9 and 0 are not known to be within axis 0 of size 3" in str(blocker)
    source, _ = pad(
        19, [1, 0, 0, 0], None, None, ("pads",), mode="wrap", output_shapes=[[None] * 2]
    )
    (blocker,) = blockers(source, 18)
    assert "its pads or axes are only known at run time" in str(blocker)


def test_pads_to_paddings_and_paddings_to_pads():
    source = one_node("Pad", 2, {"x": X}, pads=[-1, 2, 0, -3], value=5.0)
    low = converts(source, 1, {"x": X})
    assert op_types(low) == ["Slice", "Pad"]
    converts(low, 2, {"x": X})
    (blocker,) = blockers(one_node("Pad", 2, {"x": X}, pads=[-1, 2, 0, 0], mode="edge"), 1)
    assert "it crops and pads in one" in str(blocker)


def test_paddings_to_pads():
    source = model(
        '<ir_version: 4, opset_import: ["" : 1]> g (float[3, 4] x) => (float[4, 4] y) '
        "{ y = Pad <paddings=[1, 0, 0, 0]> (x) }"
    )
    converts(source, 13, {"x": X})
