"""Normalizations below the opset they came with, written out as mean and deviation.

The variance is the mean of the squared deviations, not the mean square less the squared mean as
in the specification's function bodies: that one cancels, and may become negative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, numpy_helper

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.axes import normalised
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import HALVES, cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import END, constant, dims_of, part, reduced, static, unsqueezed
from onnxreduce_cli.model.values import Dims
from onnxreduce_cli.steps.registry import introduced, up

_GROUPS = "mean and deviation of each group written out"


@dataclass(frozen=True)
class Trailing:
    """The axes from one that is counted from the front, of unknown rank.

    Attributes:
        axis: the first of them.
        kept: the shape that a reduction over them keeps: 1 for each of them.
    """

    axis: int
    kept: str


Axes = list[int] | Trailing


def _trailing(context: Context, default: int = -1) -> Axes:
    """The axes from the attribute `axis` to the last."""
    op = context.op
    axis, data = context.value("axis", default), context.input(0)
    rank = context.settled_rank(data)
    if rank is not None:
        return list(range(normalised((axis,), rank)[0] if rank else 0, rank))
    if axis < 0:
        return list(range(axis, 0))
    sizes = op.Shape(data)
    behind = op.Shape(part(context, sizes, axis, END))
    one = numpy_helper.from_array(np.ones(1, np.int64))
    ones = op.ConstantOfShape(behind, value=one)
    kept = op.Concat(part(context, sizes, 0, axis), ones, axis=0)
    return Trailing(axis, kept)


def _mean(context: Context, name: str, axes: Axes) -> str:
    """``ReduceMean(name)`` over the axes, whose dimensions are kept."""
    if isinstance(axes, list):
        return reduced(context, "ReduceMean", name, axes, keep=True)
    rows = context.op.Flatten(name, axis=axes.axis)
    mean = reduced(context, "ReduceMean", rows, [1], keep=True)
    return shapes.reshaped(context, mean, axes.kept)


def _working(context: Context) -> tuple[str, int, int]:
    """The input in the dtype to compute in: the attribute `stash_type`, or double for double.

    Kernels compute doubles in double, although the attribute says float by default.
    """
    data = context.input(0)
    given = context.need_elem_type(data, "the dtype to compute in depends on it")
    working = given if given == TensorProto.DOUBLE else _stash_type(context)
    return _in(context, data, working), given, working


def _stash_type(context: Context) -> int:
    """The dtype that the node says to compute in; float where that is a half."""
    stash: int = context.value("stash_type", TensorProto.FLOAT)
    return TensorProto.FLOAT if stash in HALVES else stash


def _in(context: Context, name: str, working: int) -> str:
    """A value in the dtype to compute in."""
    return name if context.elem_type(name) == working else cast(context, name, working)


def _root(context: Context, squares: str, axes: Axes, epsilon: float, working: int) -> Value:
    """``Sqrt(ReduceMean(squares) + epsilon)``, the dimensions kept."""
    op = context.op
    mean = _mean(context, squares, axes)
    small = constant(context, epsilon, working, "epsilon")
    return op.Sqrt(op.Add(mean, small))


def _finish(context: Context, op_type: str, inputs: list[str], to: int, working: int) -> None:
    """Emit the last node, and a Cast where the output has another dtype."""
    output = [context.node.output[0]]
    if to == working:
        context.replace(op_type, inputs, output, keep=())
    else:
        context.replace("Cast", [context.op.emit(op_type, *inputs)], output, keep=(), to=to)


@introduced("LayerNormalization", 17, "mean and deviation written out")
def layer_normalization(context: Context) -> None:
    """``LayerNormalization(x, scale, bias)`` becomes
    ``d / Sqrt(ReduceMean(d * d) + epsilon) * scale + bias`` with ``d = x - ReduceMean(x)``.
    """
    op = context.op
    axes = _trailing(context)
    data, given, working = _working(context)
    mean = _mean(context, data, axes)
    centred = op.Sub(data, mean)
    square = op.Mul(centred, centred)
    epsilon = context.value("epsilon", 1e-5)
    deviation = _root(context, square, axes, epsilon, working)
    stash = context.value("stash_type", TensorProto.FLOAT)
    extra = [*context.node.output[1:], "", ""]
    if extra[0]:
        _output(context, mean, extra[0], working, stash)
    if extra[1]:
        inverse = op.Reciprocal(deviation)
        _output(context, inverse, extra[1], working, stash)
    result = op.Div(centred, deviation)
    scale = _in(context, context.input(1), working)
    if not context.input(2):
        _finish(context, "Mul", [result, scale], given, working)
        return
    scaled = op.Mul(result, scale)
    _finish(context, "Add", [scaled, _in(context, context.input(2), working)], given, working)


def _output(context: Context, name: str, output: str, working: int, to: int) -> None:
    """Let a value be one of the node's further outputs, of dtype `to`."""
    if working == to:
        context.op.Identity(name, outputs=[output])
    else:
        cast(context, name, to, [output])


@introduced("RMSNormalization", 23, "the root mean square written out")
def rms_normalization(context: Context) -> None:
    """``RMSNormalization(x, scale)`` becomes
    ``x / Sqrt(ReduceMean(x * x) + epsilon) * scale``.
    """
    op = context.op
    axes = _trailing(context)
    data, _, working = _working(context)
    to = context.need_elem_type(context.input(1), "the output has it")
    square = op.Mul(data, data)
    root = _root(context, square, axes, context.value("epsilon", 1e-5), working)
    result = op.Div(data, root)
    _finish(context, "Mul", [result, _in(context, context.input(1), working)], to, working)


@introduced("GroupNormalization", 18, _GROUPS)
def group_normalization(context: Context) -> None:
    """The same, but with a scale and a bias per group, applied before the Reshape back."""
    op = context.op
    dims = dims_of(context, context.input(0))
    if _is_empty(context, dims):
        return
    given = context.need_elem_type(context.input(0), "epsilon has that dtype")
    working = TensorProto.FLOAT if given in HALVES else given
    result = _grouped(context, _in(context, context.input(0), working), dims, working)
    scale, bias = (
        unsqueezed(context, _in(context, context.input(index), working), [1]) for index in (1, 2)
    )
    result = op.Add(op.Mul(result, scale), bias)
    _finish(context, "Identity", [_ungrouped(context, result, dims)], given, working)


def _is_empty(context: Context, dims: Dims | None) -> bool:
    """Let an Identity take the place of a node that is known to have no elements."""
    empty = dims is not None and 0 in dims
    if empty:
        context.replace("Identity", [context.input(0)], keep=())
    return empty


def _grouped(context: Context, data: str, dims: Dims | None, working: int) -> Value:
    """The data normalised by group, in the shape [N, number of groups, size of a group]."""
    op = context.op
    groups = context.value("num_groups")
    known = static(dims and dims[1:])
    size = -1 if known is None else math.prod(known) // groups
    shape = context.array([0, groups, size], "grouped_shape")
    grouped = op.Reshape(data, shape)
    mean = reduced(context, "ReduceMean", grouped, [2], keep=True)
    centred = op.Sub(grouped, mean)
    square = op.Mul(centred, centred)
    deviation = _root(context, square, [2], context.value("epsilon", 1e-5), working)
    return op.Div(centred, deviation)


def _ungrouped(context: Context, grouped: str, dims: Dims | None) -> Value:
    """The grouped data in the shape of the node's input again."""
    op = context.op
    known = static(dims and dims[1:])
    if known is not None:
        shape = context.array([0, *known], "whole_shape")
    else:
        shape = op.Shape(context.input(0))
    return op.Reshape(grouped, shape)


@introduced(
    "MeanVarianceNormalization",
    9,
    "mean and deviation written out",
)
def mean_variance_normalization(context: Context) -> None:
    """``MeanVarianceNormalization<axes=[0, 2, 3]>(x)`` becomes
    ``d / (Sqrt(ReduceMean(d * d)) + 1e-9)`` with ``d = x - ReduceMean(x)``.
    """
    op = context.op
    axes = tuple(context.value("axes", (0, 2, 3)))
    if any(axis < 0 for axis in axes):
        rank = context.settled_rank(context.input(0))
        if rank is None:
            context = context.at(11)  # The older ReduceMean has no negative axes; its step goes on.
            op = context.op
        else:
            axes = normalised(axes, rank)
    data, working = context.input(0), context.need_elem_type(context.input(0), "epsilon has it")
    mean = reduced(context, "ReduceMean", data, list(axes), keep=True)
    centred = op.Sub(data, mean)
    square = op.Mul(centred, centred)
    variance = reduced(context, "ReduceMean", square, list(axes), keep=True)
    root = op.Sqrt(variance)
    small = constant(context, 1e-9, working, "epsilon")
    context.replace("Div", [centred, op.Add(root, small)], keep=())


@up("MeanVarianceNormalization", 13, "axes: the default written out")
def mean_variance_axes(context: Context) -> None:
    """``MeanVarianceNormalization(x)`` becomes
    ``MeanVarianceNormalization<axes=[0, 2, 3]>(x)``.

    The function body of opset 13 reads the attribute, and onnx's full check fails without it.
    """
    if context.attribute("axes") is None:
        context.replace(axes=[0, 2, 3])
