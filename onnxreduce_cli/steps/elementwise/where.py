"""Where below opset 9, which introduced it, and where a runtime does not take it: a Gather, or
arithmetic.
"""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.axes import squeezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import FLOATS_WITH_BFLOAT16
from onnxreduce_cli.emit.numbers import Number, Term, as_name, sizes
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.sizes import arange, dims_of, size_of, static_dims
from onnxreduce_cli.model.file.tensors import MOST_ELEMENTS
from onnxreduce_cli.steps.registry import instead, introduced


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
    of integers it is exact, and needs no shapes. Of two constant numbers they make a list, whose
    indices are 0 and 1.
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
    numbers = [context.constant(name) for name in (second, first)]
    if all(number is not None and not number.ndim for number in numbers):
        table = context.array(np.stack([number for number in numbers if number is not None]), "two")
        chosen = cast(context, condition, TensorProto.INT64)
        context.replace("Gather", [table, chosen], keep=(), axis=0)
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


@instead("Where", {"any"}, "written as Mul and Add", last=True)
def blended(context: Context) -> None:
    """``Where(c, -1.5, 4.0)`` becomes ``Add(Mul(Cast(c), -5.5), 4.0)``, or where the difference of
    the constants is rounded ``Add(Mul(Cast(c), a), Mul(Cast(Not(c)), b))``.
    """
    op = context.op
    condition, first, second = (context.input(index) for index in range(3))
    elem_type = context.need_elem_type(first, "how to choose depends on it")
    if elem_type not in FLOATS_WITH_BFLOAT16:
        raise Blocked("what it chooses from are no floats")
    constants = []
    for name in (first, second):
        known = context.constant(name)
        if known is None:
            raise Blocked(f"{name!r} may hold NaN or an infinity, and 0 times these is NaN")
        if not np.isfinite(known).all():
            raise Blocked(f"{name!r} holds NaN or an infinity, and 0 times these is NaN")
        if np.signbit(known[known == 0]).any():
            raise Blocked(f"{name!r} holds -0, which becomes 0 where 0 is added")
        constants.append(known)
    a, b = constants
    mask = cast(context, condition, elem_type)
    with np.errstate(over="ignore"):
        difference = np.asarray(a - b)
        is_exact = np.isfinite(difference).all() and np.array_equal(difference + b, a + 0 * b)
    if is_exact:
        offset = op.Mul(mask, context.array(difference, "difference"))
        context.replace("Add", [offset, second], keep=())
        return
    others = cast(context, op.Not(condition), elem_type)
    context.replace("Add", [op.Mul(mask, first), op.Mul(others, second)], keep=())


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
