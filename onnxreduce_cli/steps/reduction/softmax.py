"""Softmax, LogSoftmax and Hardmax: 11 and 13.

- Up to 12 they see the input as a matrix: all dimensions from `axis` on (by default 1) are
  normalised together. 11 allowed a negative axis, and none that is the rank.
- 13 normalises over the one dimension `axis` (by default the last).

Data of unknown rank is in `emulated_softmax`.
"""

from __future__ import annotations

from onnxreduce_cli.emit.axes import non_negative_axes
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.refusals import NO_RANK
from onnxreduce_cli.model.graph.values import Dims, ValueType
from onnxreduce_cli.schemas import SOFTMAX
from onnxreduce_cli.steps.registry import down, up

# 13: all dimensions from the axis on, or the one


@up(SOFTMAX, 13, "over all trailing dimensions: the one that is not 1, or Flatten and Reshape")
def matrix_to_one_axis(context: Context) -> None:
    """``Softmax<axis=1>(x)``, x of shape [N, C, 1], stays; for [N, C, H] it becomes
    ``Reshape(Softmax<axis=-1>(Flatten<axis=1>(x)), Shape(x))``.
    """
    axis = context.value("axis", 1)
    data = context.input(0)
    dims = data.dims
    if dims is None:
        if axis == -1:
            return  # The last dimension alone, whatever the rank.
    else:
        axis = non_negative_axes((axis,), len(dims))[0]
        wide = [index for index in range(axis, len(dims)) if dims[index] != 1]
        if len(wide) <= 1:
            if context.attribute("axis") is None or wide not in ([], [axis]):
                context.replace(axis=wide[0] if wide else axis)
            return
        if 0 in dims:
            context.replace("Identity", keep=())  # No elements: nothing to compute.
            return
    flat = context.op.Flatten(data, axis=axis)
    matrix = context.replace(inputs=[flat], outputs=[context.fresh("matrix")], axis=-1).output[0]
    restore_shape(context, matrix, axis, dims)


def restore_shape(context: Context, matrix: str, axis: int, dims: Dims | None) -> None:
    """Reshape the result of a Softmax of the flattened data to the shape of the data.

    A zero in Reshape's shape means "as in the input at this index". For the matrix that is right
    of the first two dimensions only, and of those not always, so where a dimension may be zero
    it takes `allowzero` from opset 14 on, and an If before.

    Args:
        context: the context of the node.
        matrix: the result, of shape [product of dims[:axis], product of dims[axis:]].
        axis: the axis at which the data is flattened.
        dims: the dimensions of the data; None if not even the rank is known.
    """
    data, output = context.input(0), context.node.output[0]
    shape = context.op.Shape(data)
    if dims is not None and _zeros_are_copied(dims, axis):
        context.op.Reshape(matrix, shape, outputs=[output])
    elif context.reaches(14) or not context.may_loop:
        # The attribute was introduced one opset after this node's, which is converted upwards.
        context.at(14).op.Reshape(matrix, shape, outputs=[output], allowzero=1)
    else:
        from onnxreduce_cli.steps.reduction.emulated_softmax import reshape_unless_empty

        reshape_unless_empty(context, matrix, shape)


def _zeros_are_copied(dims: Dims, axis: int) -> bool:
    """Return whether Reshape copies each dimension that may be zero rightly from the matrix.

    A zero at index 0 or 1 is copied rightly if the product at that index of the matrix contains it.
    """
    uncertain = [index for index, dim in enumerate(dims) if not isinstance(dim, int)]
    return all(index == 0 < axis or index == 1 >= axis for index in uncertain)


@down(
    SOFTMAX,
    13,
    "an axis that is not the last is transposed to the end and back",
    blocks=NO_RANK,
)
def one_axis_to_matrix(context: Context) -> None:
    """``Softmax<axis=1>(x)``, x of rank 3, becomes
    ``Transpose<perm=[0,2,1]>(Softmax<axis=2>(Transpose<perm=[0,2,1]>(x)))``.
    """
    axis = context.value("axis", -1)
    data = context.input(0)
    known = data.type
    if known is None or known.dims is None:
        if axis == -1:
            _write_out(context, -1)
        else:
            context.specialised_rank(data)
            from onnxreduce_cli.steps.reduction.emulated_softmax import viewed_around_axis

            viewed_around_axis(context, axis)
        return
    dims = known.dims
    axis = non_negative_axes((axis,), len(dims))[0]
    if all(dim == 1 for dim in dims[axis + 1 :]):
        _write_out(context, axis)
        return
    as_last_axis(context, known, dims, axis)


def as_last_axis(context: Context, known: ValueType, dims: Dims, axis: int) -> None:
    """``Softmax<axis=1>(x)``, x of rank 3, becomes
    ``Transpose<perm=[0,2,1]>(Softmax<axis=2>(Transpose<perm=[0,2,1]>(x)))``.

    Args:
        context: the context of the node.
        known: the type of x.
        dims: its dimensions.
        axis: the one dimension that counts, from the front.
    """
    op, data, rank = context.op, context.input(0), len(dims)
    perm = [index for index in range(rank) if index != axis] + [axis]
    inverse = [perm.index(index) for index in range(rank)]
    like = ValueType(known.kind, known.elem_type, tuple(dims[index] for index in perm))
    transposed = op.Transpose(data, like=like, perm=perm)
    result = context.replace(inputs=[transposed], outputs=[context.fresh("last")], axis=rank - 1)
    op.Transpose(result.output[0], outputs=[context.node.output[0]], perm=inverse)


def _write_out(context: Context, axis: int) -> None:
    """Keep the axis, which need only be written out where it was the default."""
    if context.attribute("axis") is None:
        context.replace(axis=axis)


# 11: an axis from -rank to rank - 1; before that, none that is negative


@up(SOFTMAX, 11, "an axis that may be the rank: a last dimension of size 1 for the time being")
def axis_at_rank(context: Context) -> None:
    """``Softmax<axis=1>(x)`` with x of rank 1, which normalises each element by itself, becomes
    ``Squeeze<axes=[-1]>(Softmax<axis=1>(Unsqueeze<axes=[-1]>(x)))``, and so it does with x of
    unknown rank. From 13 on the input is flattened where its rank is unknown, at any axis.
    """
    rank, axis = context.input(0).rank, context.value("axis", 1)
    if axis < 0 or (context.reaches(13) if rank is None else axis != rank):
        return
    elements = context.op.Unsqueeze(context.input(0), axes=[-1])
    result = context.replace(inputs=[elements], outputs=[context.fresh("elements")])
    context.op.Squeeze(result.output[0], outputs=[context.node.output[0]], axes=[-1])


@down(
    SOFTMAX,
    11,
    "negative axis made non-negative; of unknown rank, that of a matrix",
    blocks=NO_RANK,
)
def softmax_axis_from_front(context: Context) -> None:
    """``Softmax<axis=-1>(x)`` with x of rank 3 becomes ``Softmax<axis=2>(x)``, of unknown rank
    ``Reshape(Softmax<axis=1>(Flatten<axis=-1>(x)), Shape(x))``.
    """
    if all(axis >= 0 for axis in context.possible_values("axis", 1)):
        return
    axis = context.value("axis")
    rank = context.specialised_rank(context.input(0))
    if rank is not None:
        context.replace(axis=non_negative_axes((axis,), rank)[0])
    else:
        from onnxreduce_cli.steps.reduction.emulated_softmax import as_rows

        as_rows(context, axis)
