"""The Reduce family where the rank of the data is not known: over the columns of a matrix.

The indices of the elements in the flattened data are computed at run time, as a matrix: what is
reduced to one element stands in one row. Each row is reduced by the operator itself, so that all of
its dtypes and its empty sets come out as ever.
"""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.axes import squeezed, unsqueezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.loops import LoopBody, LoopValue, loop
from onnxreduce_cli.emit.numbers import sizes
from onnxreduce_cli.emit.refusals import COUNTING_FROM, LOOPS_FROM, OR_STATE_SHAPES, need_loops
from onnxreduce_cli.emit.sizes import END, sliced
from onnxreduce_cli.model.graph.values import tensor_type


def reduce_matrix_rows(context: Context, axes: str, *, noop: bool) -> None:
    """``ReduceMax(x, axes)`` becomes ``Reshape(ReduceMax<axes=[1]>(Gather(x, indices)), shape)``.

    Args:
        context: the context of the node.
        axes: the axes, int64 of shape [k], counted from either end.
        noop: whether empty axes mean none; else they mean all.

    Raises:
        Blocked: the conversion leads below opset 7.
    """
    _need_negative_axes(context)
    context = context.at(max(context.op.opset, shapes.OPSET))
    op = context.op
    data = context.input(0)
    elem_type = context.need_elem_type(data, "its elements are gathered")
    one = context.array([1], "one")
    rank = shapes.rank_at_run_time(context, data)
    axes = shapes.axes_from_front(context, axes, sizes(context, rank))
    # A first dimension of 1 is added, so that there is always one.
    axes = op.Add(axes, one)
    dims = op.Concat(one, op.Shape(data), axis=0)
    reduced = _is_reduced(context, op.Shape(dims), axes, noop=noop)
    kept_sizes = op.Where(reduced, one, dims)
    strides = shapes.strides(context, dims)
    row_starts = unsqueezed(context, shapes.flat_indices(context, kept_sizes, strides), [1])
    reduced_sizes = op.Where(reduced, dims, one)
    columns = shapes.flat_indices(context, reduced_sizes, strides)
    indices = op.Add(row_starts, columns)
    like = tensor_type(elem_type, (None, None))
    matrix = op.Gather(shapes.flat(context, data), indices, like=like, axis=0)
    axes_are_input = context.node.op_type == "ReduceSum"  # Before opset 18 of no other.
    result = context.replace(
        inputs=[matrix, one] if axes_are_input else [matrix],
        outputs=[context.fresh("rows")],
        drop=("noop_with_empty_axes",),
        axes=None if axes_are_input else [1],
        keepdims=0,
    )
    shape = sliced(context, kept_sizes, 1, END)
    if not context.value("keepdims", 1):
        shape = _kept(context, shape, op.Not(sliced(context, reduced, 1, END)))
    shapes.reshaped(context, result.output[0], shape, output=context.node.output[0])


def _kept(context: Context, dims: str, kept: str) -> Value:
    """Return those of the dimensions that are kept: int64 of shape [n].

    Before NonZero a Loop puts them behind each other, each as often as it is kept.

    Args:
        context: the context of the node.
        dims: the dimensions, int64 of shape [rank].
        kept: for each whether it is kept, bool of shape [rank].
    """
    op = context.op
    if context.reaches(COUNTING_FROM):
        return op.Gather(dims, squeezed(context, op.NonZero(kept), [0]), axis=0)
    need_loops(
        context,
        f"the rank of {context.input(0)!r} is not known, and before opset 9 only a Loop finds the "
        "dimensions that are kept",
        COUNTING_FROM,
        OR_STATE_SHAPES,
        rank_of=context.input(0),
    )
    times = cast(context, kept, TensorProto.INT64)

    def write(body: LoopBody) -> tuple[list[str], list[LoopValue]]:
        repeated = body.Tile(body.this(dims, 0), body.this(times, 0))
        return [body.Concat(*body.values, repeated, axis=0)], []

    carried = [LoopValue(sliced(context, dims, 0, 0), TensorProto.INT64, (None,))]
    inputs, graph = loop(context, op.Shape(dims), carried, write, "over the dimensions")
    return op.Loop(*inputs, like=tensor_type(TensorProto.INT64, (None,)), body=graph)


def _need_negative_axes(context: Context) -> None:
    """Raise `Blocked` where the conversion leads below opset 7."""
    if not context.reaches(LOOPS_FROM):
        raise Blocked(
            f"the rank of {context.input(0)!r} is not known, and before opset 11 axes are not "
            "counted from the back",
            f"choose opset {LOOPS_FROM} or later, or state its shape in the model's value_info or "
            "inputs",
            rank_of=context.input(0),
        )


def _is_reduced(context: Context, rank: str, axes: str, *, noop: bool) -> Value:
    """Return for each dimension whether it is reduced: bool of shape [rank].

    Args:
        context: the context of the node.
        rank: the number of dimensions, int64 of shape [1].
        axes: the axes counted from the front, int64 of shape [k].
        noop: whether empty axes mean none; else they mean all.
    """
    op = context.op
    found = shapes.among(context, sizes(context, rank), axes)
    if noop:
        return found
    number = op.Shape(axes)
    none = op.Equal(number, context.array([0], "zero"))
    return op.Or(found, none)
