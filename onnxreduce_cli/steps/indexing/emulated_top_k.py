"""TopK where neither rank nor size is known (below opset 10) and of 64-bit integers (below 11)."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.axes import reduced, unsqueezed
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import as_name
from onnxreduce_cli.emit.shapes import OPSET, around, reshaped
from onnxreduce_cli.emit.sizes import END, size_of, sliced


def of_unknown_rank(context: Context) -> None:
    """Take the dimensions before the axis as one, and those behind it: TopK of rank 3."""
    context = context.at(OPSET)
    op = context.op
    axis = context.value("axis", -1)
    view = around(context, context.input(0), axis)
    number = op.Reshape(context.input(1), context.array([1], "one"))
    outputs = [context.fresh("found") if name else "" for name in context.node.output]
    context.replace(inputs=[view.name, number], outputs=outputs, axis=1)
    sizes = [sliced(context, view.shape, 0, axis), number]
    if axis != -1:
        sizes.append(sliced(context, view.shape, axis + 1, END))
    shape = op.Concat(*sizes, axis=0)
    for name, output in zip(outputs, context.node.output, strict=True):
        if output:
            reshaped(context, name, shape, output=output)


def order_by_counting(context: Context, numbers: str, first: str, axis: int, rank: int) -> str:
    """The indices along the axis of the K largest elements: int64, of the shape of the values.

    Each element is compared with each: those that are larger come before it, and of those that are
    equal the ones with a lower index. NaN comes before all numbers.

    Args:
        context: the node's.
        numbers: an int64 tensor that counts the elements along the axis from 0 on.
        first: an int64 tensor that counts from 0 to K - 1.
        axis: the axis, counted from the front.
        rank: the rank of the data.
    """
    op = context.op
    data = context.input(0)
    behind = list(range(2, rank - axis + 1))
    one, other = (unsqueezed(context, data, [at]) for at in (axis + 1, axis))
    nan = op.IsNaN(data)
    one_nan, other_nan = (unsqueezed(context, nan, [at]) for at in (axis + 1, axis))
    more, less = (
        op.Or(op.emit(op_type, other, one), op.And(nans[0], op.Not(nans[1])))
        for op_type, nans in (
            ("Greater", (other_nan, one_nan)),
            ("Less", (one_nan, other_nan)),
        )
    )
    rows, columns = (unsqueezed(context, numbers, [at, *behind]) for at in (1, 0))
    earlier = op.Less(columns, rows)
    earlier_equal = op.And(op.Not(less), earlier)
    before = cast(context, op.Or(more, earlier_equal), TensorProto.INT64)
    place = reduced(context, "ReduceSum", before, [axis + 1], keep=False)
    wanted = unsqueezed(context, first, [1, *behind])
    hits = op.Equal(unsqueezed(context, place, [axis]), wanted)
    found = op.Mul(cast(context, hits, TensorProto.INT64), columns)
    return reduced(context, "ReduceSum", found, [axis + 1], keep=False)


def of_64_bits(context: Context) -> None:
    """Order int64 or uint64 by their lower halves, and what comes of that by the upper ones.

    The order of equal elements is kept each time. A double holds each half: the lower one is
    ``x mod 2**32``, the upper one what is left of x, rounded to a multiple of ``2**32`` again.
    """
    data, number = context.input(0), context.input(1)
    rank = context.specialised_rank(data)
    if rank is None:
        of_unknown_rank(context)
        return
    axis = context.value("axis", -1) % rank
    given = context.need_elem_type(data, "it is taken apart")
    length = as_name(context, size_of(context, data, axis))
    context = context.at(13)
    op = context.op
    base = context.scalar(2**32, "base", given)
    rest = cast(context, op.Mod(data, base), TensorProto.DOUBLE)
    apart = op.Sub(cast(context, data, TensorProto.DOUBLE), rest)
    inverse, half = (context.scalar(n, "part", TensorProto.DOUBLE) for n in (2.0**-32, 0.5))
    scaled = op.Mul(apart, inverse)
    upper = op.Floor(op.Add(scaled, half))
    values = {"axis": axis, "largest": context.attribute("largest")}
    _, order = op.TopK(rest, length, outputs=2, **values)
    upper = op.GatherElements(upper, order, axis=axis)
    _, places = op.TopK(upper, number, outputs=2, **values)
    chosen = op.GatherElements(order, places, axis=axis)
    gather_at(context, chosen, axis)


def gather_at(context: Context, order: str, axis: int) -> None:
    """Give the elements at the indices `order` (int64) and these as the node's outputs."""
    values, *indices = context.node.output
    if values:
        inputs = [context.input(0), order]
        context.replace("GatherElements", inputs, [values], keep=(), axis=axis)
    if indices and indices[0]:
        context.op.Identity(order, outputs=indices)
