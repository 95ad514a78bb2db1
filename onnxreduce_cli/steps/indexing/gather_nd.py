"""GatherND: introduced with 11; 12 added `batch_dims`."""

from __future__ import annotations

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import Number, as_shape
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.shapes import OPSET, reshaped
from onnxreduce_cli.emit.sizes import need_dims, size_of, static_dims
from onnxreduce_cli.steps.indexing.flat_positions import (
    COUNTED_FLAT,
    ranks_are_known,
    slice_positions,
)
from onnxreduce_cli.steps.indexing.slice_numbers import gather_slices
from onnxreduce_cli.steps.registry import down, introduced


@introduced(
    "GatherND", 11, "Gather from the data with the indexed dimensions made one", blocks=NO_COUNTING
)
def gather_nd(context: Context) -> None:
    """``GatherND(x, indices)`` with x of shape [2, 3, 4] and indices of [5, 2] becomes
    ``Gather(Reshape(x, [-1, 4]), 3 * indices[:, 0] + indices[:, 1])``.
    """
    data = context.input(0)
    if not ranks_are_known(context):
        gather_slices(context)
        return
    dims = need_dims(context, data, COUNTED_FLAT)
    place, depth = slice_positions(context, dims)
    if depth > 1:
        data = _indexed_dims_merged(context, data, depth)
    context.replace("Gather", [data, place], keep=(), axis=0)


def _indexed_dims_merged(context: Context, data: Value, depth: int) -> Value:
    """Return the data with the first `depth` of its known number of dimensions made one."""
    dims = need_dims(context, data, COUNTED_FLAT)
    rest = static_dims(dims[depth:])
    if rest is not None and 0 not in rest:
        return context.op.Reshape(data, context.array([-1, *rest], "merged"))
    sizes = [size_of(context, data, axis) for axis in range(len(dims))]
    rows: Number = 1
    for size in sizes[:depth]:
        rows = rows * size
    shape = as_shape(context, [rows, *sizes[depth:]])
    return reshaped(context.at(OPSET), data, shape, (None, *dims[depth:]))


@down(
    "GatherND",
    12,
    "batch_dims: Gather from the data with all but the slices made one",
    blocks=NO_COUNTING,
)
def without_batch_dims(context: Context) -> None:
    """``GatherND<batch_dims=1>(x, indices)`` becomes ``Reshape(Gather(Reshape(x), places), shape)``
    with the places of each batch behind those of the one before.
    """
    batch_dims = context.value("batch_dims", 0)
    if batch_dims:
        gather_slices(context, batch_dims)
    elif context.attribute("batch_dims") is not None:
        context.replace(drop=("batch_dims",))
