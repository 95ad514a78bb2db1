"""RoiAlign across its boundaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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


BOXES = np.array(
    [
        [0, 0, 4, 4],
        [1.5, 2.5, 6, 5],
        [2, 2, 2.2, 2.2],
        [-3, -2, 3, 20],
        [5, 5, 2, 1],
        [0, 0, 0, 0],
        [30, 30, 40, 40],
        [3, 1, 3, 9],
    ],
    np.float32,
)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 1, 3])
@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
def test_regions_of_every_kind(mode: str, ratio: int, coordinates: str) -> None:
    feeds = {"x": normal(2, 3, 7, 9), "rois": BOXES, "batch": np.arange(8) % 2}
    options: dict[str, Any] = {"mode": mode, "sampling_ratio": ratio, "spatial_scale": 0.7}
    options |= {"output_height": 2, "output_width": 3}
    options |= {"coordinate_transformation_mode": coordinates}
    source = one_node("RoiAlign", 16, feeds, **options)
    for opset in (15, 9, 7):
        converts(source, opset, feeds)
    shapes = {"x": ["n", "c", "h", "w"], "rois": ["r", 4], "batch": ["r"]}
    source = one_node("RoiAlign", 16, feeds, shapes=shapes, **options)
    for opset in (15, 7):
        converts(source, opset, feeds, {"x": normal(1, 1, 4, 3), "rois": BOXES[:1], "batch": [0]})


def test_no_regions() -> None:
    feeds = {"x": normal(2, 3, 7, 9), "rois": BOXES[:0], "batch": np.arange(0)}
    for dims in ([2, 3, 7, 9], ["n", 3, "h", "w"]):
        shapes = {"x": dims, "rois": ["r", 4], "batch": ["r"]}
        source = one_node("RoiAlign", 16, feeds, shapes=shapes, output_height=2)
        for opset in (15, 9):
            converts(source, opset, feeds)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_dtypes(dtype: type) -> None:
    feeds = {"x": normal(2, 1, 7, 9).astype(dtype), "rois": BOXES[:3].astype(dtype)}
    feeds["batch"] = np.arange(3) % 2
    converts(one_node("RoiAlign", 16, feeds, sampling_ratio=2), 15, feeds, in_numpy=True)


def test_infinities_beside_a_region() -> None:
    feeds = rois()
    feeds["x"][:, :, 7, 7] = np.inf
    feeds["x"][:, :, 0, 7] = np.nan
    converts(one_node("RoiAlign", 16, feeds, output_height=2), 15, feeds)
