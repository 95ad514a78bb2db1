"""Resize and Upsample: 7, 9, 10, 11, 13, 18 and 19.

- Upsample: 7 replaced `height_scale` and `width_scale` by `scales`, 9 made that an input, 10 put
  Resize in its place.
- Resize: 11 added `sizes` and the ways to map coordinates. Before, the mapping was not written
  down; runtimes divide by the scale (`asymmetric`) and take the element below when enlarging, the
  one above when shrinking.
- 13 made `roi` and `scales` optional and removed the mapping `tf_half_pixel_for_nn`.
- 18 added `axes`, `antialias` and `keep_aspect_ratio_policy`, 19 `half_pixel_symmetric`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from onnxreduce_cli.model.values import Dims, numpy_dtype
from onnxreduce_cli.steps.axes import normalised
from onnxreduce_cli.steps.context import Array, Blocked, Context
from onnxreduce_cli.steps.registry import down, impossible, up
from onnxreduce_cli.steps.sampling import Axis, nearest_indices, resample

#: Attributes that Resize has had since opset 11.
_SINCE_11 = (
    "coordinate_transformation_mode",
    "cubic_coeff_a",
    "exclude_outside",
    "extrapolation_value",
    "nearest_mode",
)


def _shape(context: Context, name: str) -> Dims | None:
    known = context.type(name)
    return None if known is None else known.dims


# Upsample


@up("Upsample", 7, "scales from height_scale and width_scale; mode bilinear called linear")
def scales_for_every_axis(context: Context) -> None:
    """``Upsample<height_scale=2, width_scale=3>`` becomes ``Upsample<scales=[1, 1, 2, 3]>``."""
    scales = (1.0, 1.0, context.value("height_scale"), context.value("width_scale"))
    mode = context.value("mode", "nearest")
    context.replace(keep=(), scales=scales, mode="linear" if mode == "bilinear" else mode)


@down(
    "Upsample",
    7,
    "height_scale and width_scale from scales; mode linear called bilinear",
    blocks="the input is not 4-D, or its batch or channels are resized",
)
def scales_for_height_and_width(context: Context) -> None:
    """``Upsample<scales=[1, 1, 2, 3]>`` becomes ``Upsample<height_scale=2, width_scale=3>``."""
    scales = context.value("scales")
    if len(scales) != 4 or scales[0] != 1 or scales[1] != 1:
        raise Blocked(
            f"its scales are {list(scales)}, and before opset 7 Upsample resizes height and width "
            "of 4-D tensors only",
            "choose opset 7 or later",
        )
    mode = context.value("mode", "nearest")
    context.replace(
        keep=(),
        height_scale=float(scales[2]),
        width_scale=float(scales[3]),
        mode="bilinear" if mode == "linear" else mode,
    )


@up("Upsample", 9, "scales: attribute to input")
def scales_to_input(context: Context) -> None:
    """``Upsample<scales=[1, 1, 2, 2]>(x)`` becomes ``Upsample(x, scales)``."""
    scales = context.array(np.array(context.value("scales"), np.float32), "scales")
    context.replace(inputs=[context.input(0), scales], drop=("scales",))


@down("Upsample", 9, "scales: input to attribute", blocks="they are only known at run time")
def scales_to_attribute(context: Context) -> None:
    """``Upsample(x, scales)`` becomes ``Upsample<scales=[1, 1, 2, 2]>(x)``."""
    scales = context.constant(context.input(1))
    if scales is None:
        raise Blocked(
            f"its scales {context.input(1)!r} are only known at run time, and before opset 9 they "
            "are an attribute",
            "make them a constant",
        )
    context.replace(inputs=[context.input(0)], scales=[float(scale) for scale in scales])


@up("Upsample", 10, "Resize in its place")
def upsample_to_resize(context: Context) -> None:
    """``Upsample(x, scales)`` becomes ``Resize(x, scales)``."""
    context.replace("Resize")


impossible(
    "Upsample",
    10,
    "down",
    "Upsample is deprecated from opset 10 on: no valid model from there has one to bring down",
)


@down(
    "Resize",
    10,
    "Upsample in its place, or Gather where it shrinks",
    blocks="the scales are only known at run time, or it shrinks an axis of unknown length",
)
def resize_to_upsample(context: Context) -> None:
    """``Resize(x, scales)`` with scales of at least 1 becomes ``Upsample(x, scales)``."""
    scales = context.constant(context.input(1))
    if scales is None:
        raise Blocked(
            f"its scales {context.input(1)!r} are only known at run time, and Upsample, which was "
            "there before opset 10, cannot shrink",
            "make them a constant",
        )
    if np.all(scales >= 1):
        context.replace("Upsample")
        return
    dims = _shape(context, context.input(0))
    axes = []
    for index, scale in enumerate(scales.astype(np.float32)):
        if scale != 1:
            length = _length(context, dims, index)
            nearest = "floor" if scale > 1 else "ceil"
            resized = int(np.float32(length) * scale)
            axes.append(Axis(index, length, resized, scale, "asymmetric", nearest))
    resample(context, context.value("mode", "nearest"), axes)


def _length(context: Context, dims: Dims | None, index: int) -> int:
    length = None if dims is None else dims[index]
    if not isinstance(length, int):
        raise _unknown_length(context, index)
    return length


def _unknown_length(context: Context, index: int) -> Blocked:
    return Blocked(
        f"the length of axis {index} is not known, and opset {context.far} can resize it in this "
        "way only by picking elements",
        "state the input's shape in the model's value_info or inputs",
    )


# Resize 11: mappings, sizes


@up("Resize", 11, "the mapping written out: asymmetric, floor (ceil where it shrinks)")
def mapping_written_out(context: Context) -> None:
    """``Resize(x, scales)`` becomes ``Resize<coordinate_transformation_mode="asymmetric",
    nearest_mode="floor">(x, roi, scales)``.

    Nearest takes the element below where an axis is enlarged, the one above where it is shrunk:
    where both happen, or may happen, one Resize shrinks and a second enlarges.
    """
    roi = context.array(np.array([], np.float32), "roi")
    data, scales = context.input(0), context.input(1)
    asymmetric: dict[str, Any] = {"coordinate_transformation_mode": "asymmetric"}
    if context.value("mode", "nearest") != "nearest":
        context.replace(inputs=[data, roi, scales], **asymmetric)
        return
    known = context.constant(scales)
    if known is not None and np.all(known >= 1):
        context.replace(inputs=[data, roi, scales], **asymmetric, nearest_mode="floor")
        return
    if known is not None and np.all(known <= 1):
        context.replace(inputs=[data, roi, scales], **asymmetric, nearest_mode="ceil")
        return
    one = context.scalar(1.0, "one")
    shrinking = context.emit("Clip", [scales, "", one], "shrinking")
    enlarging = context.emit("Clip", [scales, one], "enlarging")
    shrunk = context.emit(
        "Resize", [data, roi, shrinking], "shrunk", **asymmetric, nearest_mode="ceil"
    )
    context.replace(inputs=[shrunk, roi, enlarging], **asymmetric, nearest_mode="floor")


@down(
    "Resize",
    11,
    "the mapping left to the default, or elements picked by Gather",
    blocks="the mapping needs lengths that are not known, or is tf_crop_and_resize",
)
def mapping_left_out(context: Context) -> None:
    """``Resize<coordinate_transformation_mode="asymmetric", nearest_mode="floor">(x, roi, scales)``
    becomes ``Resize(x, scales)``.

    Any other mapping of known lengths becomes Gather, with weights for linear and cubic.
    """
    mode = context.value("mode", "nearest")
    coordinates = context.value("coordinate_transformation_mode", "half_pixel")
    nearest = context.value("nearest_mode", "round_prefer_floor")
    if coordinates == "tf_crop_and_resize":
        raise Blocked(
            "it does tf_crop_and_resize, which came with opset 11", "choose opset 11 or later"
        )
    if coordinates == "tf_half_pixel_for_nn":
        coordinates, nearest = _half_pixel_for(mode, nearest)
    scales = context.input(2)
    given = None if context.input(3) else context.constant(scales)
    if given is None and not context.input(3):
        if mode == "linear" and coordinates == "asymmetric":
            context.replace(inputs=[context.input(0), scales], drop=_SINCE_11)
            return
        raise Blocked(
            f"its scales {scales!r} are only known at run time, and before opset 11 they decide "
            "which elements are taken",
            "make them a constant",
        )
    axes = _axes(context, given, coordinates, nearest)
    if mode != "cubic" and all(_is_default(mode, axis) for axis in axes):
        rank = context.need_rank(context.input(0), "each axis needs a scale")
        factors = np.ones(rank, np.float32)
        for axis in axes:
            factors[axis.index] = axis.scale
        name = scales if given is not None else context.array(factors, "scales")
        context.replace(inputs=[context.input(0), name], drop=_SINCE_11)
        return
    for axis in axes:
        if axis.length == _UNKNOWN:
            raise _unknown_length(context, axis.index)
    resample(context, mode, axes)


#: Stands for a length that is not known.
_UNKNOWN = -1


def _axes(context: Context, scales: Array | None, coordinates: str, nearest: str) -> list[Axis]:
    """The axes that a Resize changes, by constant scales, or by its sizes or its output's shape.

    An axis whose length is not known has `_UNKNOWN` for it.
    """
    before = _shape(context, context.input(0))
    found = []
    if scales is not None:
        for index, scale in enumerate(scales.astype(np.float32)):
            if scale != 1:
                length = before[index] if before is not None else None
                known = length if isinstance(length, int) else _UNKNOWN
                resized = int(np.float32(known) * scale)
                found.append(Axis(index, known, resized, scale, coordinates, nearest))
        return found
    after = context.elements(context.input(3)) or _shape(context, context.node.output[0])
    if before is None or after is None:
        raise Blocked(
            f"its sizes {context.input(3)!r} are only known at run time, and before opset 11 there "
            "are scales only",
            "make them a constant, or state the shapes of input and output",
        )
    kept = context.kept_dims(context.input(3), context.input(0)) or (False,) * len(before)
    for index, (length, size) in enumerate(zip(before, after, strict=True)):
        if kept[index] or (length is not None and length == size):
            continue
        if not isinstance(length, int) or not isinstance(size, int):
            raise Blocked(
                f"the size of axis {index} is only known at run time, before or after, and before "
                "opset 11 there are scales only",
                "make it a constant, or state the shapes of input and output",
            )
        scale = np.float32(size) / np.float32(length)
        found.append(Axis(index, length, size, scale, coordinates, nearest))
    return found


def _is_default(mode: str, axis: Axis) -> bool:
    """Whether Resize-10 does the same to an axis, given the scale alone."""
    default = replace(axis, coordinates="asymmetric", nearest="floor" if axis.scale > 1 else "ceil")
    if axis.length != _UNKNOWN:
        # In float and in double: which of them works the size out is up to the runtime.
        for product in (np.float32(axis.length) * axis.scale, axis.length * float(axis.scale)):
            if int(product) != axis.resized:
                return False
        if mode == "nearest":
            return bool(np.array_equal(nearest_indices(axis), nearest_indices(default)))
    if axis.coordinates == "asymmetric":
        return mode != "nearest" or axis.nearest == default.nearest
    # Each element stands for a whole number of elements around it: none is halfway.
    half_pixel = axis.coordinates in ("half_pixel", "pytorch_half_pixel")
    rounded = axis.nearest in ("round_prefer_floor", "round_prefer_ceil")
    return mode == "nearest" and half_pixel and rounded and float(axis.scale).is_integer()


# Resize 13: optional inputs


def _half_pixel_for(mode: str, nearest: str) -> tuple[str, str]:
    """The mapping and nearest mode that mean what they do with `tf_half_pixel_for_nn`.

    That maps half an element further than `half_pixel`, so what it rounds differs by that half.
    """
    modes = {"floor": "round_prefer_ceil", "round_prefer_floor": "ceil"}
    if mode != "nearest" or nearest not in modes:
        raise Blocked(
            "it has coordinate_transformation_mode='tf_half_pixel_for_nn' with "
            f"{'mode=' + repr(mode) if mode != 'nearest' else 'nearest_mode=' + repr(nearest)}, "
            "for which no other mapping stands in",
            "choose half_pixel in the exporter",
        )
    return "half_pixel", modes[nearest]


@up(
    "Resize",
    13,
    "an empty scales left out; tf_half_pixel_for_nn as half_pixel",
    blocks="tf_half_pixel_for_nn is not used with nearest_mode floor or round_prefer_floor",
)
def empty_scales_left_out(context: Context) -> None:
    """``Resize(x, roi, empty, sizes)`` becomes ``Resize(x, roi, "", sizes)``."""
    values = {}
    if context.value("coordinate_transformation_mode") == "tf_half_pixel_for_nn":
        nearest = context.value("nearest_mode", "round_prefer_floor")
        coordinates, nearest = _half_pixel_for(context.value("mode", "nearest"), nearest)
        values = {"coordinate_transformation_mode": coordinates, "nearest_mode": nearest}
    data, roi, scales, sizes = (context.input(index) for index in range(4))
    if sizes or values:
        context.replace(inputs=[data, roi, "" if sizes else scales, sizes], **values)


@down("Resize", 13, "absent roi and scales become empty tensors")
def absent_inputs_empty(context: Context) -> None:
    """``Resize(x, "", "", sizes)`` becomes ``Resize(x, empty, empty, sizes)``."""
    data, roi, scales, sizes = (context.input(index) for index in range(4))
    if roi and scales:
        return
    empty = context.array(np.array([], np.float32), "empty")
    context.replace(inputs=[data, roi or empty, scales or empty, sizes])


# Resize 18: axes, antialias, keep_aspect_ratio_policy


@down(
    "Resize",
    18,
    "axes worked into roi, scales and sizes",
    blocks="it smooths what it shrinks (antialias), or keeps an aspect ratio that is not known",
)
def all_axes(context: Context) -> None:
    """``Resize<axes=[2, 3]>(x, "", [2, 2])`` becomes ``Resize(x, "", [1, 1, 2, 2])``."""
    if all(context.attribute(name) is None for name in _SINCE_18):
        return
    _check_antialias(context)
    data, roi, scales, sizes = (context.input(index) for index in range(4))
    axes = context.value("axes")
    if axes is not None:
        rank = context.need_rank(data, "before opset 18 all axes have a scale or a size")
        axes = normalised(axes, rank)
    if sizes and context.value("keep_aspect_ratio_policy", "stretch") != "stretch":
        sizes = context.array(_sizes_in_ratio(context, axes), "sizes")
    if axes is not None:
        if context.value("coordinate_transformation_mode") == "tf_crop_and_resize" and roi:
            elem_type = context.need_elem_type(roi, "it gets values for all axes")
            whole = np.repeat(np.array([0, 1], numpy_dtype(elem_type)), rank)
            ends = [axis + rank for axis in axes]
            roi = _spread(context, whole, [*axes, *ends], roi, "roi")
        else:
            roi = ""
        scales = scales and _spread(context, np.ones(rank, np.float32), axes, scales, "scales")
        lengths = _lengths_of_others(_shape(context, data), axes)
        sizes = sizes and _spread(context, lengths, axes, sizes, "sizes")
    context.replace(inputs=[data, roi, scales, sizes], drop=_SINCE_18)


_SINCE_18 = ("antialias", "axes", "keep_aspect_ratio_policy")


def _check_antialias(context: Context) -> None:
    """Raise `Blocked` unless the filter has no effect: nothing is shrunk, or nothing weighted."""
    if not context.value("antialias", 0) or context.value("mode", "nearest") == "nearest":
        return
    scales = context.constant(context.input(2)) if context.input(2) else None
    if scales is not None and np.all(scales >= 1):
        return
    before = _shape(context, context.input(0)) or ()
    after = _shape(context, context.node.output[0]) or ()
    pairs = [(a, b) for a, b in zip(before, after, strict=True) if a is None or a != b]
    if before and all(isinstance(a, int) and isinstance(b, int) and a <= b for a, b in pairs):
        return
    raise Blocked(
        "it shrinks with antialias=1, or may do so, which came with opset 18",
        "choose opset 18 or later",
    )


def _spread(
    context: Context, rest: Array | None, indices: Sequence[int], values: str, hint: str
) -> str:
    """The vector `rest`, or the input's shape, with `values` at `indices`."""
    known = context.constant(values)
    if rest is not None and known is not None:
        spread = rest.copy()
        spread[list(indices)] = known
        return context.array(spread, hint)
    places = context.array(list(indices), "axes")
    if rest is None:
        whole = context.emit("Shape", [context.input(0)], "shape")
    else:
        whole = context.array(rest, "rest")
    return context.emit("ScatterElements", [whole, places, values], hint)


def _lengths_of_others(dims: Dims | None, axes: Sequence[int]) -> Array | None:
    """The input's shape if it is known but for the axes, which are 0."""
    if dims is None:
        return None
    others = [0 if index in axes else dim for index, dim in enumerate(dims)]
    return np.array(others, np.int64) if all(isinstance(dim, int) for dim in others) else None


def _sizes_in_ratio(context: Context, axes: Sequence[int] | None) -> list[int]:
    """The sizes that keep_aspect_ratio_policy makes of those given, where all are known."""
    before = _shape(context, context.input(0))
    sizes = context.constant(context.input(3))
    policy = context.value("keep_aspect_ratio_policy")
    if before is not None and sizes is not None:
        lengths = [before[axis] for axis in (range(len(before)) if axes is None else axes)]
        known = [length for length in lengths if isinstance(length, int)]
        if len(known) == len(lengths) and 0 not in known:
            ratios = [
                Fraction(int(size), length) for size, length in zip(sizes, known, strict=True)
            ]
            ratio = min(ratios) if policy == "not_larger" else max(ratios)
            resized = [ratio * length for length in known]
            if all(size.denominator == 1 for size in resized):
                return [int(size) for size in resized]
    raise Blocked(
        f"it has keep_aspect_ratio_policy={policy!r}, which came with opset 18, and the sizes that "
        "this makes are not known to be whole",
        "write the resulting sizes out",
    )


@down(
    "Resize",
    19,
    "half_pixel_symmetric as half_pixel where the sizes are whole",
    blocks="they are not",
)
def whole_sizes(context: Context) -> None:
    """``Resize<coordinate_transformation_mode="half_pixel_symmetric">(x, "", "", sizes)`` becomes
    ``Resize<coordinate_transformation_mode="half_pixel">(x, "", "", sizes)``.

    The two differ where length times scale is not whole.
    """
    if context.value("coordinate_transformation_mode") != "half_pixel_symmetric":
        return
    if context.input(2):
        _check_whole(context)
    elif context.value("keep_aspect_ratio_policy", "stretch") != "stretch":
        axes = context.value("axes")
        if axes is not None:
            axes = normalised(axes, context.need_rank(context.input(0), "its axes are resized"))
        _sizes_in_ratio(context, axes)
    context.replace(coordinate_transformation_mode="half_pixel")


def _check_whole(context: Context) -> None:
    """Raise `Blocked` unless every length times its scale is whole."""
    dims = _shape(context, context.input(0))
    scales = context.constant(context.input(2))
    if scales is not None:
        axes = context.value("axes", range(len(scales)))
        lengths = [1 if dims is None else dims[axis] for axis in axes]
        products = [
            float(scale) * (length if isinstance(length, int) else 1)
            for length, scale in zip(lengths, scales, strict=True)
        ]
        if all(product.is_integer() for product in products):
            return
    raise Blocked(
        "it has coordinate_transformation_mode='half_pixel_symmetric', which came with opset 19, "
        "and its sizes are not known to be whole multiples of the scales",
        "give sizes in place of scales",
    )
