"""RoiAlign below opset 10, and with the mapping half_pixel below 16."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import reduced
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES
from onnxreduce_cli.emit.loops import LoopBody, LoopValue, WriteRound, loop
from onnxreduce_cli.emit.numbers import Term, scalar, term
from onnxreduce_cli.emit.sizes import known_size, length_of, range_of, size_of


def align_by_gather(context: Context, *, half_pixel: bool) -> None:
    """Pool the regions one after the other in a Loop; see `roi_align.aligned_by_gather`.

    Args:
        context: the node's.
        half_pixel: whether regions are shifted by half a pixel; if not, those below one are
            enlarged to one.
    """
    data = context.input(0)
    elem_type = context.need_elem_type(data, "places are computed in that dtype")
    working = int(TensorProto.FLOAT) if elem_type in HALVES else elem_type
    if working != elem_type:
        data = cast(context, data, working)
    context = context.at(13)  # ReduceSum takes its axes as an input there, ReduceMax not yet.
    op = context.op
    sides = [_side(context, axis, working, half_pixel=half_pixel) for axis in (0, 1)]
    any_sample = sides[0].samples.greater(0) & sides[1].samples.greater(0)
    averages = context.value("mode", "avg") == "avg"
    taps = [
        _taps(side, length_of(context, data, axis, working), any_sample, repeats=not averages)
        for axis, side in zip((2, 3), sides, strict=True)
    ]
    # One row and one column of zeros, which is what is beyond the image.
    pads = context.array([0, 0, 0, 0, 0, 0, 1, 1], "pads")
    padded = op.Pad(data, pads)
    (row, row_weight), (column, column_weight) = taps
    row_weight = row_weight.shaped(0, 0, 0, 0, 1)
    names = [row.name, row_weight.name, column.name, column_weight.name]
    write = _round(context, padded, names, (sides[0].parts, sides[1].parts), working)
    count = scalar(context, size_of(context, context.input(1), 0)).name
    carried = [LoopValue(count, TensorProto.INT64, ())]
    inputs, graph = loop(context, count, carried, write, "over its regions")
    _, aligned = op.Loop(*inputs, outputs=2, body=graph)
    if averages:
        samples = sides[0].samples.most(1) * sides[1].samples.most(1)
        number = samples.shaped(-1, 1, 1, 1).name
        aligned = op.Div(aligned, number)
    if working == elem_type:
        context.replace("Identity", [aligned], keep=())
    else:
        context.replace("Cast", [aligned], keep=(), to=elem_type)


def _round(
    context: Context, padded: str, names: list[str], parts: tuple[int, int], working: int
) -> WriteRound:
    """Return a function that writes the round that pools one region.

    Args:
        context: the node's.
        padded: the images, with a row and a column of zeros behind the others.
        names: the indices of rows, their weights, those of columns, and theirs; see `_taps`.
        parts: the height and the width of the result.
        working: the dtype of images and weights.
    """
    batch = context.input(2)
    averages = context.value("mode", "avg") == "avg"
    # Of no region the result has the sizes that are stated.
    dims = (known_size(context, context.input(0), 1), *parts)

    def reduction(body: LoopBody, name: str, axes: list[int]) -> Value:
        if averages:
            return body.ReduceSum(name, context.array(axes, "axes"), keepdims=0)
        return body.ReduceMax(name, axes=axes, keepdims=0)

    def write(body: LoopBody) -> tuple[Sequence[str], Sequence[LoopValue]]:
        which = body.Gather(batch, body.round, axis=0)
        pooled = body.Gather(padded, which, axis=0)
        own = [body.Gather(name, body.round, axis=0) for name in names]
        for axis, index, weight in ((1, own[0], own[1]), (2, own[2], own[3])):
            taken = body.Gather(pooled, index, axis=axis)
            weighted = body.Mul(taken, weight)
            pooled = reduction(body, weighted, [axis + 1, axis + 2])
        return [body.values[0]], [LoopValue(pooled, working, dims)]

    return write


@dataclass(frozen=True)
class _Side:
    """The extents of regions along one axis.

    Attributes:
        start: the start of each region, of shape [regions].
        part: the size of each bin of a region, of shape [regions].
        samples: the number of sampling points in a bin, of shape [regions] or [1].
        most: the largest of those numbers, an int64 of shape [].
        parts: the number of bins.
    """

    start: Term
    part: Term
    samples: Term
    most: Term
    parts: int


def _side(context: Context, axis: int, working: int, *, half_pixel: bool) -> _Side:
    """Return the extents of the regions along height (0) or width (1), in the dtype `working`."""
    regions = Term(context, context.input(1), context.need_elem_type(context.input(0), ""))
    scale = float(np.float32(context.value("spatial_scale", 1.0)))
    parts = context.value(("output_height", "output_width")[axis], 1)
    start, end = (
        regions.cast(working).at(index, axis=1) * scale - (0.5 if half_pixel else 0.0)
        for index in (1 - axis, 3 - axis)
    )
    size = end - start if half_pixel else (end - start).most(1)
    part = size / parts
    ratio = context.value("sampling_ratio", 0)
    if ratio > 0:
        samples = term(context, [ratio], working)
        return _Side(start, part, samples, term(context, ratio, TensorProto.INT64), parts)
    samples = part.ceil()
    most = reduced(
        context,
        "ReduceMax",
        context.op.Concat(samples.name, term(context, [1], working).name, axis=0),
        [0],
        keep=False,
    )
    return _Side(start, part, samples, Term(context, most, working).cast(TensorProto.INT64), parts)


def _taps(side: _Side, length: Term, any_sample: Term, *, repeats: bool) -> tuple[Term, Term]:
    """Return the two elements on either side of every sampling point, and their weights.

    A region with fewer points than the most has further ones beyond the image, or repeats its last.

    Returns:
        indices (int64) and weights, both of shape [regions, bins, points, 2].
    """
    context, working = length.context, length.elem_type
    start, part, samples = (
        item.shaped(-1, 1, 1) for item in (side.start, side.part, side.samples.most(1))
    )
    number = range_of(side.most, working)
    exists = number.less(samples) & any_sample.shaped(-1, 1, 1)
    if repeats:
        number = number.least(samples - 1)
        exists = any_sample.shaped(-1, 1, 1)
    bins = range_of(term(context, side.parts, TensorProto.INT64), working).shaped(-1, 1)
    at = start + bins * part + (number + 0.5) * part / samples
    exists = exists & (at.less(-1) | at.greater(length)).negated()
    last = length - 1
    at = at.within(0, last)
    low = at.floor()
    share = (at - low).shaped(0, 0, 0, 1)
    either = term(context, [0.0, 1.0], working)
    index = (low.shaped(0, 0, 0, 1) + either).least(last)
    inside = exists.cast(working).shaped(0, 0, 0, 1)
    index = length + (index - length) * inside
    weight = (share * -1 + 1) * (either * -1 + 1) + share * either
    return index.cast(TensorProto.INT64), weight
