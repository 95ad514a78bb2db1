"""Attention: 24 let a mask be shorter than the sequence, and added `nonpad_kv_seqlen`.

A mask whose last dimension is 1 was broadcast before; since then it is a short one.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.model.values import numpy_dtype
from onnxreduce_cli.steps.context import Blocked, Context
from onnxreduce_cli.steps.registry import down, up

_MASK = 3


def _lengths(context: Context) -> tuple[int | None, int | None]:
    """The last dimension of the mask and the length of past and present keys, where known."""

    def dim(index: int, axis: int) -> int | None:
        if not context.input(index):
            return 0
        known = context.type(context.input(index))
        found = None if known is None or not known.dims else known.dims[axis]
        return found if isinstance(found, int) else None

    parts = [dim(1, -2), dim(4, -2)]
    total = sum(part for part in parts if part is not None) if None not in parts else None
    return dim(_MASK, -1), total


def _total(context: Context) -> str:
    """The length of past and present keys, as a vector of one element."""
    lengths = [
        context.emit("Shape", [context.input(index)], "length", start=-2, end=-1)
        for index in (1, 4)
        if context.input(index)
    ]
    return lengths[0] if len(lengths) == 1 else context.emit("Add", lengths, "total_length")


def _with_mask(context: Context, mask: str) -> None:
    inputs = list(context.node.input)
    inputs[_MASK] = mask
    context.replace(inputs=inputs)


@up("Attention", 24, "a mask whose last dimension may be 1 expanded")
def mask_expanded(context: Context) -> None:
    """``Attention(q, k, v, mask)``, mask of shape [5, 1], becomes
    ``Attention(q, k, v, Expand(mask, total_sequence_length))``.
    """
    if not context.input(_MASK):
        return
    last, total = _lengths(context)
    if last not in (None, 1) or (last == 1 and total == 1):
        return
    mask = context.emit("Expand", [context.input(_MASK), _total(context)], "mask")
    _with_mask(context, mask)


@down(
    "Attention",
    24,
    "a mask that may be shorter than the sequence padded",
    blocks="it has nonpad_kv_seqlen",
)
def mask_padded(context: Context) -> None:
    """``Attention(q, k, v, mask)``, mask of shape [5, 3], becomes
    ``Attention(q, k, v, Pad(mask, [0, total_sequence_length - 3], -inf, [-1]))``.
    """
    if context.input(6):
        raise Blocked("its input nonpad_kv_seqlen came with opset 24", "choose opset 24 or later")
    if not context.input(_MASK):
        return
    last, total = _lengths(context)
    if last is not None and last == total:
        return
    name = context.input(_MASK)
    elem_type = context.need_elem_type(name, "it may have to be padded")
    excluded = False if elem_type == TensorProto.BOOL else -np.inf
    given = context.emit("Shape", [name], "mask_length", start=-1)
    missing = context.emit("Sub", [_total(context), given], "missing")
    pads = context.emit("Concat", [context.array([0], "none"), missing], "pads", axis=0)
    value = context.array(np.array(excluded, numpy_dtype(elem_type)), "excluded")
    mask = context.emit("Pad", [name, pads, value, context.array([-1], "axes")], "mask")
    _with_mask(context, mask)
