"""Where below opset 9, which introduced it: a Gather, or integer arithmetic."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.axes import squeezed
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import Number, Term, as_name, sizes
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.sizes import arange, dims_of, size_of, static_dims
from onnxreduce_cli.model.file.tensors import MOST_ELEMENTS
from onnxreduce_cli.steps.registry import introduced


@introduced(
    "Where",
    9,
    "a Gather from both inputs, or arithmetic on integers",
    blocks=NO_COUNTING,
)
def where(context: Context) -> None:
    """``Where(c, x, y)`` becomes
    ``Gather(Concat(Reshape(x, [-1]), Reshape(y, [-1])), indices)`` with the indices of x's
    elements where c is true, and else of y's.

    Blending ``c * x + (1 - c) * y`` would be wrong where what is not chosen is NaN or infinite;
    of integers it is exact, and needs no shapes.
    """
    op = context.op
    condition, first, second = (context.input(index) for index in range(3))
    elem_type = context.need_elem_type(first, "how to choose depends on it")
    if elem_type in (TensorProto.INT32, TensorProto.INT64):
        mask = cast(context, condition, elem_type)
        difference = op.Sub(first, second)
        offset = op.Mul(difference, mask)
        context.replace("Add", [offset, second], keep=())
        return
    if None in [context.specialised_rank(name) for name in (first, second)]:
        context = context.at(shapes.OPSET)
        op = context.op
    first_indices, second_indices = _flat_indices(context, first), _flat_indices(context, second)
    first_count = _element_count(context, first)
    second_indices = op.Add(second_indices, first_count)
    flat = [op.Reshape(name, context.array([-1], "flat")) for name in (first, second)]
    both = op.Concat(*flat, axis=0)
    mask = cast(context, condition, TensorProto.INT64)
    difference = op.Sub(first_indices, second_indices)
    offset = op.Mul(difference, mask)
    indices = op.Add(offset, second_indices)
    context.replace("Gather", [both, indices], keep=(), axis=0)


def _flat_indices(context: Context, name: str) -> str:
    """Return the index of each element in the flattened tensor, int64 in the tensor's shape."""
    dims = static_dims(dims_of(context, name))
    if dims is None or math.prod(dims) > MOST_ELEMENTS:
        return _counted_indices(context, name)
    indices = np.arange(math.prod(dims), dtype=np.int64).reshape(dims)
    return context.array(indices, "indices")


def _element_count(context: Context, name: str) -> str:
    """Return the number of elements of a tensor, an int64 scalar."""
    dims = static_dims(dims_of(context, name))
    if dims is not None:
        return context.scalar(math.prod(dims), "size")
    return squeezed(context, _counted_elements(context, name).name, [0])


def _counted_elements(context: Context, name: str) -> Term:
    """Return the number of elements of a tensor of any dtype, counted at run time: int64 of shape
    [1].
    """
    op = context.op
    one = context.array([1], "one")
    return sizes(context, lambda: op.Reshape(op.Size(name), one))


def _counted_indices(context: Context, name: str) -> str:
    """Return the index of each element of a tensor of any dtype in the flattened tensor: int64 in
    the tensor's shape.

    They are counted at run time, as the sum of what each axis with its stride contributes.
    """
    op = context.op
    rank = context.rank(name)
    if rank is None:
        shape = op.Shape(name)
        return shapes.reshaped(context, arange(context, _counted_elements(context, name)), shape)
    stride: Number = 1
    places = ""
    for axis in reversed(range(rank)):
        length = size_of(context, name, axis)
        shape = context.array([-1] + [1] * (rank - 1 - axis), "along_axis")
        along = op.Reshape(arange(context, length), shape)
        if stride != 1:
            along = op.Mul(along, as_name(context, stride))
        places = op.Add(places, along) if places else along
        if axis:
            stride = stride * length
    return places
