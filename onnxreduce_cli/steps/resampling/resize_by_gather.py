"""Resize and Upsample by Gather, where an opset's own cannot express a mapping.

Each axis is resized on its own: an output element is made of one element of the input, or of
several that have weights.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES
from onnxreduce_cli.emit.numbers import Term, term
from onnxreduce_cli.emit.sizes import length_of
from onnxreduce_cli.steps.resampling.resize_axes import (
    ResizedAxis,
    crops_input,
    resize_axes,
    resize_rank,
    round_half_up,
    sizes_in_ratio,
)
from onnxreduce_cli.steps.resampling.resize_mapping import (
    AxisTerms,
    ResizeMethod,
    input_coordinates,
    nearest_indices,
)
from onnxreduce_cli.steps.resampling.resize_weights import WeightedElements, elements_and_weights

_FLOAT = TensorProto.FLOAT


def by_gather(
    context: Context,
    method: ResizeMethod,
    changes: Sequence[ResizedAxis],
    rank: int,
    scales_or_sizes: str,
) -> None:
    """Resize axes by Gather, with weights for linear and cubic.

    Args:
        context: a Resize or Upsample.
        method: how it resizes.
        changes: the axes that are resized, by scales or to sizes.
        rank: the input's rank.
        scales_or_sizes: the input with scales (float) or sizes (int64), read if not known.
    """
    # The operators below are those of opset 13.
    context = context.at(max(context.op.opset, 13))
    dtype = _dtype_of_coordinates(context, method)
    axes = [_axis(context, change, scales_or_sizes, dtype) for change in changes]
    _resample(context, method, axes, rank)


def _dtype_of_coordinates(context: Context, method: ResizeMethod) -> int:
    """Return double where elements of double are weighted, else float."""
    double = TensorProto.DOUBLE
    weighted = method.mode != "nearest" and context.elem_type(context.input(0)) == double
    return double if weighted else _FLOAT


def _axis(context: Context, change: ResizedAxis, scales_or_sizes: str, dtype: int) -> AxisTerms:
    """Return the terms of one axis, with coordinates of `dtype`; see `by_gather`."""
    int64 = TensorProto.INT64
    to_sizes = bool(scales_or_sizes) and context.elem_type(scales_or_sizes) == int64
    length = (
        length_of(context, context.input(0), change.index, dtype)
        if change.length is None
        else term(context, change.length, dtype)
    )
    start = end = None
    if crops_input(context):
        start, end = _region(context, change.position, dtype)
    if to_sizes:
        resized = (
            Term(context, scales_or_sizes, int64).at(change.position)
            if change.resized is None
            else term(context, change.resized, int64)
        )
        return AxisTerms(change.index, length, resized, resized.cast(dtype) / length, start, end)
    scale = (
        Term(context, scales_or_sizes, _FLOAT).at(change.position)
        if change.scale is None
        else term(context, change.scale, _FLOAT)
    )
    part = scale
    if start is not None and end is not None:
        part = scale * (end - start).cast(_FLOAT)
    # The product is taken in float: 10 * 0.7 must be 7.
    resized = (part * length.cast(_FLOAT)).cast(int64)
    return AxisTerms(change.index, length, resized, scale.cast(dtype), start, end)


def _region(context: Context, index: int, dtype: int) -> tuple[Term, Term]:
    """Return the start and the end of the region at `index` among those of `roi`, in `dtype`."""
    name = context.input(1)
    known = context.constant(name)
    if known is not None:
        ends = known[index], known[index + len(known) // 2]
        return term(context, ends[0], dtype), term(context, ends[1], dtype)
    elem_type = context.need_elem_type(name, "coordinates are computed from it")
    roi = Term(context, name, elem_type).cast(dtype).shaped(2, -1)
    return roi.at(0).at(index), roi.at(1).at(index)


def in_ratio_by_gather(context: Context, method: ResizeMethod) -> None:
    """Resize axes by Gather to sizes that keep the input's aspect ratio."""
    sizes = context.input(3)
    rank = resize_rank(context, sizes)
    context = context.at(max(context.op.opset, 13))
    known, data = sizes_in_ratio(context), context.input(0)
    axes = resize_axes(context, rank)
    double, dtype = TensorProto.DOUBLE, _dtype_of_coordinates(context, method)
    lengths = [length_of(context, data, axis, TensorProto.INT64) for axis in axes]
    if known is not None:
        resized = [term(context, round_half_up(size), TensorProto.INT64) for size in known[0]]
        scale = term(context, float(known[1]), dtype)
    else:
        limits = [Term(context, sizes, TensorProto.INT64).at(index) for index in range(len(axes))]
        pairs = list(zip(limits, lengths, strict=True))
        scale = _outermost(context, [size.cast(dtype) / n.cast(dtype) for size, n in pairs])
        resized = []
        for length in lengths:
            # Rounded in whole numbers, so that a half is one. Float does not represent all of
            # those, but double does all that are sizes.
            each = [(size * 2 * length + n) / (n * 2) for size, n in pairs]
            outermost = _outermost(context, [size.cast(double) for size in each])
            resized.append(outermost.cast(TensorProto.INT64))
    changed = []
    for index, (axis, length, size) in enumerate(zip(axes, lengths, resized, strict=True)):
        region = _region(context, index, dtype) if crops_input(context) else ()
        changed.append(AxisTerms(axis, length.cast(dtype), size, scale, *region))
    _resample(context, method, changed, rank)


def _outermost(context: Context, terms: Sequence[Term]) -> Term:
    """Return the least or the greatest of terms of shape [], as the policy says."""
    outermost = terms[0]
    larger = context.value("keep_aspect_ratio_policy") != "not_larger"
    for other in terms[1:]:
        outermost = outermost.most(other) if larger else outermost.least(other)
    return outermost


def _resample(context: Context, method: ResizeMethod, axes: Sequence[AxisTerms], rank: int) -> None:
    """``Resize(x)`` becomes one Gather for each axis, or a few and their weighted sum.

    Nearest: ``Gather<axis=a>(x, indices)``. Linear: ``Gather<axis=a>(x, low) * (1 - w) +
    Gather<axis=a>(x, high) * w``. Cubic is the same with the two elements on either side. Where
    weights are only known at run time, or there are many, one Gather takes all elements:
    ``ReduceSum<axis=a + 1>(Gather<axis=a>(x, indices) * weights)``.
    """
    data: str
    data, elem_type, working = context.input(0), 0, 0
    if method.mode != "nearest":
        elem_type = context.need_elem_type(data, "its elements are to be weighted")
        working = int(TensorProto.FLOAT) if elem_type in HALVES else elem_type
        if working not in (TensorProto.FLOAT, TensorProto.DOUBLE):
            raise Blocked(
                f"it interpolates integers, and how their weighted sums are rounded is not "
                f"defined; opset {context.target_opset} can express this mapping by such sums only",
                "cast its input to float, and round its output",
            )
        data = data if working == elem_type else cast(context, data, working)
    for axis in axes:
        if method.mode == "nearest":
            indices = nearest_indices(axis, method).name
            data = context.op.Gather(data, indices, axis=axis.index)
        else:
            data = _weighted(context, data, axis, rank, elements_and_weights(axis, method), working)
    if method.coordinates == "tf_crop_and_resize":
        data = _extrapolated(context, data, axes, rank, method.extrapolation)
    if working == elem_type:
        context.replace("Identity", [data], keep=())
    else:
        context.replace("Cast", [data], keep=(), to=elem_type)


def _weighted(
    context: Context, data: str, axis: AxisTerms, rank: int, window: WeightedElements, working: int
) -> str:
    """Return data of dtype `working` and rank `rank` resized along one axis to weighted sums."""
    op = context.op
    behind = [1] * (rank - 1 - axis.index)
    indices, weights = window.indices.known, window.weights.known
    if indices is not None and weights is not None and indices.shape[1] <= _MOST_TAPS:
        total = ""
        for index, weight in zip(indices.T, weights.T, strict=True):
            gathered = [data, context.array(np.ascontiguousarray(index), "indices")]
            factors = term(context, weight.reshape(-1, *behind), working).name
            tap = op.Gather(*gathered, axis=axis.index)
            part = op.Mul(tap, factors)
            total = op.Add(total, part) if total else part
        return total
    if window.has_none:
        pads = [0] * (2 * rank)
        pads[rank + axis.index] = 1
        data = op.Pad(data, context.array(pads, "pads"))
    taps = op.Gather(data, window.indices.name, axis=axis.index)
    factors = window.weights.cast(working).shaped(0, 0, *behind).name
    parts = op.Mul(taps, factors)
    along = context.array([axis.index + 1], "along")
    return op.ReduceSum(parts, along, keepdims=0)


#: Up to so many elements are gathered one by one, which is faster.
_MOST_TAPS = 4


def _extrapolated(
    context: Context, data: str, axes: Sequence[AxisTerms], rank: int, value: float
) -> str:
    """Return the resized data, with `value` where a coordinate is outside on some axis.

    The data is of rank `rank`, and keeps its dtype and shape.
    """
    outside: Term | None = None
    for axis in axes:
        coordinates = input_coordinates(axis, "tf_crop_and_resize")
        beyond = coordinates.less(0) | coordinates.greater(axis.length - 1)
        if beyond.known is not None and not beyond.known.any():
            continue
        beyond = beyond.shaped(-1, *[1] * (rank - 1 - axis.index))
        outside = beyond if outside is None else outside | beyond
    if outside is None:
        return data
    elem_type = context.need_elem_type(data, "outside it is a value of that dtype")
    filled = context.scalar(value, "extrapolation", elem_type)
    return context.op.Where(outside.name, filled, data)
