"""Split: 2 added a default of axis, 13 made the sizes an input, 18 added `num_outputs`."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import ints_to_constant, known_axes
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.indices import size_along
from onnxreduce_cli.emit.sizes import known_size
from onnxreduce_cli.steps.registry import down, up


@up(
    "Split",
    2,
    "split: input to attribute, at run time to 13's input",
    blocks="the sizes are only known at run time, and it does not lead to opset 13",
)
def sizes_without_input(context: Context) -> None:
    """``Split<axis=0>(x, [1.0, 2.0])`` becomes ``Split<axis=0, split=[1, 2]>(x)``.

    Sizes that are only known at run time are an input again from opset 13 on.
    """
    data, name = context.input(0), context.input(1)
    if not name:
        return
    sizes = context.constant(name)
    if sizes is not None:
        context.replace(inputs=[data], split=[int(size) for size in sizes.reshape(-1)])
        return
    if not context.reaches(13):
        raise Blocked(
            f"its sizes {name!r} are only known at run time, and from opset 2 to 12 Split has them "
            "as an attribute",
            "choose opset 13 or later",
        )
    context = context.at(13)
    context.replace(inputs=[data, cast(context, name, TensorProto.INT64)], drop=("split",))


@down("Split", 2, "axis: its default 0 written out")
def split_axis_written_out(context: Context) -> None:
    """``Split(x)`` becomes ``Split<axis=0>(x)``."""
    if context.attribute("axis") is None:
        context.replace(axis=0)


@up("Split", 13, "split: attribute to input")
def sizes_to_input(context: Context) -> None:
    """``Split<split=[1, 2]>(x)`` becomes ``Split(x, [1, 2])``."""
    if context.attribute("split") is not None:
        sizes = ints_to_constant(context, "split")
        context.replace(inputs=[context.input(0), sizes], drop=("split",))


@down("Split", 13, "split: input to attribute; at run time one Slice for each part")
def sizes_to_attribute(context: Context) -> None:
    """``Split(x, [1, 2])`` becomes ``Split<split=[1, 2]>(x)``.

    Sizes that are only known at run time become ``Slice(x, start, end)`` for each part.
    """
    if not context.input(1):
        return
    sizes = known_axes(context)
    if sizes is not None:
        context.replace(inputs=[context.input(0)], split=sizes)
        return
    slices_at_run_time(context)


@up("Split", 18, "num_outputs: the number of outputs, where there are no sizes")
def number_written_out(context: Context) -> None:
    """``Split(x)`` with two outputs becomes ``Split<num_outputs=2>(x)``."""
    if not context.input(1):
        context.replace(num_outputs=len(context.node.output))


@down(
    "Split",
    18,
    "num_outputs: dropped where the parts are equal, else written as sizes",
    blocks="num_outputs is not the number of outputs",
)
def number_to_sizes(context: Context) -> None:
    """``Split<num_outputs=2>(x)`` of 5 elements becomes ``Split(x, [3, 2])``, of 4 ``Split(x)``.

    Where the size is only known at run time, so are those of the parts: each has the size divided
    by their number, rounded up, and the last what is left.
    """
    number = context.value("num_outputs")
    if number is None:
        return
    if number != len(context.node.output):
        raise Blocked(
            f"num_outputs is {number}, but it has {len(context.node.output)} outputs",
            "correct the model",
        )
    data, axis = context.input(0), context.value("axis", 0)
    dim = known_size(context, data, axis)
    drop = ("num_outputs",)
    if number == 1 or (isinstance(dim, int) and dim % number == 0):
        context.replace(drop=drop)
        return
    if isinstance(dim, int):
        sizes = context.array(part_sizes(dim, number), "sizes")
    else:
        sizes = _sizes_at_run_time(context, number, axis)
    context.replace(inputs=[data, sizes], drop=drop)


def part_sizes(size: int, number: int) -> list[int]:
    """Return the sizes of a number of parts: equal ones but for the last, as Split 18 has them."""
    part = -(-size // number)
    # Of 5 elements 4 parts cannot be made; where that is never run it must load all the same.
    ends = [min(part * index, size) for index in range(number)] + [size]
    return [end - start for start, end in pairwise(ends)]


def _sizes_at_run_time(context: Context, number: int, axis: int) -> Value:
    """Return the sizes of `number` parts along an axis, int64 of shape [number]."""
    op = context.op
    size = size_along(context, context.input(0), axis, TensorProto.INT64)
    rounded = op.Add(size, context.scalar(number - 1, "more"))
    part = op.Div(rounded, context.scalar(number, "number"))
    equal = op.Mul(part, context.array([1] * (number - 1), "ones"))
    others_size = op.Mul(part, context.scalar(number - 1, "others"))
    rest = op.Sub(size, others_size)
    last = op.Reshape(rest, context.array(np.array([1]), "list"))
    return op.Concat(equal, last, axis=0)


def slices_at_run_time(context: Context) -> None:
    """``Split(x, sizes)`` becomes ``Slice(x, start, start + size)`` for each output."""
    op = context.op
    data, sizes = context.input(0), context.input(1)
    axis = context.array([context.value("axis", 0)], "axis")
    start = context.array([0], "start")
    outputs = context.node.output
    for index, output in enumerate(outputs):
        size = op.Slice(sizes, context.array([index], "start"), context.array([index + 1], "end"))
        end = op.Add(start, size)
        inputs = [data, start, end, axis]
        if index + 1 < len(outputs):
            op.Slice(*inputs, outputs=[output])
        else:
            context.replace("Slice", inputs, [output], keep=())
        start = end
