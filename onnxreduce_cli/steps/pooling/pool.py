"""AveragePool, MaxPool, LpPool and GlobalLpPool: 2, 7, 8, 10, 12, 18, 19 and 22.

- 2 made `p` of LpPool and GlobalLpPool an integer and `kernel_shape` of LpPool required.
- 7 added `count_include_pad` to AveragePool, 8 the indices to MaxPool.
- 10 (LpPool: 18) added `ceil_mode` and `dilations` (AveragePool: 19).
- 22 leaves out a window that would start in the padding at the end. Before, the definition's
  formula counts it, but says nothing of what it holds; onnx's reference and ONNX Runtime leave it
  out at every opset, and so it is read here.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.casts import cast, widened
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import as_name
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.sizes import size_of
from onnxreduce_cli.steps.pooling.dilated_pool import pool_gathered_windows
from onnxreduce_cli.steps.pooling.max_pool_indices import pool_with_indices, uses_indices
from onnxreduce_cli.steps.pooling.windows import pad_spatial_axes, window_layout, windowed_axes
from onnxreduce_cli.steps.registry import down, up

_POOLS = ("AveragePool", "LpPool", "MaxPool")


def _rounds_up(context: Context) -> bool:
    """Return whether the number of windows is rounded up; SAME_* overrides ceil_mode."""
    auto_pad = context.value("auto_pad", "NOTSET")
    return bool(context.value("ceil_mode", 0)) and not auto_pad.startswith("SAME")


@up(_POOLS, 22, "unchanged")
def no_window_in_padding(context: Context) -> None:
    """A pool stays as it is; a remark says where a window is known to be left out."""
    if _rounds_up(context) and any(window.one_in_padding for window in window_layout(context)):
        context.warn(
            "a window starts in the padding at the end; opset 22 says that it is left out, where "
            "before runtimes did, but types that the model states may count it"
        )


@down(
    _POOLS, 22, "ceil_mode=1 written as padding where it may leave out a window", blocks=NO_COUNTING
)
def window_left_out(context: Context) -> None:
    """``MaxPool<ceil_mode=1, pads=[0, 1]>(x)`` becomes ``MaxPool<pads=[0, 0]>(x)`` where the last
    window would start in the padding at the end, or may.

    Dilated windows may take more padding than runtimes allow. Theirs are cut off by a Slice.
    """
    if not _rounds_up(context):
        return
    windows = window_layout(context)
    if any(
        window.one_in_padding or (window.length is None and not window.never_in_padding)
        for window in windows
    ):
        if all(window.end_of_ceil < window.kernel for window in windows):
            _replace_ceil_mode_by_padding(context)
        else:
            _slice_off_last_window(context)


def _slice_off_last_window(context: Context) -> None:
    """``Slice(Pool<ceil_mode=1>(x), ends=ceil((size + begin) / stride))`` along each axis."""
    op = context.op
    names = list(context.node.output)
    ends, along = [], []
    for at, window in enumerate(window_layout(context), 2):
        inside = size_of(context, context.input(0), at) + window.begin
        starts = inside + (window.stride - 1)
        ends.append(as_name(context, starts // window.stride))
        along.append(at)
    bounds = [
        context.array([0] * len(along), "starts"),
        op.Concat(*ends, axis=0),
        context.array(along, "axes"),
    ]
    whole = [context.fresh("with_last") if name else "" for name in names]
    context.replace(outputs=whole)
    for name, more in zip(names, whole, strict=True):
        if name:
            op.Slice(more, *bounds, outputs=[name])


def _replace_ceil_mode_by_padding(context: Context, *, drop: tuple[str, ...] = ()) -> None:
    """Replace ``ceil_mode=1`` by the padding that gives as many windows when rounding down."""
    windows = window_layout(context)
    begins = [window.begin for window in windows]
    ends = [window.end_of_ceil for window in windows]
    drop = ("ceil_mode", "auto_pad", *drop)
    more = [max(0, end - window.end) for end, window in zip(ends, windows, strict=True)]
    if not any(more) or not context.value("count_include_pad", 0):
        context.replace(pads=[*begins, *ends], drop=drop)
        return
    # Padding that counts is added as zeros; what is beyond it does not count.
    counted = [end - beyond for end, beyond in zip(ends, more, strict=True)]
    data = pad_spatial_axes(context, context.input(0), [*begins], [*counted], 0.0)
    beyond = [*[0] * len(more), *more]
    context.replace(inputs=[data], pads=beyond, drop=(*drop, "count_include_pad"))


@down(
    ("AveragePool", "MaxPool"),
    10,
    "ceil_mode=1 written as padding, dilated windows gathered",
    blocks=NO_COUNTING,
)
@down("LpPool", 18, "ceil_mode=1 written as padding, dilated windows gathered", blocks=NO_COUNTING)
@down("AveragePool", 19, "dilated windows gathered", blocks=NO_COUNTING)
def without_ceil_mode(context: Context) -> None:
    """``MaxPool<ceil_mode=1, kernel_shape=[2], strides=[2]>(x)``, x of length 5, becomes
    ``MaxPool<pads=[0, 1], kernel_shape=[2], strides=[2]>(x)``.

    ``MaxPool<dilations=[2], kernel_shape=[2]>(x)``, x of length 4, becomes
    ``MaxPool<kernel_shape=[2], strides=[2]>(Gather<axis=2>(x, [0, 2, 1, 3]))``. For the indices
    see `pool_with_indices`.
    """
    if any(step != 1 for step in context.value("dilations", ())):
        if uses_indices(context):
            pool_with_indices(context)
        else:
            pool_gathered_windows(context)
        return
    introduced = ("dilations",) if context.op.opset == 18 else ("ceil_mode", "dilations")
    strides = context.value("strides", ())
    if "ceil_mode" in introduced and _rounds_up(context) and any(stride != 1 for stride in strides):
        _replace_ceil_mode_by_padding(context, drop=("dilations",))
    elif any(context.attribute(name) is not None for name in introduced):
        context.replace(drop=introduced)


@down("MaxPool", 8, "the indices: of the largest elements of gathered windows", blocks=NO_COUNTING)
def without_indices(context: Context) -> None:
    """``MaxPool(x)`` with indices becomes ReduceMax and ArgMax; see `pool_with_indices`."""
    if uses_indices(context):
        pool_with_indices(context)
    elif len(context.node.output) > 1 or context.attribute("storage_order") is not None:
        context.replace(outputs=[context.node.output[0]], drop=("storage_order",))


@down("AveragePool", 7, "count_include_pad=1: zeros put around the input", blocks=NO_COUNTING)
def without_counted_pads(context: Context) -> None:
    """``AveragePool<count_include_pad=1, pads=[1, 1]>(x)`` becomes
    ``AveragePool(Pad<pads=[0, 0, 1, 0, 0, 1]>(x))``.
    """
    drop = ("count_include_pad",)
    if context.value("count_include_pad", 0):
        context = context.at(13)  # Pad takes pads that are computed.
        spatial = windowed_axes(context)
        begins, ends = [axis.begin for axis in spatial], [axis.end for axis in spatial]
        data = pad_spatial_axes(context, context.input(0), begins, ends, 0.0)
        context.replace(inputs=[data], drop=(*drop, "pads", "auto_pad"))
    elif context.attribute("count_include_pad") is not None:
        context.replace(drop=drop)


@down("MaxPool", 12, "int8 and uint8 computed in float, which holds them exactly")
def max_pool_small_integers(context: Context) -> None:
    """``MaxPool(x)`` of int8 becomes ``Cast<int8>(MaxPool(Cast<float>(x)))``."""
    narrow = context.elem_type(context.input(0))
    if narrow not in (TensorProto.INT8, TensorProto.UINT8):
        return
    wide = cast(context, context.input(0), TensorProto.FLOAT)
    output, *indices = context.node.output
    pooled = context.fresh("float")
    context.replace(inputs=[wide], outputs=[pooled, *indices])
    cast(context, pooled, narrow, [output])


@up(
    ("GlobalLpPool", "LpPool"),
    2,
    "p: from a float to an integer, or the powers taken before and after",
    blocks="p is not positive or infinite, or there is no kernel_shape",
)
def whole_p(context: Context) -> None:
    """``LpPool<p=2.0, kernel_shape=[2]>(x)`` becomes ``LpPool<p=2, kernel_shape=[2]>(x)``, and with
    p=2.5 ``Pow(LpPool<p=1, kernel_shape=[2]>(Pow(Abs(x), 2.5)), 0.4)``.
    """
    op = context.op
    p = context.value("p", 2.0)
    if context.node.op_type == "LpPool" and context.attribute("kernel_shape") is None:
        raise Blocked("it has no kernel_shape, which opset 2 requires", "write kernel_shape out")
    if p.is_integer():
        context.replace(p=int(p))
        return
    if not 0 < p < np.inf:
        raise Blocked(f"its p is {p}, for which no norm is defined", "choose a positive p")
    data, elem_type, working = widened(context, 0)
    exponents = [context.scalar(power, "power", working) for power in (p, 1 / p)]
    size = op.Abs(data)
    powers = op.Pow(size, exponents[0], broadcast=1)
    total = context.replace(inputs=[powers], outputs=[context.fresh("total")], p=1).output[0]
    outputs = [context.node.output[0]]
    exact = outputs if working == elem_type else None
    root = op.Pow(total, exponents[1], outputs=exact, broadcast=1)
    if exact is None:
        cast(context, root, elem_type, outputs)


@down(("GlobalLpPool", "LpPool"), 2, "p: from an integer to a float")
def float_p(context: Context) -> None:
    """``LpPool<p=2, kernel_shape=[2]>(x)`` becomes ``LpPool<p=2.0, kernel_shape=[2]>(x)``."""
    context.replace(p=float(context.value("p", 2)))
