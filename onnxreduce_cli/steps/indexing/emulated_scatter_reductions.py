"""ScatterElements and ScatterND with a reduction, below opsets 16 and 18, in a Loop.

Each round takes a part of the indices in which none occurs twice.
"""

from __future__ import annotations

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.loops import LoopBody, LoopValue, loop
from onnxreduce_cli.emit.numbers import Number, as_name, as_shape, sizes
from onnxreduce_cli.emit.refusals import need_loops
from onnxreduce_cli.emit.sizes import END, dims_of, size_of, sliced


def reduced_elements(context: Context, op_type: str) -> None:
    """``ScatterElements<reduction="add">(x, indices, updates)`` becomes, for each slice i of the
    indices along the axis and u of the updates, one after the other,
    ``x = ScatterElements(x, i, Add(GatherElements(x, i), u))``.

    Args:
        context: the context of the node.
        op_type: the binary operator that reduces.
    """
    data = _carried_data(context)
    indices, updates = context.input(1), context.input(2)
    axis = context.value("axis", 0)
    if data.dims is not None:
        axis %= max(len(data.dims), 1)

    def write(body: LoopBody) -> tuple[list[str], list[LoopValue]]:
        (now,) = body.values
        where = body.this(indices, axis)
        old = body.GatherElements(now, where, axis=axis)
        new = body.emit(op_type, old, body.this(updates, axis))
        return [body.ScatterElements(now, where, new, axis=axis)], []

    length = as_name(context, size_of(context, indices, axis))
    inputs, graph = loop(context, length, [data], write, "over its indices")
    context.replace("Loop", inputs, keep=(), body=graph)


def reduced_slices(context: Context, op_type: str) -> None:
    """``ScatterND<reduction="add">(x, indices, updates)`` becomes, for each index i and its
    update u, one after the other, ``x = ScatterND(x, i, Add(GatherND(x, i), u))``.

    Args:
        context: the context of the node.
        op_type: the binary operator that reduces.
    """
    op = context.op
    data = _carried_data(context)
    indices, updates = context.input(1), context.input(2)
    depth = size_of(context, indices, -1)
    vectors = op.Reshape(indices, as_shape(context, [-1, depth]))
    count = size_of(context, vectors, 0)
    values = op.Reshape(
        updates, as_shape(context, [count, *_slice_dims(context, depth)]), allowzero=1
    )

    def write(body: LoopBody) -> tuple[list[str], list[LoopValue]]:
        (now,) = body.values
        where = body.this(vectors, 0)
        old = body.GatherND(now, where)
        new = body.emit(op_type, old, body.this(values, 0))
        return [body.ScatterND(now, where, new)], []

    inputs, graph = loop(context, as_name(context, count), [data], write, "over its indices")
    context.replace("Loop", inputs, keep=(), body=graph)


def _carried_data(context: Context) -> LoopValue:
    """Return the node's data, with its dtype and dims, as a value that a Loop carries."""
    name, since = context.input(0), context.op.opset + 1
    need_loops(context, f"before opset {since} only a Loop reduces what it scatters", since)
    elem_type = context.need_elem_type(name, "it goes through a Loop")
    return LoopValue(name, elem_type, dims_of(context, name))


def _slice_dims(context: Context, depth: Number) -> list[Number]:
    """Return the dims of a slice: one number for each dimension behind the `depth` indexed ones.

    Where depth or rank is not known, the list has one item, an int64 vector of them all.
    """
    data = context.input(0)
    dims = dims_of(context, data)
    if dims is not None and isinstance(depth, int):
        return [size_of(context, data, axis) for axis in range(depth, len(dims))]
    return [sizes(context, sliced(context, context.op.Shape(data), depth, END))]
