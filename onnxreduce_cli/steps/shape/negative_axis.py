"""ArgMax, ArgMin, Compress, Concat and Split: 11 allowed the attribute `axis` to be negative.

The negative axes of all other operators are in the files of these.
"""

from __future__ import annotations

from onnxreduce_cli.emit.axes import non_negative_axes
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.reversed_dims import replace_with_reversed_dims, reversed_axes
from onnxreduce_cli.steps.registry import down

_DESCRIPTION = "negative axis made non-negative; of unknown rank, that of the transposed tensor"


@down(("ArgMax", "ArgMin", "Compress", "Concat", "Split"), 11, _DESCRIPTION)
def axis_from_front(context: Context) -> None:
    """``Split<axis=-1>(x)`` with x of rank 3 becomes ``Split<axis=2>(x)``, of unknown rank
    ``Transpose(Split<axis=0>(Transpose(x)))``.
    """
    if all(axis >= 0 for axis in context.possible_values("axis", 0)):
        return
    axis = context.value("axis")
    tensors = range(len(context.node.input)) if context.node.op_type == "Concat" else (0,)
    ranks = (context.specialised_rank(context.input(index)) for index in tensors)
    rank = next((rank for rank in ranks if rank is not None), None)
    if rank is not None:
        context.replace(axis=non_negative_axes((axis,), rank)[0])
    else:
        replace_with_reversed_dims(context, tensors, axis=reversed_axes([axis])[0])
