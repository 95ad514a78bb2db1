"""Means and roots of mean squares, the parts that normalizations are written with.

The variance is the mean of the squared deviations, not the mean square less the squared mean as
in the specification's function bodies: that one cancels, and may become negative.
"""

from __future__ import annotations

from typing import NamedTuple

from onnx import TensorProto

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.axes import reduced
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import FLOATS_WITH_BFLOAT16


class TrailingAxes(NamedTuple):
    """The axes from one that is counted from the front up to the last, of unknown rank.

    Attributes:
        axis: the first of them.
        kept: the shape that a reduction over them gives, an int64 vector: 1 for each of them.
    """

    axis: int
    kept: str


Axes = list[int] | TrailingAxes


def mean_over(context: Context, name: str, axes: Axes) -> str:
    """Return ``ReduceMean(name)`` over the axes, whose dims become 1, in the same dtype."""
    if isinstance(axes, list):
        return reduced(context, "ReduceMean", name, axes, keep=True)
    matrix = context.op.Flatten(name, axis=axes.axis)
    mean = reduced(context, "ReduceMean", matrix, [1], keep=True)
    return shapes.reshaped(context, mean, axes.kept)


def root_mean(context: Context, squares: str, axes: Axes, epsilon: float, working: int) -> Value:
    """Return ``Sqrt(ReduceMean(squares) + epsilon)`` in the dtype `working`, dims kept as 1."""
    op = context.op
    mean = mean_over(context, squares, axes)
    small = context.scalar(epsilon, "epsilon", working)
    return op.Sqrt(op.Add(mean, small))


def replace_and_cast(
    context: Context, op_type: str, inputs: list[str], to: int, working: int
) -> None:
    """Replace the node by one that computes in `working`, and a Cast where `to` is another."""
    output = [context.node.output[0]]
    if to == working:
        context.replace(op_type, inputs, output, keep=())
    else:
        context.replace("Cast", [context.op.emit(op_type, *inputs)], output, keep=(), to=to)


def stash_type(context: Context) -> int:
    """Return the dtype that a node's attribute `stash_type` says to compute in, float if none.

    Raises:
        Blocked: it is no dtype of floats.
    """
    stash: int = context.value("stash_type", TensorProto.FLOAT)
    if stash not in FLOATS_WITH_BFLOAT16:
        raise Blocked(
            f"its stash_type {stash} is not a float dtype", "mend the model: set it to 1 (float)"
        )
    return stash
