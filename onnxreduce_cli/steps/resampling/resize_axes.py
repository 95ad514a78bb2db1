"""What a Resize or an Upsample does to each axis, as far as it is known at conversion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import normalised
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import dims_of
from onnxreduce_cli.emit.terms import Term, length_of, term
from onnxreduce_cli.steps.resampling.emulated_resize import Axis, Method, resample

_FLOAT = TensorProto.FLOAT


@dataclass(frozen=True)
class Change:
    """One axis that is resized; what is None is only known at run time.

    Attributes:
        index: which.
        place: where it is among the scales, sizes or regions given.
        length: its length before.
        resized: its length after.
        scale: the ratio that places elements.
    """

    index: int
    place: int
    length: int | None
    resized: int | None
    scale: np.float32 | None


def method_of(context: Context) -> Method:
    """How a Resize of opset 11 or later resizes."""
    return Method(
        context.value("mode", "nearest"),
        context.value("coordinate_transformation_mode", "half_pixel"),
        context.value("nearest_mode", "round_prefer_floor"),
        context.value("cubic_coeff_a", -0.75),
        bool(context.value("exclude_outside", 0)),
        bool(context.value("antialias", 0)),
        context.value("extrapolation_value", 0.0),
    )


def given(context: Context, index: int) -> str:
    """The input at `index` of a Resize; none where it is known to be empty."""
    name = context.input(index)
    known = context.constant(name) if name else None
    return "" if known is not None and not known.size else name


def rank_of(context: Context, counts: str) -> int:
    """The input's rank, which the number of scales or sizes for all axes may tell.

    Raises:
        Blocked: it is not known.
    """
    if context.rank(context.input(0)) is None and context.attribute("axes") is None:
        dims = dims_of(context, counts)
        if dims is not None and isinstance(dims[0], int):
            return dims[0]
    return context.need_rank(context.input(0), "its axes are resized one by one")


def axes_of(context: Context, rank: int) -> tuple[int, ...]:
    """The axes that scales, sizes and regions are given for."""
    return normalised(context.value("axes", tuple(range(rank))), rank)


def changes_by_scales(context: Context, scales: Sequence[float | None], rank: int) -> list[Change]:
    """What scales, for every axis or for those in `axes`, change."""
    found = []
    axes = axes_of(context, rank)
    dims = dims_of(context, context.input(0))
    for place, (index, factor) in enumerate(zip(axes, scales, strict=True)):
        scale = None if factor is None else np.float32(factor)
        dim = None if dims is None else dims[index]
        length = dim if isinstance(dim, int) else None
        if scale is None or scale != 1 or _is_cropped(context, place):
            resized = None
            if length is not None and scale is not None and not _crops(context):
                resized = int(np.float32(length) * scale)
            found.append(Change(index, place, length, resized, scale))
    return found


def known_scales(context: Context, name: str, count: int) -> list[float | None]:
    """Scales, None for each that is only known at run time."""
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


def changes_by_sizes(context: Context, sizes: str, rank: int) -> list[Change]:
    """What sizes, for every axis or for those in `axes`, change."""
    axes = axes_of(context, rank)
    before = dims_of(context, context.input(0)) or (None,) * rank
    after: Sequence[Any] | None = context.elements(sizes)
    promised = dims_of(context, context.node.output[0])
    if promised is not None and (after is None or None in after):
        after = [
            promised[axis] if after is None or after[place] is None else after[place]
            for place, axis in enumerate(axes)
        ]
    whole = axes == tuple(range(rank))
    kept = context.kept_dims(sizes, context.input(0)) if whole else ()
    found = []
    for place, axis in enumerate(axes):
        length, size = (
            dim if isinstance(dim, int) else None
            for dim in (before[axis], None if after is None else after[place])
        )
        same = (bool(kept) and kept[place]) or (length is not None and length == size)
        if not same or _is_cropped(context, place):
            known = size is not None and length
            scale = np.float32(size) / np.float32(length) if known else None
            found.append(Change(axis, place, length, size, scale))
    return found


def _crops(context: Context) -> bool:
    return bool(context.value("coordinate_transformation_mode") == "tf_crop_and_resize")


def _is_cropped(context: Context, place: int) -> bool:
    """Whether the region of an axis may be other than the whole of it."""
    if not _crops(context):
        return False
    roi = context.constant(context.input(1))
    return roi is None or [roi[place], roi[place + len(roi) // 2]] != [0, 1]


def by_gather(
    context: Context, method: Method, changes: Sequence[Change], rank: int, given: str
) -> None:
    """Resize axes by Gather, with weights for linear and cubic.

    Args:
        context: a Resize or Upsample.
        method: how.
        changes: what is resized, by scales or to sizes.
        rank: the input's rank.
        given: the input with the scales or sizes, which tells what is only known at run time.
    """
    # Its operators are read with their inputs of today.
    context = context.at(max(context.op.opset, 13))
    to_sizes = bool(given) and context.elem_type(given) == TensorProto.INT64
    axes = [_axis(context, change, given, to_sizes=to_sizes) for change in changes]
    resample(context, method, axes, rank)


def _axis(context: Context, change: Change, given: str, *, to_sizes: bool) -> Axis:
    int64 = TensorProto.INT64
    length = (
        length_of(context, context.input(0), change.index, _FLOAT)
        if change.length is None
        else term(context, change.length, _FLOAT)
    )
    start = end = None
    if _crops(context):
        start, end = _region(context, change.place)
    if to_sizes:
        resized = (
            Term(context, given, int64).at(change.place)
            if change.resized is None
            else term(context, change.resized, int64)
        )
        return Axis(change.index, length, resized, resized.cast(_FLOAT) / length, start, end)
    scale = (
        Term(context, given, _FLOAT).at(change.place)
        if change.scale is None
        else term(context, change.scale, _FLOAT)
    )
    part = scale if start is None or end is None else scale * (end - start)
    return Axis(change.index, length, (part * length).cast(int64), scale, start, end)


def _region(context: Context, place: int) -> tuple[Term, Term]:
    """Where a region begins and ends on an axis."""
    name = context.input(1)
    known = context.constant(name)
    if known is not None:
        ends = known[place], known[place + len(known) // 2]
        return term(context, ends[0], _FLOAT), term(context, ends[1], _FLOAT)
    elem_type = context.need_elem_type(name, "places are computed in float")
    roi = Term(context, name, elem_type).cast(_FLOAT).shaped(2, -1)
    return roi.at(0).at(place), roi.at(1).at(place)


# keep_aspect_ratio_policy


def keeps_ratio(context: Context) -> bool:
    """Whether sizes are but limits for sizes of the input's aspect ratio."""
    policy = context.value("keep_aspect_ratio_policy", "stretch")
    return policy != "stretch" and bool(given(context, 3))


def sizes_in_ratio(context: Context) -> tuple[list[Fraction], Fraction] | None:
    """What keep_aspect_ratio_policy makes of sizes, before they are rounded, and the scale.

    Returns:
        None where not all that they depend on is known.
    """
    sizes, rank = context.constant(context.input(3)), context.rank(context.input(0))
    if sizes is None or rank is None:
        return None
    dims = dims_of(context, context.input(0)) or ()
    lengths = [dims[axis] for axis in axes_of(context, rank)]
    known = [length for length in lengths if isinstance(length, int)]
    if len(known) < len(lengths) or 0 in known:
        return None
    ratios = [Fraction(int(size), length) for size, length in zip(sizes, known, strict=True)]
    scale = _choice(context)(ratios)
    return [scale * length for length in known], scale


def _choice(context: Context) -> Any:
    return min if context.value("keep_aspect_ratio_policy") == "not_larger" else max


def rounded(size: Fraction) -> int:
    """The nearest whole number, the higher one of two."""
    return int((size * 2 + 1) // 2)


def in_ratio_by_gather(context: Context, method: Method) -> None:
    """Resize axes by Gather to sizes that keep the input's aspect ratio."""
    sizes = context.input(3)
    rank = rank_of(context, sizes)
    context = context.at(max(context.op.opset, 13))
    found, data = sizes_in_ratio(context), context.input(0)
    axes = axes_of(context, rank)
    double = TensorProto.DOUBLE
    lengths = [length_of(context, data, axis, TensorProto.INT64) for axis in axes]
    if found is not None:
        resized = [term(context, rounded(size), TensorProto.INT64) for size in found[0]]
        scale = term(context, float(found[1]), _FLOAT)
    else:
        limits = [Term(context, sizes, TensorProto.INT64).at(place) for place in range(len(axes))]
        pairs = list(zip(limits, lengths, strict=True))
        scale = _outermost(context, [size.cast(_FLOAT) / n.cast(_FLOAT) for size, n in pairs])
        resized = []
        for length in lengths:
            # Rounded in whole numbers, so that a half is one. No float holds all of those, but
            # double holds all that are sizes.
            each = [(size * 2 * length + n) / (n * 2) for size, n in pairs]
            outermost = _outermost(context, [size.cast(double) for size in each])
            resized.append(outermost.cast(TensorProto.INT64))
    changed = []
    for place, (axis, length, size) in enumerate(zip(axes, lengths, resized, strict=True)):
        region = _region(context, place) if _crops(context) else ()
        changed.append(Axis(axis, length.cast(_FLOAT), size, scale, *region))
    resample(context, method, changed, rank)


def _outermost(context: Context, terms: Sequence[Term]) -> Term:
    """The least or the greatest of numbers, as the policy says."""
    found = terms[0]
    larger = context.value("keep_aspect_ratio_policy") != "not_larger"
    for other in terms[1:]:
        found = found.most(other) if larger else found.least(other)
    return found
