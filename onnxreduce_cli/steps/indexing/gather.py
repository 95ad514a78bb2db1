"""Gather: 11 let indices count from the back."""

from __future__ import annotations

import numpy as np

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.indices import from_front, never_negative, size_along
from onnxreduce_cli.emit.sizes import known_size
from onnxreduce_cli.steps.registry import down


def non_negative_indices(context: Context) -> Value:
    """Return the node's second input, indices into `axis` of the first, counted from the front.

    They keep their shape and dtype, int32 or int64.
    """
    data, indices = context.input(0), context.input(1)
    if never_negative(context, indices):
        return indices
    axis = context.value("axis", 0)
    dim = known_size(context, data, axis)
    constant = context.constant(indices)
    if constant is not None and isinstance(dim, int):
        return context.array(np.where(constant < 0, constant + dim, constant), "indices")
    elem_type = context.need_elem_type(indices, "the size of the axis is added in that dtype")
    return from_front(context, indices, size_along(context, data, axis, elem_type), elem_type)


@down(
    "Gather", 11, "indices counted from the front", blocks="the dtype of the indices is not known"
)
def gather_from_front(context: Context) -> None:
    """``Gather(x, [-1])`` with x of shape [3] becomes ``Gather(x, [2])``.

    Where the indices are only known at run time the size of the axis is added to those below 0.
    """
    indices = non_negative_indices(context)
    if indices != context.input(1):
        context.replace(inputs=[context.input(0), indices])
