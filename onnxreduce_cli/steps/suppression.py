"""NonMaxSuppression below the opset that it came with: boxes are selected one by one in a Loop."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.steps.births import NO_LOOP, arange, as_name, born, dims_of, size_of, static
from onnxreduce_cli.steps.context import Context
from onnxreduce_cli.steps.loops import Body, Carried, Round, loop


@born("NonMaxSuppression", 10, "a Loop that selects a box of every class at once", blocks=NO_LOOP)
def non_max_suppression(context: Context) -> None:
    """``NonMaxSuppression(boxes, scores, count, iou_threshold, score_threshold)`` becomes a Loop of
    up to `count` rounds over the candidates, a bool for each batch, class and box.

    Each round takes the best that is left of every class, and leaves out those that overlap it too
    much. What was taken of classes that had any left is put in order by NonZero.
    """
    context = context.at(13)
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
        candidates = context.emit("Greater", [scores, threshold], "candidates")
    else:
        outside = context.emit("Less", [scores, threshold], "outside")
        candidates = context.emit("Not", [outside], "candidates")
    write = _round(context, scores, areas)
    dims = dims_of(context, scores)
    carried = Carried(candidates, TensorProto.BOOL, dims)
    inputs, body = loop(context, _rounds(context, count, scores), [carried], write)
    names = [context.fresh(hint) for hint in ("left", "taken", "was_left")]
    context.emit("Loop", inputs, outputs=names, body=body)
    _, taken, was_left = names
    perm = [1, 2, 0, 3]
    taken, was_left = (
        context.emit("Transpose", [name], "by_class", perm=perm) for name in (taken, was_left)
    )
    places = context.emit("NonZero", [was_left], "places")
    first = context.emit("Gather", [places, context.array([0, 1], "first")], "classes", axis=0)
    flat = context.array([-1], "flat")
    parts = [context.emit("Reshape", [name, flat], "flat") for name in (taken, was_left)]
    selected = context.emit("Compress", parts, "boxes", axis=0)
    row = context.emit("Unsqueeze", [selected, context.array([0], "axes")], "boxes")
    rows = context.emit("Concat", [first, row], "selected", axis=0)
    context.replace("Transpose", [rows], keep=(), perm=[1, 0])


def _of_rank_3(context: Context, name: str) -> str:
    if context.rank(name) is not None:
        return name
    return context.emit("Reshape", [name, context.array([0, 0, 0], "shape")], "of_rank_3")


def _rounds(context: Context, count: str, scores: str) -> str:
    """How many boxes are to be selected of a class, at most as many as there are scores."""
    known, dims = context.constant(count), static(dims_of(context, scores))
    if known is not None and dims is not None:
        return context.scalar(min(int(known.reshape(-1)[0]), math.prod(dims)), "rounds")
    if context.rank(count) != 0:
        count = context.emit("Reshape", [count, context.array([], "scalar")], "count")
    size = context.emit("Size", [scores], "size")
    fewer = context.emit("Less", [count, size], "fewer")
    return context.emit("Where", [fewer, count, size], "rounds")


@dataclass(frozen=True)
class _Areas:
    """Where boxes begin and end on two axes, and how large they are; each of shape [B, 1, n]."""

    low: tuple[str, str]
    high: tuple[str, str]
    size: str


def _areas(context: Context, boxes: str) -> _Areas:
    parts = []
    for index in range(4):
        part = context.emit("Gather", [boxes, context.scalar(index, "part")], "part", axis=2)
        parts.append(context.emit("Unsqueeze", [part, context.array([1], "axes")], "part"))
    low, high = [], []
    for one, other in zip(parts[:2], parts[2:], strict=True):
        if context.value("center_point_box", 0):
            half = context.emit("Div", [other, context.scalar(2.0, "two")], "half")
            low.append(context.emit("Sub", [one, half], "low"))
            high.append(context.emit("Add", [one, half], "high"))
        else:
            beyond = context.emit("Greater", [one, other], "is_turned")
            low.append(context.emit("Where", [beyond, other, one], "low"))
            high.append(context.emit("Where", [beyond, one, other], "high"))
    sides = [context.emit("Sub", pair, "side") for pair in zip(high, low, strict=True)]
    return _Areas((low[0], low[1]), (high[0], high[1]), context.emit("Mul", sides, "area"))


def _round(context: Context, scores: str, areas: _Areas) -> Round:
    """Writes what a round does."""
    flat = context.array([-1], "flat")

    def flattened(name: str) -> str:
        return context.emit("Reshape", [name, flat], "flat")

    low, high = ([flattened(name) for name in names] for names in (areas.low, areas.high))
    size = flattened(areas.size)
    length = size_of(context, scores, 2)
    numbers = arange(context, length)
    before = context.emit(
        "Mul", [arange(context, size_of(context, scores, 0)), as_name(context, length)]
    )
    offsets = context.emit("Reshape", [before, context.array([-1, 1, 1], "shape")], "offsets")
    lowest = context.scalar(-np.inf, "lowest")
    limit = context.input(3) or context.scalar(0.0, "zero")
    zero = context.scalar(0.0, "zero")

    def write(body: Body) -> tuple[list[str], list[Carried]]:
        (left,) = body.values
        open_scores = body.emit("Where", [left, scores, lowest], "open")
        best = body.emit("ReduceMax", [open_scores], "best", axes=[2])
        below = body.emit("Less", [open_scores, best], "below")
        best_left = body.emit("And", [left, body.emit("Not", [below])], "is_best")
        hits = body.emit("Cast", [best_left], "hits", to=int(TensorProto.FLOAT))
        taken = body.emit("ArgMax", [hits], "taken", axis=2)
        any_left = body.emit("ReduceMax", [hits], "any_left", axes=[2])
        was_left = body.emit("Cast", [any_left], "was_left", to=int(TensorProto.BOOL))
        place = body.emit("Add", [taken, offsets], "place")

        def of_taken(name: str) -> str:
            return body.emit("Gather", [name, place], "of_taken", axis=0)

        sides = []
        for axis in range(2):
            begin = _extreme(context, body, "Max", areas.low[axis], of_taken(low[axis]))
            end = _extreme(context, body, "Min", areas.high[axis], of_taken(high[axis]))
            sides.append(body.emit("Sub", [end, begin], "shared_side"))
        shared = body.emit("Mul", sides, "shared")
        together = body.emit("Add", [of_taken(size), areas.size], "together")
        union = body.emit("Sub", [together, shared], "union")
        above = body.emit("Greater", [body.emit("Div", [shared, union], "iou"), limit], "above")
        # With one side and the area, so is the other side.
        meets = [body.emit("Greater", [name, zero], "meets") for name in (sides[0], shared)]
        overlaps = body.emit("And", [body.emit("And", meets), above], "overlaps")
        itself = body.emit("Equal", [numbers, taken], "itself")
        gone = body.emit("Or", [overlaps, itself], "gone")
        rest = body.emit("And", [left, body.emit("Not", [gone])], "rest")
        more = body.emit("Cast", [rest], "more", to=int(TensorProto.FLOAT))
        more = body.emit("ReduceMax", [more], "more", keepdims=0)
        body.again = body.emit("Cast", [more], "more", to=int(TensorProto.BOOL))
        dims = (dims_of(context, scores) or (None, None))[:2]
        return [rest], [
            Carried(taken, TensorProto.INT64, (*dims, 1)),
            Carried(was_left, TensorProto.BOOL, (*dims, 1)),
        ]

    return write


def _extreme(context: Context, body: Body, op_type: str, first: str, second: str) -> str:
    """The larger or the smaller of two; Max and Min take one shape only before opset 8."""
    if context.target_opset >= 8:
        return body.emit(op_type, [first, second])
    comparison = "Greater" if op_type == "Max" else "Less"
    chosen = body.emit(comparison, [first, second], "is_first")
    return body.emit("Where", [chosen, first, second], op_type)
