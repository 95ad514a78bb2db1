"""Where below opset 9 of tensors whose shapes are only known at run time."""

from __future__ import annotations

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import Number, Term, as_name, sizes
from onnxreduce_cli.emit.sizes import arange, size_of


def element_count(context: Context, name: str) -> Term:
    """Return the number of elements of a tensor of any dtype, counted at run time: int64 of shape
    [1].
    """
    op = context.op
    one = context.array([1], "one")
    return sizes(context, lambda: op.Reshape(op.Size(name), one))


def flat_indices(context: Context, name: str) -> str:
    """Return the index of each element of a tensor of any dtype in the flattened tensor: int64 in
    the tensor's shape.

    They are counted at run time, as the sum of what each axis with its stride contributes.
    """
    op = context.op
    rank = context.rank(name)
    if rank is None:
        shape = op.Shape(name)
        return shapes.reshaped(context, arange(context, element_count(context, name)), shape)
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
