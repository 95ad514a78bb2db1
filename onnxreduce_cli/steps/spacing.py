"""DepthToSpace and SpaceToDepth: 11 and 28 added a mode, the order of the blocks' channels."""

from __future__ import annotations

import numpy as np

from onnxreduce_cli.steps.context import Array, Blocked, Context
from onnxreduce_cli.steps.registry import down

_BLOCKS = "the mode is CRD and the number of channels is not known"


@down("DepthToSpace", 11, "mode CRD: the channels put in the order of DCR", blocks=_BLOCKS)
def channels_ordered_before(context: Context) -> None:
    """``DepthToSpace<mode="CRD">(x)`` becomes ``DepthToSpace(Gather<axis=1>(x, order))``."""
    if _is_older_mode(context):
        return
    size, channels = context.value("blocksize") ** 2, _channels(context)
    order = context.array(_transposed(channels // size, size), "order")
    gathered = context.emit("Gather", [context.input(0), order], "ordered", axis=1)
    context.replace(inputs=[gathered], drop=("mode",))


@down("SpaceToDepth", 28, "mode CRD: the channels put in its order afterwards", blocks=_BLOCKS)
def channels_ordered_after(context: Context) -> None:
    """``SpaceToDepth<mode="CRD">(x)`` becomes ``Gather<axis=1>(SpaceToDepth(x), order)``."""
    if _is_older_mode(context):
        return
    size, channels = context.value("blocksize") ** 2, _channels(context)
    output = context.node.output[0]
    blocks = context.replace(outputs=[context.fresh("blocks")], drop=("mode",)).output[0]
    order = context.array(_transposed(size, channels), "order")
    context.emit("Gather", [blocks, order], "ordered", outputs=[output], axis=1)


def _is_older_mode(context: Context) -> bool:
    """Whether the mode is DCR, the only one there was; it is dropped then."""
    if context.value("mode", "DCR") != "DCR":
        return False
    if context.attribute("mode") is not None:
        context.replace(drop=("mode",))
    return True


def _transposed(rows: int, columns: int) -> Array:
    """The numbers of the elements of a matrix, column by column."""
    return np.arange(rows * columns, dtype=np.int64).reshape(rows, columns).T.reshape(-1)


def _channels(context: Context) -> int:
    known = context.type(context.input(0))
    channels = known.dims[1] if known is not None and known.dims is not None else None
    if not isinstance(channels, int):
        raise Blocked(
            f"its mode CRD came with opset {context.opset}, and to put the channels in the order "
            "of DCR their number must be known",
            "state the shape of its input in the model's value_info",
        )
    return channels
