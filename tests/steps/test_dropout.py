"""Dropout: 7, 10 and 12."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import blockers, converts, model, one_node, op_types

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
    assert abs(low.graph.node[0].attribute[-1].f - 0.3) < 1e-6 or target == 6
    converts(low, 13, {"x": X})


def test_ratio_to_attribute():
    inputs = {"x": X, "r": np.array(0.3, np.float32)}
    assert op_types(converts(one_node("Dropout", 13, inputs), 11, inputs)) == ["Dropout"]
    for target in (11, 9):
        assert "ConstantOfShape" in op_types(converts(with_mask(13, True), target, {"x": X}))
        assert op_types(converts(with_mask(13, False), target, {"x": X})) == ["Dropout"]


@pytest.mark.parametrize("constant", [True, False])
def test_ratio_to_attribute_blocked(constant):
    inputs = {"x": X, "r": np.array(0.3, np.float32), "t": np.array(True)}
    source = one_node("Dropout", 13, inputs, initializers=("t",) if constant else ())
    (blocker,) = blockers(source, 11)
    assert "its training_mode 't' is not known to be false" in str(blocker)


def test_ratio_to_input():
    source = one_node("Dropout", 10, {"x": X}, ratio=0.25)
    high = converts(source, 12, {"x": X})
    assert len(high.graph.node[0].input) == 2
    (blocker,) = blockers(with_mask(10, True), 12)
    assert "its mask is read" in str(blocker)


def test_mask_to_bool_and_mask_to_floats():
    low = converts(with_mask(10, True), 9, {"x": X})
    assert op_types(low) == ["Dropout", "Cast"]
    high = converts(with_mask(9, True, "float"), 10, {"x": X})
    assert op_types(high) == ["Dropout", "Cast"]
    for source, target in ((with_mask(10, False), 9), (with_mask(9, False, "float"), 10)):
        assert op_types(converts(source, target, {"x": X})) == ["Dropout"]


def test_mask_to_floats():
    """A mask that is named but not read goes."""
    assert len(converts(with_mask(9, False, "float"), 10, {"x": X}).graph.node[0].output) == 1


def test_is_test_written_and_test_mode():
    low = converts(one_node("Dropout", 7, {"x": X}), 6, {"x": X})
    assert low.graph.node[0].attribute[0].name == "is_test"
    converts(low, 13, {"x": X})
    (blocker,) = blockers(with_mask(7, True, "float"), 6)
    assert "its mask is read" in str(blocker)


def test_test_mode():
    source = model(
        '<ir_version: 4, opset_import: ["" : 6]> g (float[2, 3] x) => (float[2, 3] y) '
        "{ y = Dropout (x) }"
    )
    (blocker,) = blockers(source, 7)
    assert "its is_test is 0" in str(blocker)
