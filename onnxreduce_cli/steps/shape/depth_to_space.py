"""DepthToSpace and SpaceToDepth: 11 and 28 added a mode, the order of the blocks' channels."""

from __future__ import annotations

import numpy as np

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.sizes import arange, size_of
from onnxreduce_cli.steps.registry import down


@down("DepthToSpace", 11, "mode CRD: the channels put in the order of DCR", blocks=NO_COUNTING)
def channels_ordered_before(context: Context) -> None:
    """``DepthToSpace<mode="CRD">(x)`` becomes ``DepthToSpace(Gather<axis=1>(x, order))``."""
    if _is_older_mode(context):
        return
    order = _transposed(context, columns=context.value("blocksize") ** 2)
    gathered = context.op.Gather(context.input(0), order, axis=1)
    context.replace(inputs=[gathered], drop=("mode",))


@down("SpaceToDepth", 28, "mode CRD: the channels put in its order afterwards")
def channels_ordered_after(context: Context) -> None:
    """``SpaceToDepth<mode="CRD">(x)`` becomes ``Gather<axis=1>(SpaceToDepth(x), order)``."""
    if _is_older_mode(context):
        return
    output = context.node.output[0]
    blocks = context.replace(outputs=[context.fresh("blocks")], drop=("mode",)).output[0]
    order = _transposed(context, rows=context.value("blocksize") ** 2)
    context.op.Gather(blocks, order, outputs=[output], axis=1)


def _is_older_mode(context: Context) -> bool:
    """Drop the mode DCR, the only one before, and return whether it was that."""
    if context.value("mode", "DCR") != "DCR":
        return False
    if context.attribute("mode") is not None:
        context.replace(drop=("mode",))
    return True


def _transposed(context: Context, *, rows: int = -1, columns: int = -1) -> Value:
    """Return the indices of a matrix's elements column by column, int64 of shape [count].

    Args:
        context: the context of the node.
        rows: how many rows the matrix has; each holds all channels of the data.
        columns: how many columns it has where `rows` is not given; it holds each channel once.

    Raises:
        Blocked: the channels do not fill them.
    """
    op = context.op
    count = size_of(context, context.input(0), 1) * max(rows, 1)
    if isinstance(count, int) and count % columns:
        raise Blocked(
            f"its {count} channels are no multiple of {columns}, its blocksize squared",
            "mend the model: give it another blocksize, or state its true shape in value_info",
        )
    if isinstance(count, int) and count <= LARGEST_CONSTANT:
        numbers = np.arange(count, dtype=np.int64).reshape(rows, columns)
        return context.array(numbers.T.reshape(-1), "order")
    shape = context.array([rows, columns], "shape")
    matrix = op.Reshape(arange(context, count), shape)
    transposed = op.Transpose(matrix, perm=[1, 0])
    return op.Reshape(transposed, context.array([-1], "flat"))
