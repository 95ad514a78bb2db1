"""The axes that a Resize or an Upsample changes, with their sizes and scales as far as known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import non_negative_axes
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.sizes import dims_of
from onnxreduce_cli.steps.resampling.resize_mapping import COORDINATES, ROUNDINGS, ResizeMethod

_FLOAT = TensorProto.FLOAT


@dataclass(frozen=True, slots=True)
class ResizedAxis:
    """An axis that is resized, as far as it is known at conversion; None stands for unknown.

    Attributes:
        index: the axis.
        position: its index among the scales, sizes or regions of the node.
        length: its length before.
        resized: its length after.
        scale: the ratio by which coordinates are mapped.
    """

    index: int
    position: int
    length: int | None
    resized: int | None
    scale: np.float32 | None


def method_of(context: Context) -> ResizeMethod:
    """Return the method of a Resize of opset 11 or later, from its attributes.

    Raises:
        Blocked: a mode does not exist.
    """
    return ResizeMethod(
        context.choice("mode", "nearest", ("nearest", "linear", "cubic")),
        context.choice("coordinate_transformation_mode", "half_pixel", COORDINATES),
        context.choice("nearest_mode", "round_prefer_floor", ROUNDINGS),
        context.value("cubic_coeff_a", -0.75),
        bool(context.value("exclude_outside", 0)),
        bool(context.value("antialias", 0)),
        context.value("extrapolation_value", 0.0),
    )


def non_empty_input(context: Context, index: int) -> str:
    """Return the input at `index` of a Resize, a tensor of any dtype of shape [n].

    The name is empty where the input is absent or known to have no elements.
    """
    name = context.input(index)
    known = context.constant(name) if name else None
    return "" if known is not None and not known.size else name


def resize_rank(context: Context, counts: str) -> int:
    """Return the rank of the first input, or else the number of scales or sizes if for all axes.

    Raises:
        Blocked: it is not known.
    """
    if context.rank(context.input(0)) is None and context.attribute("axes") is None:
        dims = dims_of(context, counts)
        if dims is not None and isinstance(dims[0], int):
            return dims[0]
    return context.need_rank(context.input(0), "its axes are resized one by one")


def resize_axes(context: Context, rank: int) -> tuple[int, ...]:
    """Return the axes, counted from the front, that the scales, sizes and regions are for.

    Raises:
        Blocked: the region has fewer numbers than these need.
    """
    axes = non_negative_axes(context.value("axes", tuple(range(rank))), rank)
    if crops_input(context):
        _check_region(context, len(axes))
    return axes


def _check_region(context: Context, count: int) -> None:
    """Block a Resize without a start and an end for each of its axes."""
    name = context.input(1)
    dims = dims_of(context, name) if name else (0,)
    if dims is not None and len(dims) == 1 and dims[0] in range(2 * count):
        raise Blocked(
            f"it resizes a region (tf_crop_and_resize), and its input roi has {dims[0]} numbers, "
            f"not {2 * count}",
            "mend the model: give it roi, the starts of all axes and then their ends, from 0 to 1, "
            "or set its coordinate_transformation_mode to half_pixel",
        )


def resized_by_scales(
    context: Context, scales: Sequence[float | None], rank: int
) -> list[ResizedAxis]:
    """Return the axes that scales, for all of them or for those in `axes`, change."""
    changes = []
    axes = resize_axes(context, rank)
    dims = dims_of(context, context.input(0))
    for position, (index, factor) in enumerate(zip(axes, scales, strict=True)):
        scale = None if factor is None else np.float32(factor)
        dim = None if dims is None else dims[index]
        length = dim if isinstance(dim, int) else None
        if scale is None or scale != 1 or _is_cropped(context, position):
            resized = None
            if length is not None and scale is not None and not crops_input(context):
                resized = int(np.float32(length) * scale)
            changes.append(ResizedAxis(index, position, length, resized, scale))
    return changes


def known_scales(context: Context, name: str, count: int) -> list[float | None]:
    """Return the elements of a vector of `count` scales, None for those known at run time only."""
    known = context.constant(name)
    if known is not None:
        return [float(scale) for scale in known]
    producer = context.producer(name)
    if producer is not None and producer.op_type == "Concat":
        parts: list[float | None] = []
        for part in producer.input:
            dims = dims_of(context, part)
            if dims is None or len(dims) != 1 or not isinstance(dims[0], int):
                return [None] * count
            parts += known_scales(context, part, dims[0])
        if len(parts) == count:
            return parts
    return [None] * count


def resized_by_sizes(context: Context, sizes: str, rank: int) -> list[ResizedAxis]:
    """Return the axes that sizes, for all of them or for those in `axes`, change."""
    axes = resize_axes(context, rank)
    before = dims_of(context, context.input(0)) or (None,) * rank
    after: Sequence[Any] | None = context.elements(sizes)
    promised = dims_of(context, context.node.output[0])
    if promised is not None and len(promised) == rank and (after is None or None in after):
        after = [
            promised[axis] if after is None or after[position] is None else after[position]
            for position, axis in enumerate(axes)
        ]
    whole = axes == tuple(range(rank))
    kept = context.kept_dims(sizes, context.input(0)) if whole else ()
    changes = []
    for position, axis in enumerate(axes):
        length, size = (
            dim if isinstance(dim, int) else None
            for dim in (before[axis], None if after is None else after[position])
        )
        same = (bool(kept) and kept[position]) or (length is not None and length == size)
        if not same or _is_cropped(context, position):
            known = size is not None and length
            scale = np.float32(size) / np.float32(length) if known else None
            changes.append(ResizedAxis(axis, position, length, size, scale))
    return changes


def crops_input(context: Context) -> bool:
    """Return whether only the region that `roi` gives is resized."""
    return bool(context.value("coordinate_transformation_mode") == "tf_crop_and_resize")


def _is_cropped(context: Context, position: int) -> bool:
    """Return whether the region at `position` in `roi` may be other than the whole axis."""
    if not crops_input(context):
        return False
    roi = context.constant(context.input(1))
    return roi is None or [roi[position], roi[position + len(roi) // 2]] != [0, 1]


# keep_aspect_ratio_policy


def keeps_ratio(context: Context) -> bool:
    """Return whether sizes are only limits for sizes of the input's aspect ratio."""
    policy = context.value("keep_aspect_ratio_policy", "stretch")
    return policy != "stretch" and bool(non_empty_input(context, 3))


def sizes_in_ratio(context: Context) -> tuple[list[Fraction], Fraction] | None:
    """Return the sizes by keep_aspect_ratio_policy, before they are rounded, and their scale.

    Returns:
        None where not all that they depend on is known.
    """
    sizes, rank = context.constant(context.input(3)), context.rank(context.input(0))
    if sizes is None or rank is None:
        return None
    dims = dims_of(context, context.input(0)) or ()
    lengths = [dims[axis] for axis in resize_axes(context, rank)]
    known = [length for length in lengths if isinstance(length, int)]
    if len(known) < len(lengths) or 0 in known:
        return None
    ratios = [Fraction(int(size), length) for size, length in zip(sizes, known, strict=True)]
    scale = _scale_choice(context)(ratios)
    return [scale * length for length in known], scale


def _scale_choice(context: Context) -> Any:
    """Return the function, min or max, that chooses one of several scales, as the policy says."""
    return min if context.value("keep_aspect_ratio_policy") == "not_larger" else max


def round_half_up(size: Fraction) -> int:
    """Return the nearest whole number, of two the higher one."""
    return int((size * 2 + 1) // 2)
