"""Upsample across every boundary."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

from onnxreduce_cli import convert
from tests.support import converts, converts_or_counts, one_node, op_types


def image(*shape: int) -> np.ndarray:
    """The same each time, whichever tests ran before."""
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def upsample(opset: int, x: np.ndarray, scales: list[float], **attributes: Any) -> ModelProto:
    if opset < 9:
        return one_node(
            "Upsample", opset, {"x": x}, scales=[float(scale) for scale in scales], **attributes
        )
    inputs = {"x": x, "scales": np.array(scales, np.float32)}
    return one_node("Upsample", opset, inputs, initializers=("scales",), **attributes)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", [[1, 1, 2, 3], [1, 1, 1.5, 1], [1, 1, 1.3, 2.7]])
def test_upsample_up_and_back(mode: str, scales: list[float]) -> None:
    x = image(1, 2, 4, 5)
    x[0, 0, 0, 0], x[0, 1, 2, 2] = np.inf, np.nan
    source = upsample(7, x, scales, mode=mode)
    for opset in (9, 10, 11, 13, 18, 19, 21):
        result = converts(source, opset, {"x": x})
        assert op_types(result) == (["Upsample"] if opset < 10 else ["Resize"])
        back = converts(result, 7, {"x": x})
        if opset <= 10:
            assert op_types(back) == ["Upsample"]


def test_upsample_before_7() -> None:
    x = image(1, 2, 2, 2)
    source = upsample(9, x, [1, 1, 2, 3], mode="linear")
    source = converts(source, 8, {"x": x})
    older = convert(source, 6)
    attributes = {a.name: a for a in older.graph.node[0].attribute}
    assert attributes["height_scale"].f == 2
    assert attributes["width_scale"].f == 3
    assert attributes["mode"].s == b"bilinear"
    converts(convert(older, 8), 21, {"x": x})
    (node,) = convert(older, 8).graph.node
    assert {a.name: helper.get_attribute_value(a) for a in node.attribute} == {
        "scales": [1, 1, 2, 3],
        "mode": b"linear",
    }


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_before_7_other_axes_than_height_and_width(mode: str) -> None:
    for scales, x in (([1, 2, 2, 1.5], image(1, 2, 2, 4)), ([1, 1.5, 2], image(1, 2, 3))):
        converts(upsample(8, x, scales, mode=mode), 6, {"x": x}, in_numpy=True)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_computed_scales(mode: str) -> None:
    x = image(1, 1, 2, 3)
    scales = np.array([1, 1, 2, 1.4], np.float32)
    source = one_node("Upsample", 9, {"x": x, "scales": scales}, mode=mode)
    larger = np.array([1, 1, 3.3, 1], np.float32)
    for opset in (8, 7):
        converts_or_counts(source, opset, {"x": x, "scales": scales}, {"x": x, "scales": larger})
