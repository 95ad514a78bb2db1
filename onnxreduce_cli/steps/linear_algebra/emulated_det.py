"""Det below opset 11, which it came with, by Gaussian elimination."""

from __future__ import annotations

import math
from functools import partial

from onnx import TensorProto

from onnxreduce_cli.emit.axes import unsqueezed
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.loops import LoopBody, LoopValue, loop
from onnxreduce_cli.emit.numbers import Number, as_name, sizes
from onnxreduce_cli.emit.refusals import NO_LOOP
from onnxreduce_cli.emit.shapes import OPSET, product, reshaped
from onnxreduce_cli.emit.sizes import END, arange, dims_of, known_dims, size_of, sliced
from onnxreduce_cli.steps.registry import introduced

_DOUBLE = TensorProto.DOUBLE


def _sizes(context: Context, data: str) -> tuple[str, Number, Number]:
    """Return the shape without the matrices, int64 of shape [rank - 2], how many of these there
    are, and their size.
    """
    known = known_dims(dims_of(context, data))
    if known is not None:
        return context.array(list(known[:-2]), "batch"), math.prod(known[:-2]), known[-1]
    shape = context.op.Shape(data)
    batch = sliced(context, shape, 0, -2)
    return batch, sizes(context, product(context, batch)), size_of(context, data, -1)


@introduced(
    "Det",
    11,
    "a Loop that eliminates one column in each round, of the largest elements first",
    blocks=NO_LOOP,
)
def det(context: Context) -> None:
    """``Det(x)`` becomes ``Loop(n, x, 1)`` with a body that takes from every other row what makes
    its first element 0, the row with the largest first element times a factor; that row and the
    column are left out from there on, and the element goes into the product.

    Everything is computed in double. As with any such elimination NaN, and infinities that are not
    alone in their rows and columns, lead to NaN.
    """
    context = context.at(OPSET)
    op = context.op
    data, output = context.input(0), context.node.output[0]
    given = context.need_elem_type(data, "it is computed in double")
    batch, count, size = _sizes(context, data)
    names = [as_name(context, number) for number in (count, size, size)]
    shape = op.Concat(*names, axis=0)
    if given != _DOUBLE:
        data = cast(context, data, _DOUBLE)
    matrices = reshaped(context, data, shape, (None, None, None))
    numbers = arange(context, count)
    matrix = unsqueezed(context, numbers, [1])
    zero, one, two = (context.scalar(value, "number", _DOUBLE) for value in (0, 1, 2))
    ones = op.Add(op.Mul(cast(context, matrix, _DOUBLE), zero), one)
    others = sliced(context, arange(context, size), 1, END)
    step = partial(_eliminate, context, matrix, zero, one, two)
    carried = [
        LoopValue(matrices, _DOUBLE, (None, None, None)),
        LoopValue(others, TensorProto.INT64, (None,)),
        LoopValue(ones, _DOUBLE, (None, 1)),
    ]
    inputs, graph = loop(context, as_name(context, size), carried, step, "over the columns")
    _, _, result = op.Loop(*inputs, outputs=3, body=graph)
    if given != _DOUBLE:
        result = cast(context, result, given)
    reshaped(context, result, batch, output=output)


def _eliminate(
    context: Context, matrix: str, zero: str, one: str, two: str, body: LoopBody
) -> tuple[list[str], list[LoopValue]]:
    """Write one round of the elimination into the body of a Loop.

    Args:
        context: the node.
        matrix: the numbers of the matrices, int64 of shape [matrices, 1].
        zero: 0.0, a double, as are the next two.
        one: 1.0.
        two: 2.0.
        body: the body; carried through it are the matrices that are left, double of shape
            [matrices, n, n], the places of all rows but the first, int64 of shape [n - 1], and the
            products so far, double of shape [matrices, 1].
    """
    left, others, found = body.values
    first = context.scalar(0, "first")
    rows = body.Flatten(left, axis=2)
    column = body.Gather(left, first, axis=2)
    sizes = body.Abs(column)
    largest = body.ArgMax(sizes, axis=1, keepdims=1)
    height = body.Add(body.Shape(others), context.array([1], "one"))
    start = body.Mul(matrix, height)
    taken = body.Gather(rows, body.Add(start, largest), axis=0)
    # The first row takes the place of the one that is taken.
    same = body.Equal(others, largest)
    moved = body.Mul(others, body.Cast(same, to=int(TensorProto.INT64)))
    places = body.Add(start, body.Sub(others, moved))
    kept = body.Gather(rows, places, axis=0)
    pivot = body.Gather(taken, first, axis=2)
    reduced = _subtracted(context, taken, kept, pivot, zero, body)
    swapped = body.Cast(largest, to=int(TensorProto.BOOL))
    swaps = body.Cast(swapped, to=int(_DOUBLE))
    sign = body.Sub(one, body.Mul(swaps, two))
    signed = body.Mul(pivot, sign)
    ends = [context.array([index], "bound") for index in (0, -1, 0)]
    return [
        reduced,
        body.Slice(others, *ends),
        body.Mul(found, signed),
    ], []


def _subtracted(
    context: Context, taken: str, kept: str, pivot: str, zero: str, body: LoopBody
) -> str:
    """Write what subtracts a multiple of one row from all others, so that their heads become 0.

    Args:
        context: the node.
        taken: the row of each matrix, double of shape [matrices, 1, n].
        kept: the other rows, double of shape [matrices, n - 1, n].
        pivot: the rows' first elements, double of shape [matrices, 1].
        zero: 0.0, a double.
        body: the body that it is written into.

    Returns:
        the other rows without their heads, double of shape [matrices, n - 1, n - 1].
    """
    head = [context.array([index], "bound") for index in (0, 1, 2)]
    tail = [context.array([index], "bound") for index in (1, END, 2)]
    # Where it is 0, the others are too: by 1 they can be divided.
    other = body.Not(body.Greater(body.Abs(pivot), zero))
    divisor = body.Add(pivot, body.Cast(other, to=int(_DOUBLE)))
    divisor = body.Unsqueeze(divisor, context.array([2], "axis"))
    heads = body.Slice(kept, *head)
    factors = body.Div(heads, divisor)
    row = body.Slice(taken, *tail)
    rest = body.Slice(kept, *tail)
    return body.Sub(rest, body.Mul(factors, row))
