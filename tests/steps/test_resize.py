"""Resize and Upsample across every boundary."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

from onnxreduce_cli import convert
from tests.support import blockers, converts, model, one_node, op_types

RANDOM = np.random.default_rng(7)


def image(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def upsample(opset: int, x: np.ndarray, scales: list[float], **attributes: Any) -> ModelProto:
    if opset < 9:
        return one_node(
            "Upsample", opset, {"x": x}, scales=[float(scale) for scale in scales], **attributes
        )
    inputs = {"x": x, "scales": np.array(scales, np.float32)}
    return one_node("Upsample", opset, inputs, initializers=("scales",), **attributes)


def resize(
    opset: int,
    x: np.ndarray,
    *,
    scales: list[float] | None = None,
    sizes: list[int] | None = None,
    shapes: Any = None,
    **attributes: Any,
) -> ModelProto:
    """A Resize with constant scales or sizes, at opset 11 or later."""
    empty = np.array([], np.float32) if opset < 13 else None
    inputs: dict[str, np.ndarray | None] = {"x": x, "roi": empty, "scales": empty}
    if scales is not None:
        inputs["scales"] = np.array(scales, np.float32)
    if sizes is not None:
        inputs["sizes"] = np.array(sizes, np.int64)
    constants = ("roi", "scales", "sizes")
    return one_node("Resize", opset, inputs, initializers=constants, shapes=shapes, **attributes)


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


def test_upsample_before_7_resizes_height_and_width_only() -> None:
    (blocker,) = blockers(upsample(8, image(1, 2, 2, 2), [1, 2, 2, 2]), 6)
    assert "height and width" in blocker.reason


def test_upsample_with_computed_scales() -> None:
    x = image(1, 1, 2, 2)
    scales = np.array([1, 1, 2, 2], np.float32)
    source = one_node("Upsample", 9, {"x": x, "scales": scales})
    (blocker,) = blockers(source, 8)
    assert "only known at run time" in blocker.reason


TEN = """<ir_version: 6, opset_import: ["": 10]>
g (float[1, 2, 5, 7] x, float[4] scales) => (float[1, 2, h, w] y) {{
  y = Resize<mode = "{mode}">(x, scales)
}}"""


@pytest.mark.parametrize("scales", [[1, 1, 2, 2], [1, 1, 0.6, 0.5], [1, 1, 0.4, 1.7]])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("constant", [True, False])
def test_ten_to_eleven(mode: str, scales: list[float], constant: bool) -> None:
    x, values = image(1, 2, 5, 7), np.array(scales, np.float32)
    source = model(TEN.format(mode=mode))
    if constant:
        source = one_node(
            "Resize", 10, {"x": x, "scales": values}, initializers=("scales",), mode=mode
        )
    converts(source, 11, {"x": x, "scales": values})
    result = converts(source, 13, {"x": x, "scales": values})
    mixed = mode == "nearest" and (not constant or scales[2:] == [0.4, 1.7])
    assert op_types(result).count("Resize") == 1 + mixed
    if constant:
        converts(source, 9, {"x": x})
        converts(source, 7, {"x": x})


def test_below_ten_scales_must_be_known() -> None:
    (blocker,) = blockers(model(TEN.format(mode="linear")), 9)
    assert "cannot shrink" in blocker.reason


MAPPINGS = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
NEAREST = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]


@pytest.mark.parametrize("coordinates", MAPPINGS)
@pytest.mark.parametrize("nearest", NEAREST)
@pytest.mark.parametrize(
    "size", [{"scales": [1, 1, 2, 3]}, {"scales": [1, 1, 0.4, 1.7]}, {"sizes": [1, 2, 9, 3]}]
)
def test_nearest_down(coordinates: str, nearest: str, size: dict[str, Any]) -> None:
    x = image(1, 2, 5, 7)
    x[0, 0, 0, 0], x[0, 1, 2, 2] = np.inf, np.nan
    source = resize(11, x, coordinate_transformation_mode=coordinates, nearest_mode=nearest, **size)
    for opset in (10, 9, 7):
        converts(source, opset, {"x": x}, exact=True)
    for opset in (13, 18, 19):
        newer = converts(source, opset, {"x": x}, exact=True)
        converts(newer, 11, {"x": x}, exact=True)


@pytest.mark.parametrize("coordinates", MAPPINGS)
@pytest.mark.parametrize(
    "size",
    [
        {"scales": [1, 1, 2, 3]},
        {"scales": [1, 1, 0.4, 1.7]},
        {"sizes": [1, 2, 9, 3]},
        {"sizes": [1, 2, 1, 7]},
    ],
)
def test_linear_down(coordinates: str, size: dict[str, Any]) -> None:
    x = image(1, 2, 5, 7)
    source = resize(18, x, mode="linear", coordinate_transformation_mode=coordinates, **size)
    for opset in (17, 13, 11, 10, 9, 7):
        converts(source, opset, {"x": x})


@pytest.mark.parametrize(
    "coordinates", ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
)
@pytest.mark.parametrize("exclude", [0, 1])
@pytest.mark.parametrize("coefficient", [-0.75, -0.5])
@pytest.mark.parametrize(
    "size",
    [{"scales": [1, 1, 2, 1.5]}, {"scales": [1, 1, 0.6, 1]}, {"sizes": [1, 2, 12, 4]}],
)
def test_cubic_down(
    size: dict[str, Any], coefficient: float, exclude: int, coordinates: str
) -> None:
    x = image(1, 2, 6, 7)
    source = resize(
        13,
        x,
        mode="cubic",
        coordinate_transformation_mode=coordinates,
        cubic_coeff_a=coefficient,
        exclude_outside=exclude,
        **size,
    )
    for opset in (10, 9, 7):
        converts(source, opset, {"x": x}, check=True)


def test_whole_scales_stay_a_resize_whatever_the_lengths() -> None:
    x = image(2, 3, 4, 5)
    for coordinates in ("half_pixel", "asymmetric"):
        nearest = "floor" if coordinates == "asymmetric" else "round_prefer_floor"
        source = resize(
            13,
            x,
            scales=[1, 1, 2, 3],
            shapes={"x": ["n", "c", "h", "w"]},
            coordinate_transformation_mode=coordinates,
            nearest_mode=nearest,
        )
        assert op_types(converts(source, 10, {"x": x})) == ["Resize"]
        assert op_types(converts(source, 7, {"x": x})) == ["Upsample"]


def test_dynamic_batch_with_sizes() -> None:
    x = image(2, 3, 4, 5)
    source = model(
        """<ir_version: 7, opset_import: ["": 13]>
        g (float[n, 3, 4, 5] x) => (float[n, 3, 8, 9] y)
        <int64[2] hw = {8, 9}, int64[1] start = {0}, int64[1] end = {2}> {
          shape = Shape(x)
          front = Slice(shape, start, end)
          sizes = Concat<axis = 0>(front, hw)
          y = Resize<mode = "linear", coordinate_transformation_mode = "half_pixel">
            (x, "", "", sizes)
        }"""
    )
    for opset in (11, 9, 7):
        converts(source, opset, {"x": x})


def test_sizes_from_the_shape_of_an_input_of_unknown_batch() -> None:
    """As TorchScript writes it: whatever the batch is, it is the same before and after."""
    x = image(2, 3, 4, 5)
    source = model(
        """<ir_version: 7, opset_import: ["": 11]>
        g (float[n, 3, 4, 5] x, float[m, 3, 4, 5] z) => (float[b, c, h, w] y)
        <int64[2] hw = {8, 9}, int64[1] start = {0}, int64[1] end = {2}, float[0] none = {}> {
          both = Concat<axis = 0>(x, z)
          shape = Shape(both)
          front = Slice(shape, start, end)
          sizes = Concat<axis = 0>(front, hw)
          y = Resize<mode = "linear">(both, none, none, sizes)
        }"""
    )
    for opset in (10, 7):
        converts(source, opset, {"x": x, "z": x[:1]})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": "cubic", "scales": [1, 1, 2, 2], "shapes": {"x": [1, 1, "h", "w"]}}, "length"),
        ({"mode": "linear", "scales": [1, 1, 2, 2], "shapes": {"x": [1, 1, "h", "w"]}}, "length"),
        (
            {"sizes": [1, 1, 8, 8], "shapes": {"x": [1, 1, "h", "w"]}},
            "only known at run time",
        ),
    ],
)
def test_mappings_that_ten_cannot_express(options: dict[str, Any], words: str) -> None:
    (blocker,) = blockers(resize(11, image(1, 1, 4, 4), **options), 10)
    assert words in blocker.reason


def test_integers_are_not_weighted() -> None:
    x = np.arange(16, dtype=np.uint8).reshape(1, 1, 4, 4)
    (blocker,) = blockers(resize(13, x, mode="linear", scales=[1, 1, 2, 2]), 10)
    assert "dtype" in blocker.reason


@pytest.mark.parametrize("nearest", ["floor", "round_prefer_floor"])
def test_tf_half_pixel_for_nn(nearest: str) -> None:
    x = image(1, 1, 6, 5)
    for size in ({"scales": [1, 1, 2, 0.7]}, {"sizes": [1, 1, 10, 3]}):
        source = resize(
            11,
            x,
            coordinate_transformation_mode="tf_half_pixel_for_nn",
            nearest_mode=nearest,
            **size,
        )
        converts(source, 13, {"x": x}, exact=True)
        converts(source, 10, {"x": x}, exact=True)
        converts(source, 7, {"x": x}, exact=True)


@pytest.mark.parametrize("options", [{"mode": "linear"}, {"nearest_mode": "ceil"}])
def test_tf_half_pixel_for_nn_without_counterpart(options: dict[str, str]) -> None:
    source = resize(
        11,
        image(1, 1, 4, 4),
        scales=[1, 1, 2, 2],
        coordinate_transformation_mode="tf_half_pixel_for_nn",
        **options,
    )
    for opset in (10, 13):
        (blocker,) = blockers(source, opset)
        assert "tf_half_pixel_for_nn" in blocker.reason


def test_crop_keeps_its_roi_and_blocks_below_eleven() -> None:
    x = image(1, 1, 6, 6)
    roi = np.array([0, 0, 0.1, 0.2, 1, 1, 0.8, 1.2], np.float32)
    inputs = {"x": x, "roi": roi, "scales": None, "sizes": np.array([1, 1, 4, 5])}
    source = one_node(
        "Resize",
        13,
        inputs,
        initializers=("sizes",),
        mode="linear",
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=7.0,
    )
    feeds = {"x": x, "roi": roi}
    converts(converts(source, 11, feeds), 19, feeds)
    (blocker,) = blockers(source, 10)
    assert "tf_crop_and_resize" in blocker.reason


@pytest.mark.newest
def test_axes_are_worked_in() -> None:
    x = image(2, 3, 4, 5)
    for size in ({"scales": [2.0, 1.5]}, {"sizes": [9, 3]}):
        for shape in ([2, 3, 4, 5], ["n", 3, "h", "w"]):
            source = resize(18, x, axes=[-1, 2], shapes={"x": shape}, mode="linear", **size)
            converts(source, 17, {"x": x})
            converts(source, 11, {"x": x})


def test_axes_with_computed_scales() -> None:
    x, scales = image(2, 3, 4, 5), np.array([2.0, 1.5], np.float32)
    inputs = {"x": x, "roi": None, "scales": scales}
    source = one_node(
        "Resize", 18, inputs, axes=[2, 3], mode="linear", output_shapes=[[2, 3, "h", "w"]]
    )
    converts(source, 13, {"x": x, "scales": scales}, {"x": x, "scales": scales / 4})


def test_axes_with_a_roi() -> None:
    x = image(1, 1, 6, 6)
    roi = np.array([0.1, 0.2, 0.8, 1.2], np.float32)
    inputs = {"x": x, "roi": roi, "scales": None, "sizes": np.array([4, 5])}
    for initializers in (("sizes",), ("sizes", "roi")):
        source = one_node(
            "Resize",
            18,
            inputs,
            initializers=initializers,
            axes=[2, 3],
            mode="linear",
            coordinate_transformation_mode="tf_crop_and_resize",
        )
        converts(source, 13, {"x": x, "roi": roi})


def test_antialias_matters_only_where_it_shrinks() -> None:
    x = image(1, 1, 6, 6)
    for size in ({"scales": [1, 1, 2, 2]}, {"sizes": [1, 1, 9, 6]}):
        converts(resize(18, x, mode="linear", antialias=1, **size), 17, {"x": x})
    for size in ({"scales": [1, 1, 0.5, 2]}, {"sizes": [1, 1, 3, 6]}):
        (blocker,) = blockers(resize(18, x, mode="linear", antialias=1, **size), 17)
        assert "antialias" in blocker.reason


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_aspect_ratio(policy: str) -> None:
    x = image(1, 1, 4, 6)
    source = resize(
        18, x, sizes=[8, 9], axes=[2, 3], keep_aspect_ratio_policy=policy, mode="linear"
    )
    converts(source, 17, {"x": x})
    uneven = resize(18, x, sizes=[7, 5], axes=[2, 3], keep_aspect_ratio_policy=policy)
    (blocker,) = blockers(uneven, 17)
    assert policy in blocker.reason


def test_half_pixel_symmetric() -> None:
    x = image(1, 1, 4, 6)
    symmetric = {"mode": "linear", "coordinate_transformation_mode": "half_pixel_symmetric"}
    for size in ({"sizes": [1, 1, 7, 3]}, {"scales": [1, 1, 1.5, 0.5]}):
        converts(resize(19, x, **size, **symmetric), 18, {"x": x})
    (blocker,) = blockers(resize(19, x, scales=[1, 1, 1.3, 1], **symmetric), 18)
    assert "half_pixel_symmetric" in blocker.reason
