"""LayerNormalization below opset 17 and RMSNormalization below 23, written out."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, numpy_helper

from onnxreduce_cli.emit.axes import non_negative_axes
from onnxreduce_cli.emit.casts import cast, in_dtype
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT
from onnxreduce_cli.emit.sizes import END, sliced
from onnxreduce_cli.idioms.expansion import Expansion, replace_by_last
from onnxreduce_cli.idioms.normalizations import Square, affine, by_mul, by_pow, normalized
from onnxreduce_cli.idioms.normalizations import rms_normalization as idiom
from onnxreduce_cli.model.graph.values import numpy_dtype
from onnxreduce_cli.steps.normalization.moments import (
    Axes,
    TrailingAxes,
    mean_over,
    stash_type,
)
from onnxreduce_cli.steps.registry import introduced


@introduced("LayerNormalization", 17, "mean and deviation written out, as runtimes know them")
def layer_normalization(context: Context) -> None:
    """``LayerNormalization(x, scale, bias)`` becomes
    ``d / Sqrt(ReduceMean(Pow(d, 2)) + epsilon) * scale + bias`` with ``d = x - ReduceMean(x)``; a
    bias of zeros is added where runtimes know it by that (see `_bias`), and behind a Transpose x is
    flattened to a matrix first (see `_back_behind_transpose`).
    """
    op = context.op
    axes = _axes_from(context)
    data, elem_type, working = _in_working_dtype(context)
    last = axes[0] if isinstance(axes, list) and len(axes) == 1 else None
    recognised = last is not None and elem_type not in HALVES and not any(context.node.output[1:])
    back = _back_behind_transpose(context) if recognised and working == elem_type else None
    if back:
        data, axes = op.Flatten(data, axis=last), [1]
    to = Expansion(context, working, lambda _, name, __: mean_over(context, name, axes))
    normal = normalized(to, data, _square(elem_type))
    stash = stash_type(context)
    extra = [*context.node.output[1:], "", ""]
    if extra[0]:
        _write_output(context, normal.mean, extra[0], working, stash)
    if extra[1]:
        inverse = op.Reciprocal(normal.deviation)
        _write_output(context, inverse, extra[1], working, stash)
    scale = in_dtype(context, context.input(1), working)
    bias = _bias(context, working, recognised)
    result = affine(to, normal.result, scale, bias)
    if back:
        shape, allowzero = back
        context.replace("Reshape", [result, shape], keep=(), allowzero=allowzero)
    else:
        replace_by_last(context, result, elem_type, working)


@introduced("RMSNormalization", 23, "the root mean square written out, as runtimes know it")
def rms_normalization(context: Context) -> None:
    """``RMSNormalization(x, scale)`` becomes
    ``x / Sqrt(ReduceMean(Pow(x, 2)) + epsilon) * scale``.
    """
    axes = _axes_from(context)
    data, given, working = _in_working_dtype(context)
    elem_type = context.need_elem_type(context.input(1), "the output has it")
    scale = in_dtype(context, context.input(1), working)
    to = Expansion(context, working, lambda _, name, __: mean_over(context, name, axes))
    replace_by_last(context, idiom(to, data, scale, _square(given)), elem_type, working)


def _back_behind_transpose(context: Context) -> tuple[str, int | None] | None:
    """Return the shape of what a Transpose gives the node, int64 of shape [rank], and `allowzero`
    for a Reshape to it; None where nothing does, and where tensors of size 0 would be in the way.

    ONNX Runtime moves a Transpose into what follows, and does not know those nodes any more, but
    not past a matrix made of it.
    """
    data = context.input(0)
    dims = data.dims
    if context.made_by(data) != "Transpose" or not dims or len(dims) < 3:
        return None
    inner = [dim for dim in dims[1:] if isinstance(dim, int) and dim > 0]
    if len(inner) == len(dims) - 1:
        return context.array([-1, *inner], "shape"), None
    return (context.op.Shape(data), 1) if context.reaches(14) else None


def _square(elem_type: int) -> Square:
    """Return the function that squares data of a dtype.

    ONNX Runtime before 1.20 makes one node of what it knows of halves too, and has no kernel for
    that: such a model does not load.
    """
    return by_mul if elem_type in HALVES else by_pow


def _bias(context: Context, working: int, recognised: bool) -> str:
    """Return the bias of a LayerNormalization in the dtype `working`; empty for none.

    Runtimes do not know it without one. Zeros with a sign leave that of any zero they are added to.

    Args:
        context: the node.
        working: the dtype to compute in.
        recognised: whether runtimes know the rest of what is written.
    """
    if context.input(2):
        return in_dtype(context, context.input(2), working)
    dims = context.input(1).dims if recognised else None
    if dims is None or len(dims) != 1 or not isinstance(dims[0], int) or dims[0] > LARGEST_CONSTANT:
        return ""
    return context.array(np.full(dims[0], -0.0, numpy_dtype(working)), "zeros")


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
    working = elem_type if elem_type == TensorProto.DOUBLE else _wide_stash_type(context)
    return in_dtype(context, data, working), elem_type, working


def _wide_stash_type(context: Context) -> int:
    """Return the dtype that the node says to compute in; float where that has 16 bits."""
    stash = stash_type(context)
    return TensorProto.FLOAT if stash in HALVES else stash


def _write_output(context: Context, name: str, output: str, working: int, to: int) -> None:
    """Give one of the node's further outputs, a value of dtype `working`, in the dtype `to`."""
    if working != to:
        cast(context, name, to, [output])
        return
    for node in [item.node for item in context.emitted]:
        for names in (node.input, node.output):
            names[:] = [output if given == name else given for given in names]
