"""Windows of pools: where they lie along each axis, and which elements each holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onnxreduce_cli.emit.axes import unsqueezed
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import Array
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT, Number, as_name, at_least_zero
from onnxreduce_cli.emit.sizes import arange, size_of

_SAME = ("SAME_UPPER", "SAME_LOWER")


@dataclass(frozen=True)
class Window:
    """How a pool's attributes lay out windows along one axis.

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
        room = size + begin + end
        steps = (room - window.reach) // window.stride
        count = steps + 1
        if isinstance(size, int) and isinstance(begin, int) and isinstance(steps, int):
            # What no window reaches need not be there.
            end = max(0, steps * window.stride + window.reach - size - begin)
        found.append(Axis(window, size, begin, stated, end, count))
    return found


def _same(context: Context, window: Window, size: Number, auto_pad: str) -> tuple[Number, Number]:
    """The padding that gives a window for each stride begun."""
    stride = window.stride
    count = (size + (stride - 1)) // stride
    needed = (count - 1) * stride + window.reach
    total = at_least_zero(context, needed - size)
    less = total // 2
    more = total - less
    return (less, more) if auto_pad == "SAME_UPPER" else (more, less)


def padded(
    context: Context, data: str, begins: list[Number], ends: list[Number], value: float
) -> str:
    """The data with a number around its spatial dimensions, or the data where no side has any."""
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


#: Numbers that are known at conversion, or the name of an int64 tensor.
Places = Array | str


def places(context: Context, axis: Axis) -> Places:
    """The indices in the padded value of the elements of each window: int64, [count, kernel]."""
    op = context.op
    window = axis.window
    within = window.dilation * np.arange(window.kernel, dtype=np.int64)
    if isinstance(axis.count, int) and axis.count * window.kernel <= LARGEST_CONSTANT:
        return window.stride * np.arange(axis.count, dtype=np.int64)[:, None] + within
    starts = arange(context, axis.count)
    if window.stride != 1:
        starts = op.Mul(starts, context.array([window.stride], "stride"))
    column = unsqueezed(context, starts, [1])
    return op.Add(column, context.array(within, "within"))


def written(context: Context, numbers: Places) -> str:
    """Places as a value, an int64 tensor."""
    return numbers if isinstance(numbers, str) else context.array(numbers, "places")


def as_shape(context: Context, dims: list[Number]) -> Value:
    """A shape of numbers, an int64 list."""
    known = [dim for dim in dims if isinstance(dim, int)]
    if len(known) == len(dims):
        return context.array(known, "shape")
    return context.op.Concat(*[as_name(context, dim) for dim in dims], axis=0)
