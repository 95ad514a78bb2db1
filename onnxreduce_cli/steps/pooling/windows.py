"""Windows of pools: their layout along each axis, and the indices of their elements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onnxreduce_cli.emit.axes import unsqueezed
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import Array
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT, Number, as_name, at_least_zero
from onnxreduce_cli.emit.refusals import need_few
from onnxreduce_cli.emit.sizes import arange, size_of

_SAME = ("SAME_UPPER", "SAME_LOWER")


@dataclass(frozen=True, slots=True)
class Window:
    """The layout of windows along one axis, as a pool's attributes state it.

    Attributes:
        length: the input's size; None where it is not known.
        kernel: the number of elements in a window.
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
        """Return the number of elements that a window spans, with those left out by dilation."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def never_in_padding(self) -> bool:
        """Return whether, with ceil_mode=1, no window starts in the end padding at any length."""
        return self.end + self.stride <= self.reach

    @property
    def one_in_padding(self) -> bool:
        """Return whether, with ceil_mode=1, a window is known to start in the end padding."""
        if self.length is None or self.never_in_padding:
            return False
        room = self.length + self.begin + self.end - self.reach
        last = -(-room // self.stride) * self.stride
        return last >= self.length + self.begin

    @property
    def end_of_ceil(self) -> int:
        """Return the end padding that gives, rounding down, the windows of ceil_mode=1.

        One stride less 1 rounds up; ``reach - 1`` is what a window takes that starts at the last
        element, and none that starts behind it.
        """
        most = min(self.end + self.stride, self.reach) - 1
        if self.length is None:
            return most
        last = (self.length + self.begin + most - self.reach) // self.stride * self.stride
        return max(0, last + self.reach - self.length - self.begin)


def window_layout(context: Context) -> list[Window]:
    """Return the windows along each spatial axis; auto_pad=SAME_* counts as no padding."""
    kernel = context.value("kernel_shape")
    windowed_axes = len(kernel)
    explicit = context.value("auto_pad", "NOTSET") == "NOTSET"
    pads = (context.value("pads") if explicit else None) or [0] * (2 * windowed_axes)
    known = context.type(context.input(0))
    dims = None if known is None or known.dims is None else known.dims[2:]
    lengths = [dim if isinstance(dim, int) else None for dim in dims or [None] * windowed_axes]
    strides = context.value("strides") or [1] * windowed_axes
    dilations = context.value("dilations") or [1] * windowed_axes
    ends = pads[windowed_axes:]
    return [
        Window(*one)
        for one in zip(lengths, kernel, dilations, strides, pads[:windowed_axes], ends, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class WindowedAxis:
    """The windows along an axis of a value whose size may only be known at run time.

    Attributes:
        window: the attributes.
        size: the size of the value.
        begin: padding before the first element.
        stated: padding behind the last, as the node states it.
        end: padding behind the last, as far as windows reach into it.
        count: the number of windows.
    """

    window: Window
    size: Number
    begin: Number
    stated: Number
    end: Number
    count: Number


def windowed_axes(context: Context) -> list[WindowedAxis]:
    """Return the windows along each spatial axis, with the sizes and padding they have."""
    auto_pad, ceil_mode = context.value("auto_pad", "NOTSET"), context.value("ceil_mode", 0)
    result = []
    for at, window in enumerate(window_layout(context), 2):
        size = size_of(context, context.input(0), at)
        begin: Number = window.begin
        stated: Number = window.end
        end: Number = window.end_of_ceil if ceil_mode else window.end
        if auto_pad in _SAME:
            begin, end = _same_padding(context, window, size, auto_pad)
            stated = end
        room = size + begin + end
        # Div cuts towards 0: there may be no window, and never fewer than none.
        count = (room - window.reach + window.stride) // window.stride
        if isinstance(size, int) and isinstance(begin, int) and isinstance(count, int):
            # What no window reaches need not be there.
            end = max(0, (count - 1) * window.stride + window.reach - size - begin)
        result.append(WindowedAxis(window, size, begin, stated, end, count))
    return result


def _same_padding(
    context: Context, window: Window, size: Number, auto_pad: str
) -> tuple[Number, Number]:
    """Return the padding at both ends that gives ``ceil(size / stride)`` windows."""
    stride = window.stride
    count = (size + (stride - 1)) // stride
    needed = (count - 1) * stride + window.reach
    total = at_least_zero(context, needed - size)
    less = total // 2
    more = total - less
    return (less, more) if auto_pad == "SAME_UPPER" else (more, less)


def pad_spatial_axes(
    context: Context, data: str, begins: list[Number], ends: list[Number], value: float
) -> str:
    """Return the data padded with `value` on its spatial axes, or itself if all padding is 0.

    Its dtype stays; there is a number in `begins` and `ends` for each spatial axis, the third on.
    """
    op = context.op
    sides: list[Number] = [0, 0, *begins, 0, 0, *ends]
    known = [side for side in sides if isinstance(side, int)]
    if len(known) == len(sides) and not any(known):
        return data
    if len(known) == len(sides) and context.op.opset < 11:
        return op.Pad(data, pads=known, value=value)
    elem_type = context.need_elem_type(data, "it is padded with a number of that dtype")
    filled = context.scalar(value, "padding", elem_type)
    if len(known) == len(sides):
        pads = context.array(known, "pads")
    else:
        pads = op.Concat(*[as_name(context, side) for side in sides], axis=0)
    return op.Pad(data, pads, filled)


#: An int64 array that is known at conversion, or the name of an int64 tensor.
Indices = Array | str


def window_indices(context: Context, axis: WindowedAxis) -> Indices:
    """Return the indices in the padded value of each window's elements: int64, [count, kernel]."""
    op = context.op
    window = axis.window
    need_few(window.kernel, "its windows have", "choose a smaller kernel_shape")
    within = window.dilation * np.arange(window.kernel, dtype=np.int64)
    if isinstance(axis.count, int) and axis.count * window.kernel <= LARGEST_CONSTANT:
        return window.stride * np.arange(axis.count, dtype=np.int64)[:, None] + within
    starts = arange(context, axis.count)
    if window.stride != 1:
        starts = op.Mul(starts, context.array([window.stride], "stride"))
    column = unsqueezed(context, starts, [1])
    return op.Add(column, context.array(within, "within"))


def indices_value(context: Context, numbers: Indices) -> str:
    """Return indices as a value, an int64 tensor of the same shape."""
    return numbers if isinstance(numbers, str) else context.array(numbers, "indices")
