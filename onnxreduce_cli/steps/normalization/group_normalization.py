"""GroupNormalization: 18 and 21.

18 introduced it with a scale and a bias for each group; from 21 on they are for each channel.
"""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.axes import reduced, unsqueezed
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast, in_dtype
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES
from onnxreduce_cli.emit.node_facts import Array
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT, Number, as_name
from onnxreduce_cli.emit.sizes import END, dims_of, size_of, sliced, static_dims
from onnxreduce_cli.model.graph.values import Dims, numpy_dtype
from onnxreduce_cli.steps.normalization.moments import (
    replace_and_cast,
    root_mean,
    stash_type,
)
from onnxreduce_cli.steps.registry import down, introduced, up


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
        times = channels // groups
    parameters = [
        _repeated_for_channels(context, context.input(index), groups, times) for index in (1, 2)
    ]
    elem_type = context.need_elem_type(context.input(0), "the older version computes in it")
    context.replace(inputs=[context.input(0), *parameters], stash_type=elem_type)


def _repeated_for_channels(context: Context, name: str, groups: int, times: Number) -> Value:
    """Return a tensor of shape [groups] with each number `times` over: [groups * times].

    Its dtype stays.
    """
    op = context.op
    known = context.constant(name)
    if known is not None and isinstance(times, int) and known.size * times <= LARGEST_CONSTANT:
        return context.array(np.repeat(known, times), "for_channels")
    column = op.Unsqueeze(name, context.array([1], "axes"))
    if isinstance(times, int):
        shape = context.array([groups, times], "shape")
    else:
        sizes = [as_name(context, number) for number in (groups, times)]
        shape = op.Concat(*sizes, axis=0)
    wide = op.Expand(column, shape)
    return op.Reshape(wide, context.array([-1], "flat"))


def _filled(context: Context, count: int, value: Array, hint: str) -> Value:
    """Return a tensor of shape [count] that holds one value, given as an array of shape [1]."""
    if count <= LARGEST_CONSTANT:
        return context.array(np.repeat(value, count), hint)
    return context.op.Expand(context.array(value, hint), context.array([count], "count"))


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
    rank = context.specialised_rank(data)
    known = context.type(data)
    if known is not None and known.dims is not None and 0 in known.dims:
        context.replace("Identity", [data], keep=())  # Nothing to normalise.
        return
    elem_type = context.need_elem_type(data, "it is normalised in a dtype of its own")
    working = stash_type(context)
    groups = context.value("num_groups")
    wide = data if working == elem_type else cast(context, data, working)
    grouped = op.Reshape(wide, context.array([0, groups, -1], "shape"))
    dtype = numpy_dtype(working)
    ones = _filled(context, groups, np.array([1], dtype), "ones")
    zeros = _filled(context, groups, np.array([0], dtype), "zeros")
    normal = op.InstanceNormalization(grouped, ones, zeros, epsilon=context.attribute("epsilon"))
    shape = op.Shape(data)
    if rank is None:  # The dimensions after the channels count as one.
        behind = shapes.product(context, sliced(context, shape, 2, END))
        three = op.Concat(sliced(context, shape, 0, 2), behind, axis=0)
        normal = shapes.reshaped(context, normal, three, (None,) * 3)
    else:
        normal = op.Reshape(normal, shape)
    if working != elem_type:
        normal = cast(context, normal, elem_type)
    axes = list(range(1, (rank or 3) - 1))
    scale, bias = (unsqueezed(context, context.input(index), axes) for index in (1, 2))
    scaled = op.Mul(normal, scale)
    if rank is None:
        result = context.replace("Add", [scaled, bias], [context.fresh("result")], keep=())
        shapes.reshaped(context, result.output[0], shape, output=context.node.output[0])
    else:
        context.replace("Add", [scaled, bias], keep=())


@introduced("GroupNormalization", 18, "mean and deviation of each group written out")
def group_normalization(context: Context) -> None:
    """``GroupNormalization<num_groups=2>(x, scale, bias)`` becomes
    ``Reshape(d / Sqrt(ReduceMean(d * d) + epsilon) * scale + bias, Shape(x))`` with
    ``d = g - ReduceMean(g)`` and ``g = Reshape(x, [0, 2, -1])``; scale and bias are for groups.
    """
    op = context.op
    dims = dims_of(context, context.input(0))
    if _replaced_as_empty(context, dims):
        return
    elem_type = context.need_elem_type(context.input(0), "epsilon has that dtype")
    working = TensorProto.FLOAT if elem_type in HALVES else elem_type
    result = _grouped(context, in_dtype(context, context.input(0), working), dims, working)
    scale, bias = (
        unsqueezed(context, in_dtype(context, context.input(index), working), [1])
        for index in (1, 2)
    )
    result = op.Add(op.Mul(result, scale), bias)
    replace_and_cast(context, "Identity", [_ungrouped(context, result, dims)], elem_type, working)


def _replaced_as_empty(context: Context, dims: Dims | None) -> bool:
    """Replace a node known to have no elements by an Identity; return whether it has none."""
    empty = dims is not None and 0 in dims
    if empty:
        context.replace("Identity", [context.input(0)], keep=())
    return empty


def _grouped(context: Context, data: str, dims: Dims | None, working: int) -> Value:
    """Return the data normalised by group, in the shape [N, number of groups, size of a group]."""
    op = context.op
    groups = context.value("num_groups")
    known = static_dims(dims and dims[1:])
    size = -1 if known is None else math.prod(known) // groups
    shape = context.array([0, groups, size], "grouped_shape")
    grouped = op.Reshape(data, shape)
    mean = reduced(context, "ReduceMean", grouped, [2], keep=True)
    centred = op.Sub(grouped, mean)
    square = op.Mul(centred, centred)
    deviation = root_mean(context, square, [2], context.value("epsilon", 1e-5), working)
    return op.Div(centred, deviation)


def _ungrouped(context: Context, grouped: str, dims: Dims | None) -> Value:
    """Return the grouped data in the shape of the node's input again."""
    op = context.op
    known = static_dims(dims and dims[1:])
    if known is not None:
        shape = context.array([0, *known], "whole_shape")
    else:
        shape = op.Shape(context.input(0))
    return op.Reshape(grouped, shape)
