"""NonMaxSuppression below opset 10, with which it was introduced: a Loop selects box after box."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.loops import LoopBody, LoopValue, WriteRound, loop
from onnxreduce_cli.emit.numbers import as_name
from onnxreduce_cli.emit.refusals import NO_LOOP
from onnxreduce_cli.emit.sizes import arange, dims_of, known_dims, size_of
from onnxreduce_cli.steps.registry import introduced


@introduced(
    "NonMaxSuppression", 10, "a Loop that selects a box of every class at once", blocks=NO_LOOP
)
def non_max_suppression(context: Context) -> None:
    """``NonMaxSuppression(boxes, scores, count, iou_threshold, score_threshold)`` becomes a Loop of
    up to `count` rounds over the candidates, a bool for each batch, class and box.

    Each round takes the best that is left of every class, and leaves out those that overlap it too
    much. What was taken of classes that had any left is put in order by NonZero.
    """
    context = context.at(13)
    op = context.op
    count = context.input(2)
    if not count:
        empty = context.array(np.zeros((0, 3), np.int64), "none_selected")
        context.replace("Identity", [empty], keep=())
        return
    boxes, scores = (_of_rank_3(context, context.input(index)) for index in range(2))
    areas = _areas(context, boxes)
    # Not less than minus infinity is everything.
    threshold = context.input(4) or context.scalar(-np.inf, "lowest")
    if context.input(4):
        candidates = op.Greater(scores, threshold)
    else:
        outside = op.Less(scores, threshold)
        candidates = op.Not(outside)
    write = _round(context, scores, areas)
    dims = dims_of(context, scores)
    carried = LoopValue(candidates, TensorProto.BOOL, dims)
    inputs, body = loop(
        context, _rounds(context, count, scores), [carried], write, "over the boxes taken"
    )
    _, taken, was_left = op.Loop(*inputs, outputs=3, body=body)
    perm = [1, 2, 0, 3]
    taken, was_left = (op.Transpose(name, perm=perm) for name in (taken, was_left))
    coordinates = op.NonZero(was_left)
    first = op.Gather(coordinates, context.array([0, 1], "first"), axis=0)
    flat = context.array([-1], "flat")
    parts = [op.Reshape(name, flat) for name in (taken, was_left)]
    selected = op.Compress(*parts, axis=0)
    row = op.Unsqueeze(selected, context.array([0], "axes"))
    columns = op.Concat(first, row, axis=0)
    context.replace("Transpose", [columns], keep=(), perm=[1, 0])


def _of_rank_3(context: Context, name: str) -> str:
    """Return boxes or scores as a value that is known to have rank 3."""
    if context.rank(name) is not None:
        return name
    return context.op.Reshape(name, context.array([0, 0, 0], "shape"))


def _rounds(context: Context, count: str, scores: str) -> Value:
    """Return the number of rounds, an int64 of shape []: `count`, or that of scores if less."""
    op = context.op
    known, dims = context.constant(count), known_dims(dims_of(context, scores))
    if known is not None and dims is not None:
        return context.scalar(min(int(known.reshape(-1)[0]), math.prod(dims)), "rounds")
    if context.rank(count) != 0:
        count = op.Reshape(count, context.array([], "scalar"))
    size = op.Size(scores)
    fewer = op.Less(count, size)
    return op.Where(fewer, count, size)


@dataclass(frozen=True)
class _Areas:
    """The ends of boxes on two axes, and their areas: float tensors of shape [batch, 1, boxes].

    Attributes:
        low: the lower end on each axis.
        high: the higher end on each axis.
        size: the area.
    """

    low: tuple[str, str]
    high: tuple[str, str]
    size: str


def _areas(context: Context, boxes: str) -> _Areas:
    """Return the ends and areas of boxes, float of shape [batch, boxes, 4], in any corner order."""
    op = context.op
    parts = []
    for index in range(4):
        part = op.Gather(boxes, context.scalar(index, "part"), axis=2)
        parts.append(op.Unsqueeze(part, context.array([1], "axes")))
    low, high = [], []
    for one, other in zip(parts[:2], parts[2:], strict=True):
        if context.value("center_point_box", 0):
            half = op.Div(other, context.scalar(2.0, "two"))
            low.append(op.Sub(one, half))
            high.append(op.Add(one, half))
        else:
            beyond = op.Greater(one, other)
            low.append(op.Where(beyond, other, one))
            high.append(op.Where(beyond, one, other))
    sides = [op.Sub(*pair) for pair in zip(high, low, strict=True)]
    return _Areas((low[0], low[1]), (high[0], high[1]), op.Mul(*sides))


def _round(context: Context, scores: str, areas: _Areas) -> WriteRound:
    """Return a function that writes one round: it takes the best box that is left of every class.

    The Loop carries a bool tensor of shape [batch, classes, boxes], true where a box is still left.
    Of each round it collects, in shape [batch, classes, 1], the int64 index of the box that was
    taken, and a bool that is true where any was left.
    """
    op = context.op
    flat = context.array([-1], "flat")

    def flattened(name: str) -> str:
        return op.Reshape(name, flat)

    low, high = ([flattened(name) for name in names] for names in (areas.low, areas.high))
    flat_areas = _Areas((low[0], low[1]), (high[0], high[1]), flattened(areas.size))
    length = size_of(context, scores, 2)
    numbers = arange(context, length)
    before = op.Mul(arange(context, size_of(context, scores, 0)), as_name(context, length))
    offsets = op.Reshape(before, context.array([-1, 1, 1], "shape"))
    lowest = context.scalar(-np.inf, "lowest")
    limit = context.input(3) or context.scalar(0.0, "zero")
    zero = context.scalar(0.0, "zero")

    def write(body: LoopBody) -> tuple[list[str], list[LoopValue]]:
        (left,) = body.values
        open_scores = body.Where(left, scores, lowest)
        best = body.ReduceMax(open_scores, axes=[2])
        below = body.Less(open_scores, best)
        best_left = body.And(left, body.Not(below))
        hits = body.Cast(best_left, to=int(TensorProto.FLOAT))
        taken = body.ArgMax(hits, axis=2)
        any_left = body.ReduceMax(hits, axes=[2])
        was_left = body.Cast(any_left, to=int(TensorProto.BOOL))
        box = body.Add(taken, offsets)
        overlaps = _overlaps(context, body, areas, flat_areas, box, (limit, zero))
        itself = body.Equal(numbers, taken)
        suppressed = body.Or(overlaps, itself)
        rest = body.And(left, body.Not(suppressed))
        more = body.Cast(rest, to=int(TensorProto.FLOAT))
        more = body.ReduceMax(more, keepdims=0)
        body.again = body.Cast(more, to=int(TensorProto.BOOL))
        dims = (dims_of(context, scores) or (None, None))[:2]
        return [rest], [
            LoopValue(taken, TensorProto.INT64, (*dims, 1)),
            LoopValue(was_left, TensorProto.BOOL, (*dims, 1)),
        ]

    return write


def _overlaps(
    context: Context, body: LoopBody, areas: _Areas, flat: _Areas, box: str, bounds: tuple[str, str]
) -> Value:
    """Return which boxes overlap the one taken of their class by more than the threshold.

    Args:
        context: the node's.
        body: the round's.
        areas: of all boxes, each of shape [batch, 1, boxes].
        flat: the same, each of shape [batch * boxes].
        box: which box of `flat` was taken of each batch and class, int64 of shape
            [batch, classes, 1].
        bounds: iou_threshold and zero, floats of one element.

    Returns:
        a bool tensor of shape [batch, classes, boxes].
    """
    limit, zero = bounds

    def of_taken(name: str) -> str:
        return body.Gather(name, box, axis=0)

    sides = []
    for axis in range(2):
        begin = _extreme(context, body, "Max", areas.low[axis], of_taken(flat.low[axis]))
        end = _extreme(context, body, "Min", areas.high[axis], of_taken(flat.high[axis]))
        sides.append(body.Sub(end, begin))
    shared = body.Mul(*sides)
    together = body.Add(of_taken(flat.size), areas.size)
    union = body.Sub(together, shared)
    above = body.Greater(body.Div(shared, union), limit)
    # With one side and the area, so is the other side.
    meets = [body.Greater(name, zero) for name in (sides[0], shared)]
    return body.And(body.And(*meets), above)


def _extreme(context: Context, body: LoopBody, op_type: str, first: str, second: str) -> Value:
    """Return the Max or Min of two float tensors, broadcast also before opset 8."""
    if context.target_opset >= 8:
        return body.emit(op_type, first, second)
    comparison = "Greater" if op_type == "Max" else "Less"
    chosen = body.emit(comparison, first, second)
    return body.Where(chosen, first, second)
