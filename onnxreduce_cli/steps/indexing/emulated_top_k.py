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
    """Replace a TopK of unknown rank by one of rank 3, with the dims on both sides merged."""
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
    """Return the indices along the axis of the K largest elements: int64, shaped as the values.

    Each element is compared with each: the larger ones precede it, and of equal ones those with a
    lower index. NaN precedes all numbers.

    Args:
        context: the node's.
        numbers: [0, ..., length - 1], an int64 vector of the indices along the axis.
        first: [0, ..., K - 1], an int64 vector.
        axis: the axis, counted from the front.
        rank: the rank of the data.
    """
    op = context.op
    context.warn("along its axis each element is compared with each: memory for all those pairs")
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
    own, others = (unsqueezed(context, numbers, [at, *behind]) for at in (1, 0))
    earlier = op.Less(others, own)
    earlier_equal = op.And(op.Not(less), earlier)
    before = cast(context, op.Or(more, earlier_equal), TensorProto.INT64)
    order = reduced(context, "ReduceSum", before, [axis + 1], keep=False)
    wanted = unsqueezed(context, first, [1, *behind])
    hits = op.Equal(unsqueezed(context, order, [axis]), wanted)
    indices = op.Mul(cast(context, hits, TensorProto.INT64), others)
    return reduced(context, "ReduceSum", indices, [axis + 1], keep=False)


def of_64_bits(context: Context) -> None:
    """Replace a TopK of int64 or uint64 by two of double, by the lower and then the upper halves.

    Both keep the order of equal elements. A double represents each half exactly: the lower one is
    ``x mod 2**32``, the upper one what is left of x, rounded to a multiple of ``2**32`` again.
    """
    data, number = context.input(0), context.input(1)
    rank = context.specialised_rank(data)
    if rank is None:
        of_unknown_rank(context)
        return
    axis = context.value("axis", -1) % rank
    elem_type = context.need_elem_type(data, "it is taken apart")
    length = as_name(context, size_of(context, data, axis))
    context = context.at(13)
    op = context.op
    base = context.scalar(2**32, "base", elem_type)
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
    """Emit the elements at the int64 indices `order` along the axis, and these, as the outputs."""
    values, *indices = context.node.output
    if values:
        inputs = [context.input(0), order]
        context.replace("GatherElements", inputs, [values], keep=(), axis=axis)
    if indices and indices[0]:
        context.op.Identity(order, outputs=indices)
