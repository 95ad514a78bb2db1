"""Resize as runtimes take it that do not take another form of it."""

from __future__ import annotations

import numpy as np

from onnxreduce_cli.emit.axes import squeezed, unsqueezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.steps.registry import instead
from onnxreduce_cli.steps.resampling.resize import resized_axes
from onnxreduce_cli.steps.resampling.resize_axes import crops_input, keeps_ratio, non_empty_input

#: The rank of an image with its batch and channels.
_IMAGE = 4


@instead("Resize", {"linear, no coordinates"}, "its default mapping of coordinates written out")
def with_coordinates(context: Context) -> None:
    """``Resize<mode="linear">(x, ...)`` from 11 on becomes
    ``Resize<mode="linear", coordinate_transformation_mode="half_pixel">(x, ...)``.
    """
    if context.source_opset >= 11:
        context.replace(coordinate_transformation_mode="half_pixel")


@instead(
    ("Resize", "Upsample"),
    {"outer dimensions", "not of rank 4"},
    "written for the last two of four dimensions, between Transposes",
)
def of_images(context: Context) -> None:
    """``Resize(x, scales=[1, 0.5, 0.5, 1])`` becomes
    ``Transpose(Resize(Transpose(x), scales=[1, 1, 0.5, 0.5]))``; of fewer dimensions than four the
    others are 1.
    """
    op, numbers = context.op, 1 if context.source_opset < 11 else 2
    if context.source_opset >= 11 and non_empty_input(context, 3):
        numbers = 3
    known = context.constant(context.input(numbers))
    rank = context.need_rank(context.input(0), "its dimensions are put in another order")
    if known is None or known.size != rank or crops_input(context) or keeps_ratio(context):
        raise Blocked("its scales or sizes are not all known, or it crops")
    added = list(range(_IMAGE - rank))
    changed = [change.index + len(added) for change in resized_axes(context)[1]]
    order = [axis for axis in range(_IMAGE) if axis not in changed] + changed
    if rank > _IMAGE or len(changed) > 2 or order == list(range(rank)):
        raise Blocked("it resizes more than two dimensions, or has more than four")
    data: str = context.input(0)
    if added:
        data = unsqueezed(context, data, added)
    moved = order != sorted(order)
    if moved:
        data = op.Transpose(data, perm=order)
    whole = np.concatenate([np.ones(len(added), known.dtype), known])[order]
    inputs = [data, *context.node.input[1:numbers], context.array(whole, "resized")]
    outputs = [context.fresh("image")]
    value: str = context.replace(inputs=inputs, outputs=outputs, drop=("axes",)).output[0]
    if moved:
        value = op.Transpose(value, perm=[order.index(axis) for axis in range(_IMAGE)])
    if added:
        value = squeezed(context, value, added)
    op.Identity(value, outputs=[context.node.output[0]])
