"""RoiAlign across its boundaries."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support import converts, one_node


def normal(*shape: int) -> np.ndarray:
    """The same each time, whichever tests ran before."""
    return np.random.default_rng(11).standard_normal(shape).astype(np.float32)


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
