"""The attribute `axis`: 11 allowed it to be counted from the back in six operators.

Concat also had a default for it before opset 4. The lists of axes of the Reduce family and of
Squeeze stand with those operators, the axis of TopK and OneHot with what else changed in them.
"""

from __future__ import annotations

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.axes import normalised
from onnxreduce_cli.emit.context import Blocked, Context
from onnxreduce_cli.emit.reversed_dims import mirrored_axes, replace_mirrored
from onnxreduce_cli.steps.registry import down, up

_WORDS = "negative axis made non-negative; of unknown rank, that of the mirrored tensor"


@up("Concat", 4, "axis: its default 1 written out")
def axis_written_out(context: Context) -> None:
    """``Concat(x, y)`` becomes ``Concat<axis=1>(x, y)``."""
    if context.attribute("axis") is None:
        context.replace(axis=1)


@down(("ArgMax", "ArgMin", "Compress", "Concat", "Split"), 11, _WORDS)
def axis_of_a_dimension(context: Context) -> None:
    """``Split<axis=-1>(x)`` with x of rank 3 becomes ``Split<axis=2>(x)``, of unknown rank
    ``Transpose(Split<axis=0>(Transpose(x)))``.
    """
    if all(axis >= 0 for axis in context.possible_values("axis", 0)):
        return
    axis = context.value("axis")
    tensors = range(len(context.node.input)) if context.node.op_type == "Concat" else (0,)
    ranks = (context.settled_rank(context.input(index)) for index in tensors)
    rank = next((rank for rank in ranks if rank is not None), None)
    if rank is not None:
        context.replace(axis=normalised((axis,), rank)[0])
    else:
        replace_mirrored(context, tensors, axis=mirrored_axes([axis])[0])


@down("Flatten", 11, "negative axis made non-negative; of unknown rank, a Reshape")
def axis_between_dimensions(context: Context) -> None:
    """``Flatten<axis=-1>(x)`` with x of rank 3 becomes ``Flatten<axis=2>(x)``, of unknown rank
    ``Reshape(x, shape)``.

    Its axis lies between dimensions, so there is one more place for it, but that has no negative
    name: -1 is before the last dimension.
    """
    if all(axis >= 0 for axis in context.possible_values("axis", 1)):
        return
    axis = context.value("axis")
    rank = context.settled_rank(context.input(0))
    if rank is None:
        context = context.at(shapes.OPSET)
        matrix, _ = shapes.as_matrix(context, context.input(0), axis)
        context.replace("Identity", [matrix], keep=())
        return
    if axis < -rank:
        raise Blocked(f"its axis {axis} is out of range for rank {rank}", "mend the model")
    context.replace(axis=axis + rank)
