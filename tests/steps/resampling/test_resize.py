"""Resize across every boundary."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import onnxreduce_cli
from tests.support import blockers, converts, converts_or_counts, model, one_node, op_types

pytestmark = pytest.mark.usefixtures("any_size")


def image(*shape: int) -> np.ndarray:
    """The same each time, whichever tests ran before."""
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


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


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_below_ten_with_computed_scales(mode: str) -> None:
    source = model(TEN.format(mode=mode))
    x = image(1, 2, 5, 7)
    feeds = [
        {"x": x, "scales": np.array(scales, np.float32)}
        for scales in ([1, 1, 2, 2], [1, 1, 0.6, 0.5], [1, 1, 0.4, 1.7])
    ]
    for opset in (9, 8, 7):
        converts_or_counts(source, opset, *feeds)


def test_computed_scales_of_some_axes() -> None:
    """What is known to keep its size is left alone."""
    source = model(
        """<ir_version: 7, opset_import: ["": 10]>
        g (float[n, c, 5, 7] x, float[2] hw) => (float[n, c, h, w] y)
        <float[2] one = {1, 1}> {
          scales = Concat<axis = 0>(one, hw)
          y = Resize(x, scales)
        }"""
    )
    x = image(1, 2, 5, 7)
    result = converts(source, 9, {"x": x, "hw": np.array([1.5, 0.4], np.float32)})
    assert op_types(result).count("NonZero") == 2


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


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", MAPPINGS)
@pytest.mark.parametrize("size", [{"scales": [1, 1, 0.7, 2]}, {"sizes": [1, 2, 8, 3]}])
def test_mappings_of_unknown_lengths(mode: str, coordinates: str, size: dict[str, Any]) -> None:
    source = resize(
        11,
        image(1, 2, 4, 4),
        shapes={"x": [1, 2, "h", "w"]},
        mode=mode,
        coordinate_transformation_mode=coordinates,
        **size,
    )
    for opset in (10, 7):
        converts_or_counts(source, opset, {"x": image(1, 2, 4, 5)}, {"x": image(1, 2, 10, 3)})


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("nearest", NEAREST)
def test_sizes_only_known_at_run_time(mode: str, nearest: str) -> None:
    x, sizes = image(1, 1, 4, 5), np.array([1, 1, 7, 3])
    inputs = {"x": x, "roi": None, "scales": None, "sizes": sizes}
    attributes = {"mode": mode, "nearest_mode": nearest}
    source = one_node("Resize", 13, inputs, output_shapes=[[1, 1, "h", "w"]], **attributes)
    feeds = {"x": x, "sizes": sizes}, {"x": x, "sizes": np.array([1, 1, 1, 9])}
    for opset in (10, 8):
        converts_or_counts(source, opset, *feeds)


def test_rank_from_the_number_of_scales() -> None:
    source = model(
        """<ir_version: 7, opset_import: ["": 13]>
        g (float[n] x, int64[r] shape, float[4] scales) => (float[a, b, c, d] y) {
          shaped = Reshape(x, shape)
          y = Resize<mode = "linear">(shaped, "", scales)
        }"""
    )
    feeds = {"x": image(20), "shape": np.array([1, 1, 4, 5])}
    converts_or_counts(source, 10, {**feeds, "scales": np.array([1, 1, 1.7, 0.6], np.float32)})


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("shape", [[1, 1, 1, 6], [1, 1, 1, "w"]])
def test_an_infinity_counts_where_it_has_a_weight(mode: str, shape: list[Any]) -> None:
    for place, coordinates in ((5, "half_pixel"), (2, "asymmetric"), (3, "align_corners")):
        x = image(1, 1, 1, 6)
        x[..., place] = np.inf
        source = resize(
            13,
            x,
            sizes=[1, 1, 1, 11],
            shapes={"x": shape},
            mode=mode,
            coordinate_transformation_mode=coordinates,
        )
        converts(source, 10, {"x": x}, in_numpy=True)


def test_halves_are_weighted_in_float() -> None:
    x = image(1, 1, 4, 5).astype(np.float16)
    source = resize(13, x, mode="linear", scales=[1, 1, 1.5, 2])
    converts(source, 10, {"x": x}, in_numpy=True)


def test_integers_are_not_weighted() -> None:
    x = np.arange(16, dtype=np.uint8).reshape(1, 1, 4, 4)
    (blocker,) = blockers(resize(13, x, mode="linear", scales=[1, 1, 2, 2]), 10)
    assert "rounded" in blocker.reason


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
@pytest.mark.parametrize("shape", [[1, 1, 4, 5], [1, 1, "h", "w"]])
def test_tf_half_pixel_for_nn_without_counterpart(
    options: dict[str, str], shape: list[Any]
) -> None:
    x = image(1, 1, 4, 5)
    source = resize(
        11,
        x,
        scales=[1, 1, 2, 1.7],
        shapes={"x": shape},
        coordinate_transformation_mode="tf_half_pixel_for_nn",
        **options,
    )
    for opset in (13, 10, 7):
        converts_or_counts(source, opset, {"x": x})


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("constants", [("sizes",), ("sizes", "roi")])
def test_crop(mode: str, constants: tuple[str, ...]) -> None:
    x = image(1, 1, 6, 6)
    roi = np.array([0, 0, 0.1, 0.23, 1, 1, 0.8, 1.2], np.float32)
    inputs = {"x": x, "roi": roi, "scales": None, "sizes": np.array([1, 1, 4, 5])}
    source = one_node(
        "Resize",
        13,
        inputs,
        initializers=constants,
        mode=mode,
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=7.0,
    )
    feeds = {"x": x, "roi": roi}
    converts_or_counts(converts_or_counts(source, 11, feeds), 19, feeds)
    for opset in (10, 9, 7):
        converts_or_counts(source, opset, feeds)


def test_the_check_of_a_region_only_known_at_run_time() -> None:
    """It draws regions that begin before they end."""
    x = image(1, 1, 6, 6)
    inputs = {
        "x": x,
        "roi": np.array([0, 0, 0.1, 0.2, 1, 1, 0.8, 1], np.float32),
        "scales": np.array([1, 1, 2, 1.5], np.float32),
    }
    source = one_node(
        "Resize",
        13,
        inputs,
        output_shapes=[[1, 1, None, None]],
        mode="linear",
        coordinate_transformation_mode="tf_crop_and_resize",
    )
    converts_or_counts(source, 10, inputs, check=True, in_numpy=True)


@pytest.mark.parametrize("numbers", [None, 0, 2, 4])
def test_a_region_that_is_not_given(numbers: int | None) -> None:
    x = image(1, 1, 6, 6)
    roi = None if numbers is None else np.zeros(numbers, np.float32)
    inputs = {"x": x, "roi": roi, "scales": np.array([1, 1, 2, 2], np.float32)}
    source = one_node(
        "Resize",
        13,
        inputs,
        initializers=("roi", "scales"),
        coordinate_transformation_mode="tf_crop_and_resize",
    )
    (blocker,) = blockers(source, 10)
    assert f"its input roi has {numbers or 0} numbers, not 8" in blocker.reason
    assert blocker.advice.startswith("mend the model: give it roi, the starts of all axes")


@pytest.mark.newest
def test_axes_are_worked_in() -> None:
    x = image(2, 3, 4, 5)
    for size in ({"scales": [2.0, 1.5]}, {"sizes": [9, 3]}):
        for shape in ([2, 3, 4, 5], ["n", 3, "h", "w"]):
            source = resize(18, x, axes=[-1, 2], shapes={"x": shape}, mode="linear", **size)
            converts(source, 17, {"x": x})
            converts(source, 11, {"x": x})


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("axes", [[3, 2], [2, 0, 3], [-1, 1, -2]])
@pytest.mark.parametrize("antialias", [0, 1])
def test_axes_in_any_order_are_computed_equally(mode: str, axes: list[int], antialias: int) -> None:
    x = image(2, 3, 4, 5).astype(np.float64)
    sizes = [7, 3, 9][: len(axes)]
    source = resize(18, x, axes=axes, sizes=sizes, mode=mode, antialias=antialias)
    # Antialiasing is written out, which sums in another order.
    converts(source, 17, {"x": x}, check=True, in_numpy=True, exact=not antialias)


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


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("shape", [[1, 1, 6, 9], [1, 1, "h", "w"]])
@pytest.mark.parametrize(
    "size",
    [
        {"scales": [1, 1, 2, 2]},
        {"sizes": [1, 1, 9, 9]},
        {"scales": [1, 1, 0.5, 2]},
        {"sizes": [1, 1, 2, 4]},
        {"scales": [1, 1, 1, 0.3]},
    ],
)
def test_antialias(mode: str, shape: list[Any], size: dict[str, Any]) -> None:
    x = image(1, 1, 6, 9)
    for exclude in (0, 1) if mode == "cubic" else (0,):
        source = resize(
            18, x, shapes={"x": shape}, mode=mode, antialias=1, exclude_outside=exclude, **size
        )
        for opset in (17, 10, 7):
            converts_or_counts(source, opset, {"x": x})


def test_antialias_that_enlarges_is_dropped() -> None:
    x = image(1, 1, 6, 6)
    for size in ({"scales": [1, 1, 2, 2]}, {"sizes": [1, 1, 9, 6]}):
        result = converts(resize(18, x, mode="linear", antialias=1, **size), 17, {"x": x})
        assert op_types(result) == ["Resize"]


@pytest.mark.parametrize("rank", ["4", "n"])
@pytest.mark.parametrize("stated", ["1,1,h,w", "1,1,3,3"])
def test_antialias_where_a_rank_is_not_known(rank: str, stated: str) -> None:
    source = model(f"""<ir_version: 8, opset_import: ["" : 18]>
    g (float[1,1,6,6] given, int64[{rank}] shape, float[4] s) => (float[{stated}] y)
    {{ x = Reshape(given, shape) y = Resize<mode = "linear", antialias = 1>(x, "", s) }}""")
    scales = np.array([1, 1, 0.5, 0.5], np.float32)
    feeds = {"given": image(1, 1, 6, 6), "shape": np.array([1, 1, 6, 6]), "s": scales}
    converts_or_counts(source, 17, feeds)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("sizes", [[8, 9], [7, 5], [5, 8]])
def test_aspect_ratio(policy: str, sizes: list[int]) -> None:
    x = image(1, 1, 4, 6)
    options = {"axes": [2, 3], "keep_aspect_ratio_policy": policy, "mode": "linear"}
    source = resize(18, x, sizes=sizes, **options)
    for opset in (17, 10):
        converts_or_counts(source, opset, {"x": x})
    inputs = {"x": x, "roi": None, "scales": None, "sizes": np.array(sizes)}
    shapes = {"x": [1, 1, "h", "w"]}
    output = [[1, 1, None, None]]
    source = one_node("Resize", 19, inputs, shapes=shapes, output_shapes=output, **options)
    feeds = [{"x": image(1, 1, *hw), "sizes": np.array(sizes)} for hw in ([4, 6], [5, 3])]
    for opset in (17, 10, 8):
        converts_or_counts(source, opset, *feeds)


def test_an_aspect_ratio_that_scales_give_stays_a_resize() -> None:
    x = image(1, 1, 4, 6)
    options = {"axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"}
    result = converts(resize(18, x, sizes=[3, 5], **options), 17, {"x": x})
    assert op_types(result) == ["Gather", "Gather"]
    result = converts(resize(18, x, sizes=[7, 9], **options), 17, {"x": x})
    assert op_types(result) == ["Resize"]


@pytest.mark.newest
@pytest.mark.parametrize("shape", [[1, 1, 4, 6], [1, 1, "h", "w"]])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_half_pixel_symmetric(mode: str, shape: list[Any]) -> None:
    x = image(1, 1, 4, 6) / 4
    symmetric = {"mode": mode, "coordinate_transformation_mode": "half_pixel_symmetric"}
    shapes = {"x": shape}
    for size in ({"sizes": [1, 1, 7, 3]}, {"scales": [1, 1, 2, 3]}):
        result = converts_or_counts(resize(19, x, shapes=shapes, **size, **symmetric), 18, {"x": x})
        assert op_types(result) == ["Resize"]
    for opset in (18, 10):
        source = resize(19, x, shapes=shapes, scales=[1, 1, 1.3, 0.7], **symmetric)
        converts_or_counts(source, opset, {"x": x})
        ratio = {"axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"}
        source = resize(19, x, shapes=shapes, sizes=[7, 5], **ratio, **symmetric)
        converts_or_counts(source, opset, {"x": x})


@pytest.mark.parametrize("shape", [[1, 2, 4, 3], ["n", 2, "h", "w"]])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize(
    "coordinates", ["half_pixel", "half_pixel_symmetric", "align_corners", "asymmetric"]
)
def test_doubles_have_coordinates_of_double(mode: str, coordinates: str, shape: list[Any]) -> None:
    x = np.random.default_rng(0).standard_normal((1, 2, 4, 3))
    inputs = {"x": x, "roi": None, "scales": None, "sizes": np.array([1, 2, 7, 5])}
    by_scales = {"x": x, "roi": None, "scales": np.array([1, 1, 1.7, 0.6], np.float32)}
    for given in (inputs, by_scales):
        if given is by_scales and coordinates == "align_corners":
            continue
        source = one_node(
            "Resize",
            19,
            given,
            initializers=("sizes", "scales"),
            shapes={"x": shape},
            output_shapes=[[None] * 4],
            mode=mode,
            coordinate_transformation_mode=coordinates,
        )
        for target in (18, 10, 8):
            converts_or_counts(source, target, {"x": x})


def test_a_stated_rank_that_is_not_the_datas_is_not_read() -> None:
    source = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 19]>
        g (float[1,1,2,2] x, int64[4] sizes) => (float[1,1] y) { y = Resize(x, , , sizes) }"""
    )
    assert onnxreduce_cli.plan(source, 1).blockers


@pytest.mark.parametrize("name", ["mode", "coordinate_transformation_mode", "nearest_mode"])
def test_a_mode_that_does_not_exist(name: str) -> None:
    source = resize(19, np.zeros((1, 1, 3, 3), np.float32), scales=[1, 1, 2, 2], **{name: ""})
    (blocker,) = blockers(source, 7)
    assert blocker.reason == f"its {name}='' does not exist"
