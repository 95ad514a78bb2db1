"""Dropout: 7, 10 and 12."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from onnxreduce_cli import convert, plan
from tests.support import converts, model, one_node, op_types, run_ort

X = np.array([[1, -2, np.inf], [0, np.nan, 3]], np.float32)


def with_mask(opset, read, dtype="bool"):
    outputs = f"float[2, 3] y, {dtype}[2, 3] mask" if read else "float[2, 3] y"
    return model(
        f'<ir_version: 7, opset_import: ["" : {opset}]> g (float[2, 3] x) => ({outputs}) '
        "{ y, mask = Dropout (x) }"
    )


@pytest.mark.parametrize("target", [11, 9, 6])
@pytest.mark.parametrize("mode", [None, False])
def test_ratio_to_attribute_and_back(target, mode):
    inputs = {"x": X, "r": np.array(0.3, np.float32), "t": None if mode is None else np.array(mode)}
    source = one_node("Dropout", 13, inputs, initializers=("r", "t"), seed=3)
    low = converts(source, target, {"x": X})
    given = {a.name: helper.get_attribute_value(a) for a in low.graph.node[0].attribute}
    expected = {"ratio": np.float32(0.3)}
    assert given == (expected | {"is_test": 1} if target == 6 else expected)
    converts(low, 13, {"x": X})


def test_ratio_to_attribute():
    inputs = {"x": X, "r": np.array(0.3, np.float32)}
    assert op_types(converts(one_node("Dropout", 13, inputs), 11, inputs)) == ["Dropout"]
    for target in (11, 9):
        assert "ConstantOfShape" in op_types(converts(with_mask(13, True), target, {"x": X}))
        assert op_types(converts(with_mask(13, False), target, {"x": X})) == ["Dropout"]


def drops(found, feeds, x, ratio):
    """Whether a model drops about that share of x, by its mask, and scales the rest."""
    y, mask = run_ort(found, feeds)
    kept = mask.astype(bool)
    scale = (1 / (1 - np.asarray(ratio, np.float64))).astype(x.dtype)
    np.testing.assert_allclose(y, np.where(kept, x * scale, 0), rtol=2e-3)
    assert y.dtype == x.dtype
    assert set(np.unique(mask)) <= {0, 1}
    return abs(kept.mean() - (1 - ratio)) < 0.03


MANY = np.random.default_rng(1).standard_normal((100, 100))


@pytest.mark.parametrize("constants", [("r", "t"), ("r",), ("t",), ()])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ratio_to_attribute_in_training(constants, dtype):
    inputs = {"x": MANY.astype(dtype), "r": np.array(0.3, np.float32), "t": np.array(True)}
    source = one_node("Dropout", 13, inputs, outputs=2, initializers=constants, seed=3)
    assert drops(source, inputs, inputs["x"], 0.3)
    for target in (11, 9, 7):
        result = convert(source, target)
        assert "Dropout" not in op_types(result)
        assert drops(result, inputs, inputs["x"], 0.3)
        (drawing,) = (node for node in result.graph.node if "Random" in node.op_type)
        assert {a.name: a.f for a in drawing.attribute}["seed"] == 3
        if "t" not in constants:
            converts(source, target, {**inputs, "t": np.array(False)}, exact=True)


def test_ratio_to_attribute_of_halves_and_of_no_ratio():
    inputs = {"x": MANY.astype(np.float16), "r": None, "t": np.array(True)}
    source = one_node("Dropout", 13, inputs, outputs=2)
    wide = {"x": inputs["x"], "t": np.array(True)}
    assert drops(convert(source, 11), wide, inputs["x"], 0.5)
    # Nothing is dropped with a ratio of 0.
    inputs = {"x": X, "r": np.array(0, np.float32), "t": np.array(True)}
    source = one_node("Dropout", 13, inputs, outputs=2, initializers=("r", "t"))
    assert "Dropout" in op_types(converts(source, 11, {"x": X}, exact=True))


def test_ratio_to_input():
    source = one_node("Dropout", 10, {"x": X}, ratio=0.25)
    high = converts(source, 12, {"x": X})
    assert len(high.graph.node[0].input) == 2
    source = with_mask(10, True)
    converts(source, 12, {"x": X}, in_numpy=True)
    (change,) = plan(source, 12).changes
    assert "left open" in change.warnings[0]


def test_mask_to_bool_and_mask_to_floats():
    low = converts(with_mask(10, True), 9, {"x": X})
    assert op_types(low) == ["Dropout", "Cast"]
    high = converts(with_mask(9, True, "float"), 10, {"x": X})
    assert op_types(high) == ["Dropout", "Cast"]
    for source, target in ((with_mask(10, False), 9), (with_mask(9, False, "float"), 10)):
        assert op_types(converts(source, target, {"x": X})) == ["Dropout"]


def test_masks_across_several_boundaries():
    """A mask that a step names anew is read, though no node of the model does."""
    for source, target in (
        (with_mask(10, True), 6),
        (with_mask(13, True), 6),
        (with_mask(9, True, "float"), 13),
        (with_mask(7, True, "float"), 11),
    ):
        converts(source, target, {"x": X}, exact=True, in_numpy=True)


def test_mask_to_floats():
    """A mask that is named but not read goes."""
    assert len(converts(with_mask(9, False, "float"), 10, {"x": X}).graph.node[0].output) == 1


def test_is_test_written_and_test_mode():
    low = converts(one_node("Dropout", 7, {"x": X}), 6, {"x": X})
    assert low.graph.node[0].attribute[0].name == "is_test"
    converts(low, 13, {"x": X})
    # A mask of an older opset is filled in training only.
    low = converts(with_mask(7, True, "float"), 6, {"x": X}, in_numpy=True)
    assert "Dropout" not in op_types(low)


@pytest.mark.parametrize("outputs", ["float[2, 3] y", "float[2, 3] y, float[2, 3] mask"])
def test_test_mode(outputs):
    """What trains below opset 7 goes on training."""
    source = model(
        f'<ir_version: 4, opset_import: ["" : 6]> g (float[2, 3] x) => ({outputs}) '
        "{ y, mask = Dropout <ratio = 0.3> (x) }"
    )
    x = MANY.astype(np.float32)
    for target in (7, 9, 10, 11, 12, 13, 22):
        result = convert(source, target)
        onnx.checker.check_model(result, full_check=True)
        assert ("Dropout" in op_types(result)) == (target >= 12)
        for value in (*result.graph.input, *result.graph.output):
            value.type.tensor_type.ClearField("shape")
        if "mask" in outputs:
            assert drops(result, {"x": x}, x, 0.3)
        else:
            (y,) = run_ort(result, {"x": x})
            assert abs((y != 0).mean() - 0.7) < 0.03
