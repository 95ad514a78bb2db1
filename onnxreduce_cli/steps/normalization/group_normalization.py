"""InstanceNormalization (6) and GroupNormalization (21)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import END, Number, as_name, part, quotient, size_of, unsqueezed
from onnxreduce_cli.model.values import numpy_dtype
from onnxreduce_cli.steps.registry import down, up

# InstanceNormalization: 6 dropped consumed_inputs and allowed any rank


@up("InstanceNormalization", 6, "consumed_inputs dropped")
def without_consumed_inputs(context: Context) -> None:
    """``InstanceNormalization<consumed_inputs=[0, 0, 0]>(x, ...)`` becomes
    ``InstanceNormalization(x, ...)``.
    """
    if context.attribute("consumed_inputs") is not None:
        context.replace(drop=("consumed_inputs",))


@down("InstanceNormalization", 6, "the input made 4-D")
def instance_before_6(context: Context) -> None:
    """``InstanceNormalization(x, ...)``, x of rank 3, becomes
    ``Squeeze(InstanceNormalization(Unsqueeze(x), ...))``.
    """
    if context.settled_rank(context.input(0)) != 4:
        with_rank_4(context)


def with_rank_4(context: Context, **values: Any) -> None:
    """The node on its input with rank 4: dimensions of 1 added, or those from the third joined."""
    op = context.op
    data = context.input(0)
    rank = context.settled_rank(data)
    if rank == 4:
        context.replace(**values)
    elif rank in (2, 3):
        axes = list(range(rank, 4))
        longer = op.Unsqueeze(data, axes=axes)
        output, *others = context.node.output
        outputs = [context.fresh("normal"), *others]
        context.replace(inputs=[longer, *context.node.input[1:]], outputs=outputs, **values)
        op.Squeeze(*outputs[:1], outputs=[output], axes=axes)
    else:
        shape = context.array([0, 0, -1, 1], "shape")
        joined = op.Reshape(data, shape)
        restored(context, [joined, *context.node.input[1:]], **values)


def restored(context: Context, inputs: Sequence[str], **values: Any) -> None:
    """The node on other inputs, and its output in the shape of what it read before."""
    op = context.op
    output, *others = context.node.output
    outputs = [context.fresh("normal"), *others]
    context.replace(inputs=inputs, outputs=outputs, **values)
    shape = op.Shape(context.input(0))
    op.Reshape(outputs[0], shape, outputs=[output])


# GroupNormalization


@up("GroupNormalization", 21, "scale and bias repeated for each channel of a group")
def parameters_for_channels(context: Context) -> None:
    """``GroupNormalization<num_groups=2>(x, scale, bias)``, x with 4 channels, becomes the same of
    ``[s0, s0, s1, s1]`` and ``[b0, b0, b1, b1]``.
    """
    groups = context.value("num_groups")
    channels = size_of(context, context.input(0), 1)
    if isinstance(channels, int):
        times: Number = channels // groups
    else:
        times = quotient(context, channels, groups)
    parameters = [_repeated(context, context.input(index), groups, times) for index in (1, 2)]
    elem_type = context.need_elem_type(context.input(0), "the older version computes in it")
    context.replace(inputs=[context.input(0), *parameters], stash_type=elem_type)


def _repeated(context: Context, name: str, groups: int, times: Number) -> Value:
    op = context.op
    known = context.constant(name)
    if known is not None and isinstance(times, int):
        return context.array(np.repeat(known, times), "for_channels")
    column = op.Unsqueeze(name, context.array([1], "axes"))
    if isinstance(times, int):
        shape = context.array([groups, times], "shape")
    else:
        sizes = [as_name(context, number) for number in (groups, times)]
        shape = op.Concat(*sizes, axis=0)
    wide = op.Expand(column, shape)
    return op.Reshape(wide, context.array([-1], "flat"))


@down(
    "GroupNormalization",
    21,
    "written with InstanceNormalization: the older version has a scale for each group only",
    blocks="the dtype is not known",
)
def with_instance_normalization(context: Context) -> None:
    """``GroupNormalization<num_groups=2>(x, scale, bias)`` becomes
    ``n * Unsqueeze(scale) + Unsqueeze(bias)`` with n =
    ``Reshape(InstanceNormalization(Reshape(x, [0, 2, -1]), 1, 0), Shape(x))``.
    """
    op = context.op
    data = context.input(0)
    rank = context.settled_rank(data)
    known = context.type(data)
    if known is not None and known.dims is not None and 0 in known.dims:
        context.replace("Identity", [data], keep=())  # Nothing to normalise.
        return
    given = context.need_elem_type(data, "it is normalised in a dtype of its own")
    working = context.value("stash_type", TensorProto.FLOAT)
    groups = context.value("num_groups")
    wide = data if working == given else cast(context, data, working)
    grouped = op.Reshape(wide, context.array([0, groups, -1], "shape"))
    dtype = numpy_dtype(working)
    ones, zeros = (
        context.array(np.full(groups, value, dtype), hint)
        for value, hint in ((1, "ones"), (0, "zeros"))
    )
    normal = op.InstanceNormalization(grouped, ones, zeros, epsilon=context.attribute("epsilon"))
    shape = op.Shape(data)
    if rank is None:  # The dimensions after the channels count as one.
        behind = shapes.product(context, part(context, shape, 2, END))
        three = op.Concat(part(context, shape, 0, 2), behind, axis=0)
        normal = shapes.reshaped(context, normal, three, (None,) * 3)
    else:
        normal = op.Reshape(normal, shape)
    if working != given:
        normal = cast(context, normal, given)
    axes = list(range(1, (rank or 3) - 1))
    scale, bias = (unsqueezed(context, context.input(index), axes) for index in (1, 2))
    scaled = op.Mul(normal, scale)
    if rank is None:
        result = context.replace("Add", [scaled, bias], [context.fresh("result")], keep=())
        shapes.reshaped(context, result.output[0], shape, output=context.node.output[0])
    else:
        context.replace("Add", [scaled, bias], keep=())
