"""AveragePool, MaxPool and LpPool with dilations, below opsets 19, 10 and 18."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import reduced, unsqueezed
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import Array
from onnxreduce_cli.emit.numbers import Number, as_name
from onnxreduce_cli.model.graph.values import numpy_dtype
from onnxreduce_cli.steps.pooling.windows import (
    Indices,
    WindowedAxis,
    indices_value,
    pad_spatial_axes,
    window_indices,
    windowed_axes,
)


def pool_gathered_windows(context: Context) -> None:
    """``MaxPool<dilations=[2], kernel_shape=[2]>(x)``, x of length 4, becomes
    ``MaxPool<kernel_shape=[2], strides=[2]>(Gather<axis=2>(x, [0, 2, 1, 3]))``.

    Padding is written out before. Where some elements of a window do not count, its mean is
    multiplied by the number of its elements divided by the number of those that count.
    """
    context = context.at(max(context.op.opset, 13))
    spatial = windowed_axes(context)
    padding = -np.inf if context.node.op_type == "MaxPool" else 0.0
    data = _windows_behind_each_other(context, spatial, padding)
    kernel = [axis.window.kernel for axis in spatial]
    drop = ("auto_pad", "ceil_mode", "dilations", "pads", "count_include_pad", "storage_order")
    factor = ""
    if context.node.op_type == "AveragePool":
        elem_type = context.need_elem_type(context.input(0), "means are multiplied in it")
        pads_count = bool(context.value("count_include_pad", 0))
        factor = _mean_factor(context, spatial, elem_type, pads_count=pads_count)
    output = context.node.output[0]
    pooled = context.fresh("mean") if factor else output
    context.replace(inputs=[data], outputs=[pooled], strides=kernel, drop=drop)
    if factor:
        context.op.Mul(pooled, factor, outputs=[output])


def _windows_behind_each_other(
    context: Context, spatial: list[WindowedAxis], padding: float
) -> str:
    """Return the input with the windows along each axis one behind the other.

    Args:
        context: the pool.
        spatial: its spatial axes.
        padding: the number that the padding consists of.

    Returns:
        a tensor of the input's dtype, of shape [N, C, count * kernel along each spatial axis...].
    """
    op = context.op
    begins, ends = [axis.begin for axis in spatial], [axis.end for axis in spatial]
    data = pad_spatial_axes(context, context.input(0), begins, ends, padding)
    for at, axis in enumerate(spatial, 2):
        where = window_indices(context, axis)
        if isinstance(where, str):
            flat = op.Reshape(where, context.array([-1], "flat"))
        else:
            flat = context.array(where.reshape(-1), "windows")
        data = op.Gather(data, flat, axis=at)
    return data


def _mean_factor(
    context: Context, spatial: list[WindowedAxis], elem_type: int, *, pads_count: bool
) -> str:
    """Return for each window how many elements it has for each that counts; empty if always 1.

    Args:
        context: the pool.
        spatial: its spatial axes.
        elem_type: the dtype of the result.
        pads_count: whether the padding that the node states counts.

    Returns:
        a tensor of shape [counts of windows...].
    """
    known = np.ones((), np.float64)
    computed = []
    for at, axis in enumerate(spatial):
        if _all_elements_count(axis, pads_count):
            continue
        factor, more = _axis_factor(context, axis, pads_count), len(spatial) - 1 - at
        if isinstance(factor, str):
            factor = factor if elem_type == TensorProto.FLOAT else cast(context, factor, elem_type)
            computed.append(unsqueezed(context, factor, list(range(1, 1 + more))))
        else:
            known = known * factor.reshape(-1, *[1] * more)
    factors = [context.array(known.astype(numpy_dtype(elem_type)), "share")] if known.ndim else []
    total = ""
    for name in factors + computed:
        total = context.op.Mul(total, name) if total else name
    return total


def _all_elements_count(axis: WindowedAxis, pads_count: bool) -> bool:
    """Return whether all elements of all windows count."""
    if not pads_count:
        return axis.begin == 0 and axis.end == 0
    if isinstance(axis.end, int) and isinstance(axis.stated, int):
        return axis.end <= axis.stated
    return axis.end == axis.stated


def _axis_factor(context: Context, axis: WindowedAxis, pads_count: bool) -> Indices:
    """Return for each window how many elements it has, along one axis, for each that counts.

    Returns:
        a float64 array of shape [count] where sizes are known, else a float tensor of that shape.
    """
    op = context.op
    kernel, where = axis.window.kernel, window_indices(context, axis)
    first: Number = 0 if pads_count else axis.begin
    behind = axis.begin + axis.size
    if pads_count:
        behind = behind + axis.stated
    if not isinstance(where, str) and isinstance(first, int) and isinstance(behind, int):
        with np.errstate(divide="ignore"):
            counts: Array = ((where >= first) & (where < behind)).sum(axis=1)
            factors: Array = kernel / counts
        return factors
    where = indices_value(context, where)
    is_before = op.Less(where, as_name(context, first))
    is_inside = op.Less(where, as_name(context, behind))
    ahead, inside = (cast(context, name, TensorProto.FLOAT) for name in (is_before, is_inside))
    counted = op.Sub(inside, ahead)
    total = reduced(context, "ReduceSum", counted, [1], keep=False)
    return op.Div(context.scalar(float(kernel), "kernel"), total)
