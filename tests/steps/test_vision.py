"""RoiAlign and ConvTranspose across their boundaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onnxreduce_cli
from tests.support import blockers, converts, one_node

RANDOM = np.random.default_rng(11)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def rois() -> dict[str, np.ndarray]:
    boxes = np.array([[0, 0, 4, 4], [1.5, 2.5, 6, 5], [2, 2, 2.2, 2.2]], np.float32)
    return {"x": normal(2, 3, 8, 8), "rois": boxes, "batch": np.array([0, 1, 1])}


def roi_align(opset: int, **more: Any) -> Any:
    return one_node("RoiAlign", opset, rois(), output_height=2, output_width=3, **more)


def test_roi_align() -> None:
    for options in ({}, {"sampling_ratio": 2, "spatial_scale": 0.5}, {"mode": "max"}):
        source = roi_align(10, **options)
        newer = converts(source, 16, rois())
        converts(source, 21, rois())
        converts(newer, 15, rois())


@pytest.mark.parametrize("given", [{}, {"coordinate_transformation_mode": "half_pixel"}])
def test_roi_align_with_half_pixel(given: dict[str, str]) -> None:
    (blocker,) = blockers(roi_align(16, **given), 15)
    assert "half_pixel" in blocker.reason


@pytest.mark.parametrize(
    ("options", "remark"),
    [
        ({"pads": [0, 1, 1, 0]}, False),
        ({"output_shape": [10, 10]}, True),
        ({"output_shape": [11, 11]}, False),
        ({"auto_pad": "SAME_UPPER"}, True),
        ({"auto_pad": "SAME_LOWER"}, True),
        ({"auto_pad": "SAME_LOWER", "strides": [1, 1]}, False),
    ],
)
def test_conv_transpose(options: dict[str, Any], remark: bool) -> None:
    feeds = {"x": normal(1, 2, 5, 5), "w": normal(2, 3, 3, 3)}
    options = {"strides": [2, 2], **options}
    for here, there in ((10, 11), (11, 10), (22, 9)):
        source = one_node("ConvTranspose", here, feeds, initializers=("w",), **options)
        converts(source, there, feeds, exact=True)
        warnings = [
            text for item in onnxreduce_cli.plan(source, there).changes for text in item.warnings
        ]
        assert any("odd" in text for text in warnings) == remark


def test_conv_transpose_of_unknown_size() -> None:
    feeds = {"x": normal(1, 2, 5, 5), "w": normal(2, 3, 3, 3)}
    source = one_node(
        "ConvTranspose", 11, feeds, shapes={"x": [1, 2, "h", "w"]}, auto_pad="SAME_UPPER"
    )
    converts(source, 10, feeds, exact=True)
    assert onnxreduce_cli.plan(source, 10).changes[0].warnings
