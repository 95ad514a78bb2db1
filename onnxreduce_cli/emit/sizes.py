"""Dimensions and sizes of tensors, known at conversion or at run time only."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, numpy_helper

from onnxreduce_cli.emit.axes import squeezed, unsqueezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.loops import LoopBody, LoopValue, loop
from onnxreduce_cli.emit.numbers import (
    LARGEST_CONSTANT,
    LazyTensor,
    Number,
    Term,
    as_name,
    scalar,
    sizes,
    term,
)
from onnxreduce_cli.emit.refusals import COUNTING_FROM, OR_STATE_SHAPES, need_loops
from onnxreduce_cli.model.graph.values import Dims


def dims_of(context: Context, name: str) -> Dims | None:
    """Return a tensor's dimensions as far as they are known; None where not even the rank is.

    Here, and wherever nothing else is said, tensors may have any dtype.
    """
    known = context.type(name)
    return None if known is None else known.dims


def need_dims(context: Context, name: str, purpose: str) -> Dims:
    """Return a tensor's dimensions, each as far as it is known.

    Raises:
        Blocked: not even the rank is known; `purpose` says what it is needed for.
    """
    context.need_rank(name, purpose)
    dims = dims_of(context, name)
    assert dims is not None
    return dims


def static_dims(dims: Dims | None) -> tuple[int, ...] | None:
    """Return the dimensions as ints where all are known, else None."""
    if dims is None:
        return None
    numbers = tuple(dim for dim in dims if isinstance(dim, int))
    return numbers if len(numbers) == len(dims) else None


#: The end of a slice up to the last element.
END = int(np.iinfo(np.int32).max)


def sliced(context: Context, values: str, start: Number, end: Number, axis: int = 0) -> Value:
    """Return the elements from `start` to before `end` along an axis of a tensor of any dtype.

    Below opset 10 both must be ints.
    """
    op = context.op
    if context.op.opset < 10:
        return op.Slice(values, axes=[axis], starts=[start], ends=[end])
    bounds = [as_name(context, number) for number in (start, end)]
    # The axes are given, as shape inference needs the number of bounds.
    return op.Slice(values, *bounds, context.array([axis], "axis"))


def known_size(context: Context, name: str, axis: int) -> int | None:
    """Return the size of one dimension of a tensor, if it is known at conversion.

    Raises:
        Blocked: the tensor's rank is known, and it has no such dimension.
    """
    dims = dims_of(context, name)
    if dims is not None and not -len(dims) <= axis < len(dims):
        raise Blocked(
            f"{name!r} is said to have rank {len(dims)}, and it needs a dimension {axis} of it",
            "mend the model: give it more dimensions, or state its true shape in value_info",
        )
    dim = dims[axis] if dims is not None else None
    return dim if isinstance(dim, int) else None


def size_of(context: Context, name: str, axis: int) -> Number:
    """Return the size of one dimension of a tensor: an int, or else a term, int64 of shape [1].

    A negative axis counts from the back.
    """
    op = context.op
    known = known_size(context, name, axis)
    if known is not None:
        return known

    def write() -> Value:
        shape = op.Shape(name)
        if axis < 0:  # Gather takes no negative index before opset 11.
            return sliced(context, shape, axis, axis + 1 or END)
        return op.Gather(shape, context.array([axis], "axis"), axis=0)

    return sizes(context, write)


def list_elements(context: Context, name: str, count: int) -> list[Number]:
    """Return the first `count` elements of an int64 tensor of shape [n], each as a number.

    Raises:
        Blocked: it has fewer.
    """
    known = context.elements(name)
    if known is not None and len(known) < count:
        raise Blocked(
            f"its input {str(name)!r} has {len(known)} numbers, not {count}",
            f"mend the model: give it {count} numbers",
        )

    def number(index: int) -> Number:
        found = None if known is None else known[index]
        if found is not None:
            return found
        at = context.array([index], "index")
        return sizes(context, lambda: context.op.Gather(name, at, axis=0))

    return [number(index) for index in range(count)]


def arange(context: Context, count: Number) -> str:
    """Return the numbers from 0 to before `count`, int64 of shape [count].

    They come from a Range from opset 11 on, from a NonZero of as many ones from 9 on, and before
    from a Loop, where one may be emitted.

    Raises:
        Blocked: the count is not known, and the conversion leads below opset 9, or 7 with a Loop.
    """
    op = context.op
    if isinstance(count, int) and count <= LARGEST_CONSTANT:
        return context.array(np.arange(count, dtype=np.int64), "range")
    name = as_name(context, count)
    if op.opset >= 11 and context.reaches(11):
        return _range(context, squeezed(context, name, [0]))
    if op.opset >= COUNTING_FROM and context.reaches(COUNTING_FROM):
        one = numpy_helper.from_array(np.ones(1, np.int64))
        ones = op.ConstantOfShape(name, value=one)
        return squeezed(context, op.NonZero(ones), [0])
    if isinstance(count, int):
        what = f"it takes all numbers below {count:,}"
        need_loops(context, f"{what}, and before opset 9 only a Loop counts so far", COUNTING_FROM)
    reason = "a size is only known at run time, and before opset 9 only a Loop counts up to it"
    need_loops(context, reason, COUNTING_FROM, OR_STATE_SHAPES)
    rounds = squeezed(context, name, [0])

    def write(body: LoopBody) -> tuple[list[str], list[LoopValue]]:
        return [*body.values], [LoopValue(body.round, TensorProto.INT64, ())]

    # A Loop must have a loop-carried value.
    carried = [LoopValue(rounds, TensorProto.INT64, ())]
    inputs, body = loop(context, rounds, carried, write, "that counts")
    return op.Loop(*inputs, outputs=2, body=body)[1]


def _range(context: Context, count: str) -> str:
    """Return the numbers from 0 to before `count`, an int64 scalar, by a Range of opset 11."""
    return context.op.Range(context.scalar(0, "zero"), count, context.scalar(1, "one"))


def along_axis(context: Context, data: str, axis: int) -> Value:
    """Return the shape ``[-1, 1, ..., 1]`` that broadcasts a vector along an axis of `data`.

    It is int64 of shape [n], for data of any dtype whose rank is known at run time only. It has no
    more dimensions than the data, so that a vector of one number for a scalar becomes a scalar.
    """
    op = context.op
    dims = op.Shape(data)
    end = context.array([int(np.iinfo(np.int32).max)], "end")
    behind = op.Slice(dims, context.array([axis + 1], "behind"), end)
    zeros = op.Sub(behind, behind)
    ones = op.Add(zeros, context.array([1], "one"))
    shape = op.Concat(context.array([-1], "all"), ones, axis=0)
    rank = op.Shape(dims)
    return op.Slice(shape, context.array([0], "start"), rank)


def length_of(context: Context, name: str, axis: int, elem_type: int) -> Term:
    """Return the size of a dimension as a scalar term of the dtype `elem_type`."""
    return scalar(context, size_of(context, name, axis)).cast(elem_type)


def range_of(count: Term, elem_type: int) -> Term:
    """Return the numbers from 0 to before `count`, an int64 scalar, in the dtype `elem_type`."""
    context, known = count.context, count.known
    if known is not None and known <= LARGEST_CONSTANT:
        return term(context, np.arange(int(known)), elem_type)

    def write() -> str:
        if known is not None:
            return arange(context, int(known))
        if context.op.opset >= 11 and context.reaches(11):
            return _range(context, count.name)
        return arange(context, sizes(context, unsqueezed(context, count.name, [0])))

    return Term(context, LazyTensor(write), TensorProto.INT64).cast(elem_type)
