"""Shapes and axes that are only known at run time, as lists of int64.

For contexts bound to `OPSET` or later: there Slice takes its bounds as inputs, and Reshape with
`allowzero` takes a 0 for what it is. The steps of those lead on from there.
"""

from __future__ import annotations

from typing import NamedTuple

from onnx import TensorProto

from onnxreduce_cli.emit.axes import reduced, squeezed, unsqueezed
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import Number, as_name, sizes
from onnxreduce_cli.emit.sizes import END, arange, sliced
from onnxreduce_cli.model.graph.values import Dims, ValueType, tensor_type

OPSET = 15


def int64_list(context: Context, name: str) -> str:
    """Return integers of any dtype and shape as int64 of shape [n]."""
    if context.elem_type(name) != TensorProto.INT64:
        name = cast(context, name, TensorProto.INT64)
    return name if context.rank(name) == 1 else flat(context, name)


def rank_at_run_time(context: Context, name: str) -> Value:
    """Return the rank of a tensor of any dtype, as int64 of shape [1]."""
    op = context.op
    return op.Shape(op.Shape(name))


def element(context: Context, values: str, index: Number) -> Value:
    """Return one element of a tensor of shape [n] and any dtype, in shape [1].

    An index that is an int may be negative; one that is a term may not.
    """
    if isinstance(index, int):
        return sliced(context, values, index, index + 1 or END)
    return context.op.Gather(values, as_name(context, index), axis=0)


def scalar_input(context: Context, name: str) -> Number:
    """Return a tensor of one element, int32 or int64 of any shape, as a number."""
    known = context.constant(name)
    if known is not None:
        return int(known.reshape(-1)[0])
    if context.elem_type(name) != TensorProto.INT64:
        name = cast(context, name, TensorProto.INT64)
    return sizes(context, context.op.Reshape(name, context.array([1], "one")))


def product(context: Context, values: str) -> Value:
    """Return the product of int64 of shape [n], as int64 of shape [1]; 1 where n is 0."""
    op = context.op
    with_one = op.Concat(context.array([1], "one"), values, axis=0)
    return op.ReduceProd(with_one, keepdims=1)


def strides(context: Context, dims: str) -> str:
    """Return the strides, in elements, of a tensor of the given dimensions.

    Both are int64 of shape [rank].
    """
    op = context.op
    place = arange(context, sizes(context, op.Shape(dims)))
    later = op.Less(unsqueezed(context, place, [1]), place)
    factors = op.Where(later, dims, context.array([1], "one"))
    return reduced(context, "ReduceProd", factors, [1], keep=False)


def flat_indices(context: Context, dims: str, steps: str) -> str:
    """Return where each element of a tensor is in a flat one, int64 of shape [n].

    Args:
        context: the node's.
        dims: the dimensions of the tensor of n elements, int64 of shape [rank].
        steps: its strides in the flat tensor, int64 of shape [rank].
    """
    op = context.op
    number = unsqueezed(context, arange(context, sizes(context, product(context, dims))), [1])
    # Division by zero may end the process, even where there is no element to divide.
    none = op.Equal(dims, context.array([0], "zero"))
    dims = op.Add(dims, cast(context, none, TensorProto.INT64))
    outer = op.Div(number, strides(context, dims))
    whole = op.Mul(op.Div(outer, dims), dims)
    coordinates = op.Sub(outer, whole)
    parts = op.Mul(coordinates, steps)
    return reduced(context, "ReduceSum", parts, [1], keep=False)


def flat(context: Context, name: str) -> Value:
    """Return a tensor of any dtype and shape in shape [n]."""
    shape = context.array([-1], "flat")
    return context.op.Reshape(name, shape, like=_like(context, name, (None,)))


def which_axes(context: Context, rank: Number, axes: str) -> Value:
    """Return bool of shape [rank, n]: whether dimension i of a tensor is the j-th of `axes`.

    The axes are int64 of shape [n], none of them negative.
    """
    place = unsqueezed(context, arange(context, rank), [1])
    return context.op.Equal(place, axes)


def among(context: Context, rank: Number, axes: str) -> Value:
    """Return bool of shape [rank]: whether a dimension is among `axes`.

    The axes are int64 of shape [n], none of them negative.
    """
    # With one that none is, so that there is something to add up.
    some = context.op.Concat(axes, context.array([-1], "none"), axis=0)
    same = cast(context, which_axes(context, rank, some), TensorProto.INT64)
    return cast(context, reduced(context, "ReduceSum", same, [1], keep=False), TensorProto.BOOL)


def not_among(context: Context, rank: Number, axes: str) -> str:
    """Return the dimensions that are not among `axes`, in order, int64 of shape [m].

    The axes are int64 of shape [n], none of them negative.
    """
    op = context.op
    left = op.Not(among(context, rank, axes))
    return squeezed(context, op.NonZero(left), [0])


def axes_from_front(context: Context, axes: str, rank: Number) -> Value:
    """Return axes, int64 of any shape, with the rank added to those below 0, in that shape."""
    op = context.op
    below = op.Less(axes, context.array([0], "zero"))
    below = cast(context, below, TensorProto.INT64)
    added = op.Mul(below, as_name(context, rank))
    return op.Add(axes, added)


def reshaped(
    context: Context, name: str, shape: str, dims: Dims | None = None, output: str = ""
) -> Value:
    """Return a tensor of any dtype in a shape that holds no -1, and in which a 0 is a 0.

    Args:
        context: the node's.
        name: the tensor.
        shape: its new shape, int64 of shape [rank].
        dims: what is known of that.
        output: the name of the result; by default a new one.
    """
    return context.op.Reshape(
        name,
        shape,
        outputs=[output] if output else None,
        like=None if output or dims is None else _like(context, name, dims),
        allowzero=1,
    )


def _like(context: Context, name: str, dims: Dims) -> ValueType | None:
    elem_type = context.elem_type(name)
    return None if elem_type is None else tensor_type(elem_type, dims)


class View(NamedTuple):
    """A tensor around one of its axes, in three dimensions.

    Attributes:
        name: the tensor, of its own dtype, with the shape [before, length, after].
        shape: the tensor's own shape, int64 of shape [rank].
        length: its size along the axis, int64 of shape [1].
    """

    name: str
    shape: str
    length: str


def around(context: Context, data: str, axis: Number) -> View:
    """Return a tensor of any dtype in three dimensions, the axis in the middle.

    An axis that is an int may be negative; one that is a term may not.
    """
    op = context.op
    shape = op.Shape(data)
    length = element(context, shape, axis)
    before = as_name(context, 1) if axis == 0 else product(context, sliced(context, shape, 0, axis))
    if axis == -1:
        after = as_name(context, 1)
    else:
        after = product(context, sliced(context, shape, axis + 1, END))
    three = op.Concat(before, length, after, axis=0)
    return View(reshaped(context, data, three, (None, None, None)), shape, length)


def as_matrix(context: Context, data: str, axis: int) -> tuple[str, str]:
    """Return a tensor of any dtype in two dimensions, as Flatten gives it, and its own shape.

    The shape is int64 of shape [rank].
    """
    op = context.op
    shape = op.Shape(data)
    rows = as_name(context, 1) if axis == 0 else product(context, sliced(context, shape, 0, axis))
    columns = product(context, sliced(context, shape, axis, END))
    two = op.Concat(rows, columns, axis=0)
    return reshaped(context, data, two, (None, None)), shape
