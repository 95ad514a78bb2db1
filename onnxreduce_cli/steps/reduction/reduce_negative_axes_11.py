"""Reduce* (ReduceSum, ReduceMean, ReduceMax, ...) 11 to 10: negative axes, which 11 allowed."""

from __future__ import annotations

from onnxreduce_cli.emit.axes import non_negative_axes
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.refusals import NO_RANK
from onnxreduce_cli.emit.reversed_dims import replace_with_reversed_dims, reversed_axes
from onnxreduce_cli.schemas import REDUCE
from onnxreduce_cli.steps.registry import down


@down(
    REDUCE,
    11,
    "negative axes made non-negative; of unknown rank, those of the transposed tensor",
    blocks=f"axes are counted from both ends, and {NO_RANK}",
)
def reduce_axes_from_front(context: Context) -> None:
    """``ReduceMean<axes=[-1]>(x)`` with x of rank 3 becomes ``ReduceMean<axes=[2]>(x)``, of
    unknown rank ``Transpose(ReduceMean<axes=[0]>(Transpose(x)))``.

    Where the rank is unknown and only some axes are negative, they all become the columns of a
    matrix.
    """
    possible = context.possible_values("axes", ())
    if all(axis >= 0 for axes in possible for axis in axes):
        return
    axes, rank = context.value("axes"), context.specialised_rank(context.input(0))
    if rank is not None:
        context.replace(axes=non_negative_axes(axes, rank))
    elif max(axes) < 0:
        replace_with_reversed_dims(context, axes=reversed_axes(axes))
    else:
        from onnxreduce_cli.steps.reduction.emulated_reduce_rank import reduce_matrix_rows

        reduce_matrix_rows(context, context.array(list(axes), "axes"), noop=False)
