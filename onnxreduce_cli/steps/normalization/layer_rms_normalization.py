"""LayerNormalization below opset 17 and RMSNormalization below 23, written out."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, numpy_helper

from onnxreduce_cli.emit.axes import non_negative_axes
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES
from onnxreduce_cli.emit.sizes import END, sliced
from onnxreduce_cli.steps.normalization.moments import (
    Axes,
    TrailingAxes,
    in_dtype,
    mean_over,
    replace_and_cast,
    root_mean,
)
from onnxreduce_cli.steps.registry import introduced


@introduced("LayerNormalization", 17, "mean and deviation written out")
def layer_normalization(context: Context) -> None:
    """``LayerNormalization(x, scale, bias)`` becomes
    ``d / Sqrt(ReduceMean(d * d) + epsilon) * scale + bias`` with ``d = x - ReduceMean(x)``.
    """
    op = context.op
    axes = _axes_from(context)
    data, elem_type, working = _in_working_dtype(context)
    mean = mean_over(context, data, axes)
    centred = op.Sub(data, mean)
    square = op.Mul(centred, centred)
    epsilon = context.value("epsilon", 1e-5)
    deviation = root_mean(context, square, axes, epsilon, working)
    stash = context.value("stash_type", TensorProto.FLOAT)
    extra = [*context.node.output[1:], "", ""]
    if extra[0]:
        _output(context, mean, extra[0], working, stash)
    if extra[1]:
        inverse = op.Reciprocal(deviation)
        _output(context, inverse, extra[1], working, stash)
    result = op.Div(centred, deviation)
    scale = in_dtype(context, context.input(1), working)
    if not context.input(2):
        replace_and_cast(context, "Mul", [result, scale], elem_type, working)
        return
    scaled = op.Mul(result, scale)
    replace_and_cast(
        context, "Add", [scaled, in_dtype(context, context.input(2), working)], elem_type, working
    )


@introduced("RMSNormalization", 23, "the root mean square written out")
def rms_normalization(context: Context) -> None:
    """``RMSNormalization(x, scale)`` becomes
    ``x / Sqrt(ReduceMean(x * x) + epsilon) * scale``.
    """
    op = context.op
    axes = _axes_from(context)
    data, _, working = _in_working_dtype(context)
    to = context.need_elem_type(context.input(1), "the output has it")
    square = op.Mul(data, data)
    root = root_mean(context, square, axes, context.value("epsilon", 1e-5), working)
    result = op.Div(data, root)
    replace_and_cast(
        context, "Mul", [result, in_dtype(context, context.input(1), working)], to, working
    )


def _axes_from(context: Context) -> Axes:
    """Return the axes from the attribute `axis` to the last, negative if of unknown rank."""
    op = context.op
    axis, data = context.value("axis", -1), context.input(0)
    rank = context.specialised_rank(data)
    if rank is not None:
        return list(range(non_negative_axes((axis,), rank)[0] if rank else 0, rank))
    if axis < 0:
        return list(range(axis, 0))
    sizes = op.Shape(data)
    behind = op.Shape(sliced(context, sizes, axis, END))
    one = numpy_helper.from_array(np.ones(1, np.int64))
    ones = op.ConstantOfShape(behind, value=one)
    kept = op.Concat(sliced(context, sizes, 0, axis), ones, axis=0)
    return TrailingAxes(axis, kept)


def _in_working_dtype(context: Context) -> tuple[str, int, int]:
    """Return the input in the dtype to compute in: `stash_type`, or double for double.

    Kernels compute doubles in double, although the attribute says float by default.

    Returns:
        the input, its own dtype, and the one to compute in.
    """
    data = context.input(0)
    elem_type = context.need_elem_type(data, "the dtype to compute in depends on it")
    working = elem_type if elem_type == TensorProto.DOUBLE else _stash_type(context)
    return in_dtype(context, data, working), elem_type, working


def _stash_type(context: Context) -> int:
    """Return the dtype that the node says to compute in; float where that has 16 bits."""
    stash: int = context.value("stash_type", TensorProto.FLOAT)
    return TensorProto.FLOAT if stash in HALVES else stash


def _output(context: Context, name: str, output: str, working: int, to: int) -> None:
    """Emit one of the node's further outputs: a value of dtype `working`, cast to `to`."""
    if working == to:
        context.op.Identity(name, outputs=[output])
    else:
        cast(context, name, to, [output])
