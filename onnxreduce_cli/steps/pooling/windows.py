"""Windows of pools: where they lie along each axis, written out as places of elements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Array, Context
from onnxreduce_cli.emit.numbers import (
    MOST_WRITTEN,
    Number,
    arange,
    as_name,
    at_least_zero,
    constant,
    minus,
    plus,
    quotient,
    reduced,
    size_of,
    times,
    unsqueezed,
)
from onnxreduce_cli.model.values import numpy_dtype

_SAME = ("SAME_UPPER", "SAME_LOWER")


@dataclass(frozen=True)
class Window:
    """How a pool's attributes lay out windows along one axis.

    Attributes:
        length: the input's size; None where it is not known.
        kernel: how many elements there are in a window.
        dilation: from one of them to the next.
        stride: from one window to the next.
        begin: padding before the first element.
        end: padding behind the last.
    """

    length: int | None
    kernel: int
    dilation: int
    stride: int
    begin: int
    end: int

    @property
    def reach(self) -> int:
        """From a window's first element to behind its last."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def never_in_padding(self) -> bool:
        """Whether with ceil_mode=1 no window starts in the padding at the end, however long."""
        return self.end + self.stride <= self.reach

    @property
    def one_in_padding(self) -> bool:
        """Whether with ceil_mode=1 a window is known to start in the padding at the end."""
        if self.length is None or self.never_in_padding:
            return False
        room = self.length + self.begin + self.end - self.reach
        last = -(-room // self.stride) * self.stride
        return last >= self.length + self.begin

    @property
    def end_of_ceil(self) -> int:
        """The padding at the end that gives, rounding down, the windows of ceil_mode=1.

        One stride less 1 rounds up; ``reach - 1`` is what a window takes that starts at the last
        element, and none that starts behind it.
        """
        most = min(self.end + self.stride, self.reach) - 1
        if self.length is None:
            return most
        last = (self.length + self.begin + most - self.reach) // self.stride * self.stride
        return max(0, last + self.reach - self.length - self.begin)


def layout(context: Context) -> list[Window]:
    """The windows along each spatial axis; with auto_pad=SAME_* as if there were no padding."""
    kernel = context.value("kernel_shape")
    axes = len(kernel)
    explicit = context.value("auto_pad", "NOTSET") == "NOTSET"
    pads = (context.value("pads") if explicit else None) or [0] * (2 * axes)
    known = context.type(context.input(0))
    dims = None if known is None or known.dims is None else known.dims[2:]
    lengths = [dim if isinstance(dim, int) else None for dim in dims or [None] * axes]
    strides = context.value("strides") or [1] * axes
    dilations = context.value("dilations") or [1] * axes
    ends = pads[axes:]
    return [
        Window(*one)
        for one in zip(lengths, kernel, dilations, strides, pads[:axes], ends, strict=True)
    ]


@dataclass(frozen=True)
class Axis:
    """The windows along an axis of a value whose size may only be known at run time.

    Attributes:
        window: the attributes.
        size: the size of the value.
        begin: padding before the first element.
        stated: padding behind the last, as the node states it.
        end: as far as the windows reach.
        count: how many windows there are.
    """

    window: Window
    size: Number
    begin: Number
    stated: Number
    end: Number
    count: Number


def axes(context: Context) -> list[Axis]:
    """The windows along each spatial axis."""
    auto_pad, ceil_mode = context.value("auto_pad", "NOTSET"), context.value("ceil_mode", 0)
    found = []
    for at, window in enumerate(layout(context), 2):
        size = size_of(context, context.input(0), at)
        begin: Number = window.begin
        stated: Number = window.end
        end: Number = window.end_of_ceil if ceil_mode else window.end
        if auto_pad in _SAME:
            begin, end = _same(context, window, size, auto_pad)
            stated = end
        room = plus(context, plus(context, size, begin), end)
        steps = quotient(context, minus(context, room, window.reach), window.stride)
        count = plus(context, steps, 1)
        if isinstance(size, int) and isinstance(begin, int) and isinstance(steps, int):
            # What no window reaches need not be there.
            end = max(0, steps * window.stride + window.reach - size - begin)
        found.append(Axis(window, size, begin, stated, end, count))
    return found


def _same(context: Context, window: Window, size: Number, auto_pad: str) -> tuple[Number, Number]:
    """The padding that gives a window for each stride begun."""
    stride = window.stride
    count = quotient(context, plus(context, size, stride - 1), stride)
    needed = plus(context, times(context, minus(context, count, 1), stride), window.reach)
    total = at_least_zero(context, minus(context, needed, size))
    less = quotient(context, total, 2)
    more = minus(context, total, less)
    return (less, more) if auto_pad == "SAME_UPPER" else (more, less)


def padded(
    context: Context, data: str, begins: list[Number], ends: list[Number], value: float
) -> str:
    """The data with a number around its spatial dimensions; as it is where there is nothing."""
    op = context.op
    sides: list[Number] = [0, 0, *begins, 0, 0, *ends]
    known = [side for side in sides if isinstance(side, int)]
    if len(known) == len(sides) and not any(known):
        return data
    if len(known) == len(sides) and context.op.opset < 11:
        return op.Pad(data, pads=known, value=value)
    elem_type = context.need_elem_type(data, "it is padded with a number of that dtype")
    filled = constant(context, value, elem_type, "padding")
    if len(known) == len(sides):
        pads = context.array(known, "pads")
    else:
        pads = op.Concat(*[as_name(context, side) for side in sides], axis=0)
    return op.Pad(data, pads, filled)


#: Numbers that are known at conversion, or the name of an int64 tensor.
Places = Array | str


def places(context: Context, axis: Axis) -> Places:
    """Where the elements of each window are in the padded value: [count, kernel]."""
    op = context.op
    window = axis.window
    within = window.dilation * np.arange(window.kernel, dtype=np.int64)
    if isinstance(axis.count, int) and axis.count * window.kernel <= MOST_WRITTEN:
        return window.stride * np.arange(axis.count, dtype=np.int64)[:, None] + within
    starts = arange(context, axis.count)
    if window.stride != 1:
        starts = op.Mul(starts, context.array([window.stride], "stride"))
    column = unsqueezed(context, starts, [1])
    return op.Add(column, context.array(within, "within"))


def written(context: Context, numbers: Places) -> str:
    """Places as a value."""
    return numbers if isinstance(numbers, str) else context.array(numbers, "places")


def gathered(context: Context, found: list[Axis], nothing: float) -> str:
    """The input with the windows along each axis one behind the other.

    Args:
        context: the pool.
        found: its axes.
        nothing: what stands in the padding.
    """
    op = context.op
    begins, ends = [axis.begin for axis in found], [axis.end for axis in found]
    data = padded(context, context.input(0), begins, ends, nothing)
    for at, axis in enumerate(found, 2):
        where = places(context, axis)
        if isinstance(where, str):
            flat = op.Reshape(where, context.array([-1], "flat"))
        else:
            flat = context.array(where.reshape(-1), "windows")
        data = op.Gather(data, flat, axis=at)
    return data


def share(context: Context, found: list[Axis], elem_type: int, *, pads_count: bool) -> str:
    """How many elements windows have for each that counts, to multiply means by; empty for 1.

    Args:
        context: the pool.
        found: its axes.
        elem_type: the dtype to have them in.
        pads_count: whether the padding that the node states counts.
    """
    known = np.ones((), np.float64)
    computed = []
    for at, axis in enumerate(found):
        if _within(axis, pads_count):
            continue
        factor, more = _share(context, axis, pads_count), len(found) - 1 - at
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


def _within(axis: Axis, pads_count: bool) -> bool:
    """Whether all elements of all windows count."""
    if not pads_count:
        return axis.begin == 0 and axis.end == 0
    if isinstance(axis.end, int) and isinstance(axis.stated, int):
        return axis.end <= axis.stated
    return axis.end == axis.stated


def _share(context: Context, axis: Axis, pads_count: bool) -> Places:
    """The kernel's size by how many elements of each window count."""
    op = context.op
    kernel, where = axis.window.kernel, places(context, axis)
    first: Number = 0 if pads_count else axis.begin
    behind = plus(context, axis.begin, axis.size)
    if pads_count:
        behind = plus(context, behind, axis.stated)
    if not isinstance(where, str) and isinstance(first, int) and isinstance(behind, int):
        with np.errstate(divide="ignore"):
            counts: Array = ((where >= first) & (where < behind)).sum(axis=1)
            factors: Array = kernel / counts
        return factors
    where = written(context, where)
    is_before = op.Less(where, as_name(context, first))
    is_inside = op.Less(where, as_name(context, behind))
    ahead, inside = (cast(context, name, TensorProto.FLOAT) for name in (is_before, is_inside))
    counted = op.Sub(inside, ahead)
    total = reduced(context, "ReduceSum", counted, [1], keep=False)
    return op.Div(context.scalar(float(kernel), "kernel"), total)
