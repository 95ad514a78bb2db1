"""Below the opset that an operator came with: what steps that replace it have in common."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Blocked, Context
from onnxreduce_cli.model.values import Dims, numpy_dtype


class Later:
    """A tensor that is emitted when its name is asked for, and once."""

    def __init__(self, write: Callable[[], str]) -> None:
        self._write = write

    @cached_property
    def name(self) -> str:
        """Its name."""
        return self._write()


#: A number that is known at conversion, or else an int64 tensor of shape [1].
Number = int | Later | str

#: Constants of more elements are not written into a model but computed when it runs.
MOST_WRITTEN = 1 << 20

#: Below this opset no Loop is written for an operator that is none.
LOOPS_FROM = 7

#: When a step blocks that writes a Loop for the operator.
NO_LOOP = f"it leads below opset {LOOPS_FROM}, as it takes a Loop"
#: When a step blocks that counts up to a size, which takes a Loop before opset 9.
NO_COUNTING = f"a size or rank is only known at run time and it leads below opset {LOOPS_FROM}"
#: When a step blocks that takes a Loop for tensors of unknown rank alone.
NO_RANK = f"its rank is not known and it leads below opset {LOOPS_FROM}"


def refuse(context: Context, what: str) -> Blocked:
    """A blocker for a node that nothing before its operator was introduced can stand for."""
    return Blocked(
        f"nothing before opset {context.op.opset + 1} {what}",
        f"choose opset {context.op.opset + 1} or later",
    )


def need_loops(
    context: Context, reason: str = "only a Loop could stand for it", advice: str = ""
) -> None:
    """Raise `Blocked` where the conversion leads to an opset for which no Loop is written.

    Args:
        context: the node's.
        reason: what the Loop is needed for.
        advice: what helps besides a later opset, as the end of a sentence.
    """
    if context.target_opset < LOOPS_FROM:
        raise Blocked(
            f"{reason}, and below opset {LOOPS_FROM} none is written",
            f"choose opset {LOOPS_FROM} or later{advice}",
        )


#: What lets a conversion know what else is only known at run time.
OR_STATE = ", or state the shapes that it depends on in the model's value_info or inputs"


# Constants and dtypes


def constant(context: Context, value: float, elem_type: int, hint: str) -> Value:
    """A constant of rank 0 of any dtype, infinities included."""
    return context.array(np.array(value).astype(numpy_dtype(elem_type)), hint)


def dims_of(context: Context, name: str) -> Dims | None:
    """A tensor's dimensions, as far as they are known."""
    known = context.type(name)
    return None if known is None else known.dims


def need_dims(context: Context, name: str, purpose: str) -> Dims:
    """A tensor's dimensions; raises `Blocked` where not even the rank is known."""
    context.need_rank(name, purpose)
    dims = dims_of(context, name)
    assert dims is not None
    return dims


def static(dims: Dims | None) -> tuple[int, ...] | None:
    """Dimensions that are all known numbers, else None."""
    if dims is None:
        return None
    numbers = tuple(dim for dim in dims if isinstance(dim, int))
    return numbers if len(numbers) == len(dims) else None


# Numbers that may only be known at run time


#: Where a part of a list ends that goes on to its last element.
END = int(np.iinfo(np.int32).max)


def part(context: Context, values: str, start: Number, end: Number) -> Value:
    """The elements of a list from `start` to before `end`; below opset 10 both are numbers."""
    op = context.op
    if context.op.opset < 10:
        return op.Slice(values, axes=[0], starts=[start], ends=[end])
    bounds = [as_name(context, number) for number in (start, end)]
    # How many bounds there are may not be known, but is where the axes are.
    return op.Slice(values, *bounds, context.array([0], "axis"))


def known_size(context: Context, name: str, axis: int) -> int | None:
    """The size of one dimension, if it is known at conversion."""
    dims = dims_of(context, name)
    dim = dims[axis] if dims is not None else None
    return dim if isinstance(dim, int) else None


def size_of(context: Context, name: str, axis: int) -> Number:
    """The size of one dimension."""
    op = context.op
    known = known_size(context, name, axis)
    if known is not None:
        return known

    def write() -> Value:
        shape = op.Shape(name)
        if axis < 0:  # Gather takes no negative index before opset 11.
            return part(context, shape, axis, axis + 1 or END)
        return op.Gather(shape, context.array([axis], "axis"), axis=0)

    return Later(write)


def numbers_of(context: Context, name: str, count: int) -> list[Number]:
    """The elements of a list of integers."""
    known = context.elements(name)

    def number(index: int) -> Number:
        found = None if known is None else known[index]
        if found is not None:
            return found
        at = context.array([index], "index")
        return Later(lambda: context.op.Gather(name, at, axis=0))

    return [number(index) for index in range(count)]


def as_name(context: Context, number: Number) -> str:
    """A number as an int64 tensor of shape [1]."""
    if isinstance(number, int):
        return context.array([number], "number")
    return number if isinstance(number, str) else number.name


def _computed(context: Context, op_type: str, *numbers: Number) -> Later:
    return Later(lambda: context.op.emit(op_type, *[as_name(context, each) for each in numbers]))


def times(context: Context, first: Number, second: Number) -> Number:
    """The product of two numbers."""
    if isinstance(first, int) and isinstance(second, int):
        return first * second
    if first == 1:
        return second
    if second == 1:
        return first
    return _computed(context, "Mul", first, second)


def plus(context: Context, first: Number, second: Number) -> Number:
    """The sum of two numbers."""
    if isinstance(first, int) and isinstance(second, int):
        return first + second
    if first == 0:
        return second
    if second == 0:
        return first
    return _computed(context, "Add", first, second)


def minus(context: Context, first: Number, second: Number) -> Number:
    """The difference of two numbers."""
    if isinstance(first, int) and isinstance(second, int):
        return first - second
    if second == 0:
        return first
    return _computed(context, "Sub", first, second)


def quotient(context: Context, number: Number, by: Number) -> Number:
    """A number that is not negative divided by another, rounded down."""
    if isinstance(number, int) and isinstance(by, int):
        return number // by
    if by == 1:
        return number
    return _computed(context, "Div", number, by)


def at_least_zero(context: Context, number: Number) -> Number:
    """A number, or 0 where it is negative."""
    op = context.op
    if isinstance(number, int):
        return max(0, number)

    def write() -> Value:
        zero, name = context.array([0], "zero"), as_name(context, number)
        below = op.Less(name, zero)
        return op.Where(below, zero, name)

    return Later(write)


def arange(context: Context, count: Number) -> str:
    """The int64 numbers from 0 up to `count`, as a tensor of one dimension.

    From opset 9 on they are the places of the non-zero elements of as many ones; before, what a
    Loop of that many rounds gives.

    Raises:
        Blocked: the count is not known, and the conversion leads below opset 7.
    """
    op = context.op
    if isinstance(count, int) and count <= MOST_WRITTEN:
        return context.array(np.arange(count, dtype=np.int64), "range")
    count = as_name(context, count)
    if min(context.op.opset, context.target_opset) >= 9:
        one = numpy_helper.from_array(np.ones(1, np.int64))
        ones = op.ConstantOfShape(count, value=one)
        return squeezed(context, op.NonZero(ones), [0])
    reason = "to count up to a number only known at run time takes a Loop before opset 9"
    need_loops(context, reason, OR_STATE)
    names = [context.fresh(hint) for hint in ("round", "unfinished", "carried", "again", "kept")]
    loop_round, unfinished, carried, again, kept = names
    number = context.fresh("number")
    copies = ((unfinished, again), (carried, kept), (loop_round, number))
    nodes = [NodeProto(op_type="Identity", name=b, input=[a], output=[b]) for a, b in copies]
    scalar = helper.make_tensor_value_info

    body = GraphProto(
        name=number,
        node=nodes,
        input=[
            scalar(loop_round, TensorProto.INT64, []),
            scalar(unfinished, TensorProto.BOOL, []),
            scalar(carried, TensorProto.INT64, []),
        ],
        output=[
            scalar(again, TensorProto.BOOL, []),
            scalar(kept, TensorProto.INT64, []),
            scalar(number, TensorProto.INT64, []),
        ],
    )
    # Something must be carried from round to round.
    rounds = squeezed(context, count, [0])
    true = context.array(np.array(True), "true")
    outputs = [context.fresh("rounds"), context.fresh("range")]
    op.Loop(rounds, true, rounds, outputs=outputs, body=body)
    return outputs[1]


def along_axis(context: Context, data: str, axis: int) -> Value:
    """``[-1, 1, ..., 1]``, in which a vector broadcasts along an axis of data of unknown rank.

    It has no more dimensions than the data, so that one number for a scalar stays a scalar.
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


# Operators whose axes are an attribute or an input, depending on the opset


def _over(
    context: Context, op_type: str, name: str, axes: list[int], since: int, **values: Any
) -> Value:
    """Emit an operator whose axes became an input with opset `since`."""
    op = context.op
    if context.op.opset >= since:
        return op.emit(op_type, name, context.array(axes, "axes"), **values)
    return op.emit(op_type, name, axes=axes, **values)


def squeezed(context: Context, name: str, axes: list[int]) -> str:
    """A tensor without the given dimensions of 1."""
    return _over(context, "Squeeze", name, axes, 13) if axes else name


def unsqueezed(context: Context, name: str, axes: list[int]) -> str:
    """A tensor with dimensions of 1 put in, counted in the result."""
    return _over(context, "Unsqueeze", name, axes, 13) if axes else name


def reduced(context: Context, op_type: str, name: str, axes: list[int], *, keep: bool) -> str:
    """A reduction over the given axes; over none it is the tensor itself (sums and means)."""
    since = 13 if op_type == "ReduceSum" else 18
    return _over(context, op_type, name, axes, since, keepdims=int(keep)) if axes else name
