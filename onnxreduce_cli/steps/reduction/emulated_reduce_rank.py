"""Reductions over any axes where the rank is not known: over the columns of a matrix.

The places of the elements are computed at run time in the flattened data: those that come together
in one row of a matrix, whose columns go along the axes. Each row is reduced by the operator itself,
so that all of its dtypes and its empty sets come out as ever.
"""

from __future__ import annotations

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Blocked, Context
from onnxreduce_cli.emit.numbers import END, LOOPS_FROM, part, squeezed, unsqueezed
from onnxreduce_cli.model.values import tensor_type


def reduce_rows(context: Context, axes: str, *, noop: bool) -> None:
    """``ReduceMax(x, axes)`` becomes ``Reshape(ReduceMax<axes=[1]>(Gather(x, places)), shape)``.

    Args:
        context: the node's.
        axes: a list of int64.
        noop: whether empty axes are no axes; else they are all.

    Raises:
        Blocked: the conversion leads below opset 7.
    """
    _need_places(context)
    context = context.at(max(context.op.opset, shapes.OPSET))
    op = context.op
    data = context.input(0)
    elem_type = context.need_elem_type(data, "its elements are gathered")
    one = context.array([1], "one")
    rank = shapes.rank_at_run_time(context, data)
    axes = shapes.axes_from_front(context, axes, rank)
    # With a dimension of 1 in front there is always one.
    axes = op.Add(axes, one)
    sizes = op.Concat(one, op.Shape(data), axis=0)
    chosen = _chosen(context, op.Shape(sizes), axes, noop=noop)
    kept_sizes = op.Where(chosen, one, sizes)
    apart = shapes.strides(context, sizes)
    rows = unsqueezed(context, shapes.places(context, kept_sizes, apart), [1])
    columns_sizes = op.Where(chosen, sizes, one)
    columns = shapes.places(context, columns_sizes, apart)
    places = op.Add(rows, columns)
    inputs = [shapes.flat(context, data), places]
    like = tensor_type(elem_type, (None, None))
    matrix = op.Gather(*inputs, like=like, axis=0)
    by_input = context.node.op_type == "ReduceSum" or context.op.opset >= 18
    result = context.replace(
        inputs=[matrix, one] if by_input else [matrix],
        outputs=[context.fresh("rows")],
        drop=("noop_with_empty_axes",),
        axes=None if by_input else [1],
        keepdims=0,
    )
    shape = part(context, kept_sizes, 1, END)
    if not context.value("keepdims", 1):
        left: str = op.Not(part(context, chosen, 1, END))
        left = squeezed(context, op.NonZero(left), [0])
        shape = op.Gather(shape, left, axis=0)
    shapes.reshaped(context, result.output[0], shape, output=context.node.output[0])


def _need_places(context: Context) -> None:
    """Raise `Blocked` where the conversion leads below opset 7."""
    if context.target_opset < LOOPS_FROM:
        raise Blocked(
            f"the rank of {context.input(0)!r} is not known, and before opset 11 axes are not "
            "counted from the back",
            f"choose opset {LOOPS_FROM} or later, or state its shape in the model's value_info or "
            "inputs",
        )


def _chosen(context: Context, rank: str, axes: str, *, noop: bool) -> Value:
    """For each axis whether it is reduced."""
    op = context.op
    chosen = shapes.among(context, rank, axes)
    if noop:
        return chosen
    number = op.Shape(axes)
    none = op.Equal(number, context.array([0], "zero"))
    return op.Or(chosen, none)
