"""GatherND and ScatterND of unknown rank below opset 11, and `batch_dims` below 12."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.axes import reduced, unsqueezed
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.indices import from_front, never_negative
from onnxreduce_cli.emit.numbers import sizes
from onnxreduce_cli.emit.shapes import (
    OPSET,
    element,
    flat,
    product,
    reshaped,
    strides,
)
from onnxreduce_cli.emit.sizes import END, arange, sliced


def _slice_numbers(context: Context, batch_dims: int = 0) -> tuple[str, str, str, str]:
    """Return which slices the node's indices point to, numbered in the order of the data.

    The context is bound to `OPSET`. Neither a rank nor how many dimensions are indexed need be
    known.

    Returns:
        four int64 vectors: the number of each slice that is pointed to; the dims of the batch and
        of what is indexed; those of a slice; and those of the indices but for the last.
    """
    op = context.op
    data, indices = context.input(0), context.input(1)
    dims, shape = (op.Shape(name) for name in (data, indices))
    depth = element(context, shape, -1)
    end = depth
    if batch_dims:
        end = op.Add(depth, context.array([batch_dims], "batch_dims"))
    before, behind = (
        sliced(context, dims, 0, sizes(context, end)),
        sliced(context, dims, sizes(context, end), END),
    )
    indexed = sliced(context, before, batch_dims, END) if batch_dims else before
    lead = sliced(context, shape, 0, -1)
    matrix_shape = op.Concat(product(context, lead), depth, axis=0)
    indices = reshaped(context, indices, matrix_shape, (None, None))
    if not never_negative(context, context.input(1)):
        indices = from_front(context, indices, indexed, TensorProto.INT64)
    parts = op.Mul(indices, strides(context, indexed))
    number = reduced(context, "ReduceSum", parts, [1], keep=False)
    if batch_dims:
        batch = sliced(context, lead, 0, batch_dims)
        counted = arange(context, sizes(context, product(context, batch)))
        first = op.Mul(counted, product(context, indexed))
        each = product(context, sliced(context, lead, batch_dims, END))
        by_batch = op.Concat(product(context, batch), each, axis=0)
        number = reshaped(context, number, by_batch, (None, None))
        number = op.Add(number, unsqueezed(context, first, [1]))
        number = flat(context, number)
    return number, before, behind, lead


def gather_slices(context: Context, batch_dims: int = 0) -> None:
    """``GatherND(x, indices)`` becomes ``Reshape(Gather(matrix, numbers), shape)``: each slice of
    x is a row of the matrix.
    """
    context = context.at(OPSET)
    op = context.op
    number, before, behind, lead = _slice_numbers(context, batch_dims)
    data = context.input(0)
    slices = [product(context, dims) for dims in (before, behind)]
    matrix = reshaped(context, data, op.Concat(*slices, axis=0), (None, None))
    gathered = op.Gather(matrix, number, axis=0)
    shape = op.Concat(lead, behind, axis=0)
    reshaped(context, gathered, shape, output=context.node.output[0])


def scatter_slices(context: Context) -> None:
    """``ScatterND(x, indices, updates)`` becomes ScatterElements into the flattened x."""
    context = context.at(OPSET)
    op = context.op
    number, _, behind, _ = _slice_numbers(context)
    data, updates = context.input(0), context.input(2)
    size = product(context, behind)
    first = op.Mul(unsqueezed(context, number, [1]), size)
    at = op.Add(first, arange(context, sizes(context, size)))
    inputs = [flat(context, name) for name in (data, at, updates)]
    changed = op.ScatterElements(*inputs, axis=0)
    shape = op.Shape(data)
    reshaped(context, changed, shape, output=context.node.output[0])
