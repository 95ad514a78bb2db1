"""Resize: 10, 11, 13, 18 and 19.

- 10 introduced it: it also shrinks, which Upsample did not.
- 11 added `sizes` and the ways to map coordinates. Before, the mapping was not written
  down; runtimes divide by the scale (`asymmetric`) and take the element below when enlarging, the
  one above when shrinking.
- 13 made `roi` and `scales` optional and removed the mapping `tf_half_pixel_for_nn`.
- 18 added `axes`, `antialias` and `keep_aspect_ratio_policy`, 19 `half_pixel_symmetric`.

What an older opset cannot express becomes Gather, with weights for linear and cubic; see
resize_by_gather.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import Array
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT, term
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.sizes import dims_of
from onnxreduce_cli.model.graph.values import Dims, numpy_dtype
from onnxreduce_cli.steps.registry import down, up
from onnxreduce_cli.steps.resampling.resize_axes import (
    ResizedAxis,
    keeps_ratio,
    known_scales,
    method_of,
    non_empty_input,
    resize_axes,
    resize_rank,
    resized_by_scales,
    resized_by_sizes,
    round_half_up,
    sizes_in_ratio,
)
from onnxreduce_cli.steps.resampling.resize_by_gather import by_gather, in_ratio_by_gather
from onnxreduce_cli.steps.resampling.resize_mapping import AxisTerms, ResizeMethod, nearest_indices

#: Attributes that Resize has had since opset 11.
_SINCE_11 = (
    "coordinate_transformation_mode",
    "cubic_coeff_a",
    "exclude_outside",
    "extrapolation_value",
    "nearest_mode",
)

#: When what becomes Gather cannot.
_BLOCKS = f"it interpolates integers by weighted sums, or its rank is not known, or {NO_COUNTING}"


# Resize 10


@down("Resize", 10, "Upsample in its place, or Gather where it may shrink", blocks=_BLOCKS)
def resize_to_upsample(context: Context) -> None:
    """``Resize(x, scales)`` with scales of at least 1 becomes ``Upsample(x, scales)``."""
    name = context.input(1)
    rank = resize_rank(context, name)
    scales = known_scales(context, name, rank)
    if all(scale is not None and scale >= 1 for scale in scales):
        context.replace("Upsample")
        return
    method = ResizeMethod(context.value("mode", "nearest"), "asymmetric", "simple")
    by_gather(context, method, resized_by_scales(context, scales, rank), rank, name)


# Resize 11: mappings, sizes


@up("Resize", 11, "the mapping written out: asymmetric, floor (ceil where it shrinks)")
def mapping_written_out(context: Context) -> None:
    """``Resize(x, scales)`` becomes ``Resize<coordinate_transformation_mode="asymmetric",
    nearest_mode="floor">(x, roi, scales)``.

    Nearest takes the element below where an axis is enlarged, the one above where it is shrunk:
    where both happen, or may happen, one Resize shrinks and a second enlarges.
    """
    op = context.op
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
    shrinking = op.Clip(scales, "", one)
    enlarging = op.Clip(scales, one)
    shrunk = op.Resize(data, roi, shrinking, **asymmetric, nearest_mode="ceil")
    context.replace(inputs=[shrunk, roi, enlarging], **asymmetric, nearest_mode="floor")


@down("Resize", 11, "the mapping left to the default, or elements picked by Gather", blocks=_BLOCKS)
def mapping_left_out(context: Context) -> None:
    """``Resize<coordinate_transformation_mode="asymmetric", nearest_mode="floor">(x, roi, scales)``
    becomes ``Resize(x, scales)``.

    Any other mapping becomes Gather, with weights for linear and cubic.
    """
    method = _without_tf_half_pixel_for_nn(method_of(context))
    scales, sizes = non_empty_input(context, 2), non_empty_input(context, 3)
    plain = method.mode == "linear" and method.coordinates == "asymmetric"
    if plain and not sizes and context.constant(scales) is None:
        context.replace(inputs=[context.input(0), scales], drop=_SINCE_11)
        return
    rank, changes = resized_axes(context)
    factors = _default_scales(context, method, changes, rank)
    if factors is None:
        by_gather(context, method, changes, rank, sizes or scales)
        return
    name = context.array(factors, "scales") if sizes else scales
    context.replace(inputs=[context.input(0), name], drop=_SINCE_11)


def resized_axes(context: Context) -> tuple[int, list[ResizedAxis]]:
    """Return the input's rank and the axes that a Resize of opset 11 or later changes."""
    scales, sizes = non_empty_input(context, 2), non_empty_input(context, 3)
    rank = resize_rank(context, sizes or scales)
    if sizes:
        return rank, resized_by_sizes(context, sizes, rank)
    count = len(resize_axes(context, rank))
    return rank, resized_by_scales(context, known_scales(context, scales, count), rank)


def _write_by_gather(context: Context, method: ResizeMethod) -> None:
    """Replace a Resize of opset 11 or later by Gather and weights, whatever its method."""
    rank, changes = resized_axes(context)
    sizes_or_scales = non_empty_input(context, 3) or non_empty_input(context, 2)
    by_gather(context, method, changes, rank, sizes_or_scales)


def _default_scales(
    context: Context, method: ResizeMethod, changes: Sequence[ResizedAxis], rank: int
) -> Array | None:
    """Return the scales, float32 of shape [rank], by which Resize-10 does the same, or None."""
    factors = np.ones(rank, np.float32)
    for change in changes:
        if change.scale is None or not _is_default(context, method, change):
            return None
        factors[change.index] = change.scale
    return None if method.mode == "cubic" else factors


def _is_default(context: Context, method: ResizeMethod, change: ResizedAxis) -> bool:
    """Return whether Resize-10 does the same to an axis, given the scale alone."""
    scale, length, resized = change.scale, change.length, change.resized
    assert scale is not None
    nearest = "floor" if scale > 1 else "ceil"
    default = replace(method, coordinates="asymmetric", nearest=nearest)
    if length is not None and resized is not None:
        if not _scale_gives_length(length, scale, resized):
            return False
        if method.mode == "nearest" and method.coordinates != "tf_crop_and_resize":
            return resized <= LARGEST_CONSTANT and _same_elements(context, change, method, default)
    if method.coordinates == "asymmetric":
        return method.mode != "nearest" or method.nearest == default.nearest
    # Each element stands for a whole number of elements around it: none is halfway.
    half_pixel = method.coordinates in ("half_pixel", "pytorch_half_pixel")
    is_rounded = method.nearest in ("round_prefer_floor", "round_prefer_ceil")
    return method.mode == "nearest" and half_pixel and is_rounded and float(scale).is_integer()


def _scale_gives_length(length: int, scale: np.float32, resized: int) -> bool:
    """Return whether a scale gives a length in float and in double: runtimes use either."""
    products = np.float32(length) * scale, length * float(scale)
    return all(int(product) == resized for product in products)


def _same_elements(
    context: Context, change: ResizedAxis, method: ResizeMethod, other: ResizeMethod
) -> bool:
    """Return whether two methods take the same elements of an axis of known lengths."""
    numbers = ((change.length, 1), (change.resized, 7), (change.scale, 1))
    axis = AxisTerms(change.index, *(term(context, number, dtype) for number, dtype in numbers))
    first, second = (nearest_indices(axis, item).known for item in (method, other))
    assert first is not None
    assert second is not None
    return bool(np.array_equal(first, second))


# Resize 13: optional inputs


def _without_tf_half_pixel_for_nn(method: ResizeMethod) -> ResizeMethod:
    """Return the method that does what `tf_half_pixel_for_nn` does, where another mapping can.

    That maps half an element further than `half_pixel`, so what it rounds differs by that half.
    """
    modes = {"floor": "round_prefer_ceil", "round_prefer_floor": "ceil"}
    if method.coordinates != "tf_half_pixel_for_nn" or method.mode != "nearest":
        return method
    if method.nearest not in modes:
        return method
    return replace(method, coordinates="half_pixel", nearest=modes[method.nearest])


@up(
    "Resize",
    13,
    "an empty scales left out; tf_half_pixel_for_nn as half_pixel, or elements picked by Gather",
    blocks="it is tf_half_pixel_for_nn and interpolates integers, or its rank is not known",
)
def empty_scales_left_out(context: Context) -> None:
    """``Resize(x, roi, empty, sizes)`` becomes ``Resize(x, roi, "", sizes)``."""
    values = {}
    method = method_of(context)
    if method.coordinates == "tf_half_pixel_for_nn":
        method = _without_tf_half_pixel_for_nn(method)
        if method.coordinates == "tf_half_pixel_for_nn":
            _write_by_gather(context, method)
            return
        values = {
            "coordinate_transformation_mode": method.coordinates,
            "nearest_mode": method.nearest,
        }
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
    "axes worked into roi, scales and sizes; filters and ratios that take it by Gather",
    blocks=f"the rank is not known, or integers are smoothed (antialias), or {NO_COUNTING}",
)
def all_axes(context: Context) -> None:
    """``Resize<axes=[2, 3]>(x, "", [2, 2])`` becomes ``Resize(x, "", [1, 1, 2, 2])``.

    What is smoothed (antialias) becomes Gather and weights, as do sizes in the input's aspect ratio
    that no scales give.
    """
    if all(context.attribute(name) is None for name in _SINCE_18):
        return
    method = method_of(context)
    smooths = method.antialias and method.mode != "nearest" and not _only_enlarges(context)
    method = replace(method, antialias=smooths)
    roi: str
    scales: str
    sizes: str
    data, roi, scales, sizes = (context.input(index) for index in range(4))
    if keeps_ratio(context):
        in_ratio = _in_ratio(context)
        if smooths or in_ratio is None:
            in_ratio_by_gather(context, method)
            return
        scales, sizes = in_ratio
    elif smooths:
        _write_by_gather(context, method)
        return
    if context.value("axes") is not None:
        rank = context.need_rank(data, "before opset 18 all axes have a scale or a size")
        axes = resize_axes(context, rank)
        if context.value("coordinate_transformation_mode") == "tf_crop_and_resize" and roi:
            elem_type = context.need_elem_type(roi, "it gets values for all axes")
            whole = np.repeat(np.array([0, 1], numpy_dtype(elem_type)), rank)
            ends = [axis + rank for axis in axes]
            roi = _spread(context, whole, [*axes, *ends], roi, "roi")
        else:
            roi = ""
        scales = scales and _spread(context, np.ones(rank, np.float32), axes, scales, "scales")
        lengths = _lengths_of_others(dims_of(context, data), axes)
        sizes = sizes and _spread(context, lengths, axes, sizes, "sizes")
    context.replace(inputs=[data, roi, scales, sizes], drop=_SINCE_18)


_SINCE_18 = ("antialias", "axes", "keep_aspect_ratio_policy")


def _only_enlarges(context: Context) -> bool:
    """Return whether all axes are known not to shrink, so that antialias has no effect."""
    scales = context.constant(context.input(2)) if context.input(2) else None
    if scales is not None:
        return bool(np.all(scales >= 1))
    before, after = dims_of(context, context.input(0)), dims_of(context, context.node.output[0])
    if not before or after is None or len(before) != len(after):
        return False
    pairs = [(a, b) for a, b in zip(before, after, strict=True) if a is None or a != b]
    return all(isinstance(a, int) and isinstance(b, int) and a <= b for a, b in pairs)


def _in_ratio(context: Context) -> tuple[str, str] | None:
    """Return constants of scales and sizes, one of them empty, that keep the aspect ratio.

    Returns:
        float scales or int64 sizes, one for each axis that is resized; None where the lengths are
        not known, or no scales give the sizes.
    """
    in_ratio = sizes_in_ratio(context)
    if in_ratio is None:
        return None
    sizes, scale = in_ratio
    if all(size.denominator == 1 for size in sizes):
        return "", context.array([int(size) for size in sizes], "sizes")
    factor = np.float32(float(scale))
    if all(_scale_gives_length(int(size / scale), factor, round_half_up(size)) for size in sizes):
        return context.array(np.full(len(sizes), factor), "scales"), ""
    return None


def _spread(
    context: Context, rest: Array | None, indices: Sequence[int], values: str, hint: str
) -> Value:
    """Return `rest`, or else the input's shape, with `values` at `indices`, as a vector."""
    op = context.op
    known = context.constant(values)
    if rest is not None and known is not None:
        spread = rest.copy()
        spread[list(indices)] = known
        return context.array(spread, hint)
    axes = context.array(list(indices), "axes")
    whole = op.Shape(context.input(0)) if rest is None else context.array(rest, "rest")
    return op.ScatterElements(whole, axes, values)


def _lengths_of_others(dims: Dims | None, axes: Sequence[int]) -> Array | None:
    """Return the input's shape, with 0 for the axes, if it is known but for these: int64."""
    if dims is None:
        return None
    others = [0 if index in axes else dim for index, dim in enumerate(dims)]
    return np.array(others, np.int64) if all(isinstance(dim, int) for dim in others) else None


@down(
    "Resize",
    19,
    "half_pixel_symmetric as half_pixel where the sizes are whole, else elements picked by Gather",
    blocks=f"the sizes may not be whole, and {_BLOCKS}",
)
def whole_sizes(context: Context) -> None:
    """``Resize<coordinate_transformation_mode="half_pixel_symmetric">(x, "", "", sizes)`` becomes
    ``Resize<coordinate_transformation_mode="half_pixel">(x, "", "", sizes)``.

    The two differ where length times scale is not whole.
    """
    method = method_of(context)
    if method.coordinates != "half_pixel_symmetric":
        return
    if keeps_ratio(context):
        in_ratio = sizes_in_ratio(context)
        if in_ratio is None or any(size.denominator != 1 for size in in_ratio[0]):
            in_ratio_by_gather(context, method)
            return
    elif not non_empty_input(context, 3) and not _are_whole(context):
        _write_by_gather(context, method)
        return
    context.replace(coordinate_transformation_mode="half_pixel")


def _are_whole(context: Context) -> bool:
    """Return whether every length times its scale is known to be whole."""
    dims = dims_of(context, context.input(0))
    scales = context.constant(context.input(2))
    if scales is None:
        return False
    axes = context.value("axes", range(len(scales)))
    lengths = [1 if dims is None else dims[axis] for axis in axes]
    return all(
        (float(scale) * (length if isinstance(length, int) else 1)).is_integer()
        for length, scale in zip(lengths, scales, strict=True)
    )
