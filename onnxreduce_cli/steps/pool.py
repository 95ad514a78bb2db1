"""AveragePool, MaxPool, LpPool and GlobalLpPool: 2, 10, 18 and 22.

- 2 made `p` of LpPool and GlobalLpPool an integer and `kernel_shape` of LpPool required.
- 10 (LpPool: 18) added `ceil_mode` and `dilations`.
- 22 leaves out a window that would start in the padding at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.steps.births import constant
from onnxreduce_cli.steps.casts import cast
from onnxreduce_cli.steps.context import Blocked, Context
from onnxreduce_cli.steps.registry import down, up

_POOLS = ("AveragePool", "LpPool", "MaxPool")


@dataclass(frozen=True)
class Window:
    """How windows are laid out on one axis; `length` is None where it is not known.

    Attributes:
        length: the input's size.
        kernel: the size of the kernel with its dilation.
        stride: from one window to the next.
        begin: padding before the first element.
        end: padding behind the last.
    """

    length: int | None
    kernel: int
    stride: int
    begin: int
    end: int

    def count(self, end: int, *, ceil: bool) -> int:
        """How many windows there are with this padding at the end, the last ones too."""
        assert self.length is not None
        room = self.length + self.begin + end - self.kernel
        return (-(-room // self.stride) if ceil else room // self.stride) + 1

    def starts_inside(self, count: int) -> int:
        """How many of the windows start before the padding at the end."""
        assert self.length is not None
        return min(count, -(-(self.length + self.begin) // self.stride))

    @property
    def never_in_padding(self) -> bool:
        """Whether no window starts in the padding at the end, whatever the length."""
        return self.end + self.stride <= self.kernel


def _windows(context: Context) -> list[Window] | None:
    """The windows on each axis; None where `ceil_mode` says nothing about them."""
    if not context.value("ceil_mode", 0):
        return None
    if context.value("auto_pad", "NOTSET") in ("SAME_UPPER", "SAME_LOWER"):
        return None
    return _layout(context)


def _layout(context: Context) -> list[Window]:
    kernel = context.value("kernel_shape")
    axes = len(kernel)
    valid = context.value("auto_pad", "NOTSET") == "VALID"
    pads = context.value("pads") if not valid else None
    pads = pads or [0] * (2 * axes)
    known = context.type(context.input(0))
    dims = None if known is None or known.dims is None else known.dims[2:]
    lengths = [dim if isinstance(dim, int) else None for dim in dims or [None] * axes]
    strides = context.value("strides") or [1] * axes
    dilations = context.value("dilations") or [1] * axes
    return [
        Window(
            lengths[axis],
            (kernel[axis] - 1) * dilations[axis] + 1,
            strides[axis],
            pads[axis],
            pads[axis + axes],
        )
        for axis in range(axes)
    ]


@up(_POOLS, 22, "unchanged", blocks="a window may start in the padding at the end (ceil_mode=1)")
def no_window_in_padding(context: Context) -> None:
    """A pool stays as it is where no window starts in the padding at the end."""
    for axis, window in enumerate(_windows(context) or []):
        if window.never_in_padding:
            continue
        if window.length is None:
            raise _unknown(axis)
        count = window.count(window.end, ceil=True)
        if window.starts_inside(count) != count:
            raise Blocked(
                f"on spatial axis {axis} it has a window that starts in the padding at the end, "
                "which opset 22 leaves out",
                "set ceil_mode=0, or less padding",
            )


@down(
    _POOLS,
    22,
    "ceil_mode=1 written as padding where a window is left out",
    blocks="it may leave out a window that starts in the padding at the end, of unknown size",
)
def window_left_out(context: Context) -> None:
    """``MaxPool<ceil_mode=1, pads=[0, 1]>(x)`` becomes ``MaxPool<pads=[0, 0]>(x)`` where the last
    window would start in the padding at the end.
    """
    windows = _windows(context)
    for axis, window in enumerate(windows or []):
        if window.never_in_padding:
            continue
        if window.length is None:
            raise _unknown(axis)
        count = window.count(window.end, ceil=True)
        if window.starts_inside(count) != count:
            _written_as_padding(context, windows or [])
            return


def _unknown(axis: int) -> Blocked:
    return Blocked(
        f"the size of spatial axis {axis} is not known, and with it whether a window starts in the "
        "padding at the end, which opset 22 leaves out",
        "state the input's shape in the model's value_info or inputs, or set ceil_mode=0",
    )


def _written_as_padding(
    context: Context, windows: list[Window], *, drop: tuple[str, ...] = ()
) -> None:
    """Replace ``ceil_mode=1`` by the padding that gives as many windows when rounding down."""
    ends = []
    for axis, window in enumerate(windows):
        if window.length is None:
            raise Blocked(
                f"the size of spatial axis {axis} is not known, and with it the padding that "
                "ceil_mode=1 stands for",
                "state the input's shape in the model's value_info or inputs",
            )
        up = window.count(window.end, ceil=True)
        if context.value("auto_pad") == "VALID" and up != window.count(window.end, ceil=False):
            raise Blocked(
                "it has ceil_mode=1 with auto_pad=VALID, of which runtimes and the definition make "
                "different sizes",
                "write pads in place of auto_pad",
            )
        count = window.starts_inside(up)
        end = (count - 1) * window.stride + window.kernel - window.length - window.begin
        end = max(0, end)
        if end >= window.kernel or window.count(end, ceil=False) != count:
            raise Blocked(
                f"no padding on spatial axis {axis} stands for ceil_mode=1",
                "set ceil_mode=0",
            )
        ends.append(end)
    begins = [window.begin for window in windows]
    drop = ("ceil_mode", "auto_pad", *drop)
    more = [max(0, end - window.end) for end, window in zip(ends, windows, strict=True)]
    if not any(more) or not context.value("count_include_pad", 0):
        context.replace(pads=[*begins, *ends], drop=drop)
        return
    # What counts is added as zeros, and what is beyond that does not count.
    counted = [end - beyond for end, beyond in zip(ends, more, strict=True)]
    data = _padded(context, [*begins], counted, 0.0)
    pads = [*[0] * len(begins), *more]
    inputs = [data, *context.node.input[1:]]
    context.replace(inputs=inputs, pads=pads, drop=(*drop, "count_include_pad"))


def _padded(context: Context, begins: list[int], ends: list[int], value: float) -> str:
    """The input with its spatial axes padded."""
    data = context.input(0)
    if not any((*begins, *ends)):
        return data
    pads = [0, 0, *begins, 0, 0, *ends]
    if context.far < 11:
        return context.emit("Pad", [data], "padded", pads=pads, value=value)
    elem_type = context.need_elem_type(data, "it is padded with a number of that dtype")
    filled = constant(context, value, elem_type, "padding")
    return context.emit("Pad", [data, context.array(pads, "pads"), filled], "padded")


def _windows_gathered(context: Context) -> None:
    """Pool windows that stand one behind the other, gathered from a padded input."""
    windows = _layout(context)
    if len(context.node.output) > 1 or context.value("auto_pad", "NOTSET").startswith("SAME"):
        raise Blocked(
            f"its attribute dilations={list(context.value('dilations'))} came with opset "
            f"{context.far + 1}, and it gives indices or has auto_pad",
            "write pads in place of auto_pad, or choose an opset that has it",
        )
    counts, ends = [], []
    for axis, window in enumerate(windows):
        if window.length is None:
            raise Blocked(
                f"its attribute dilations={list(context.value('dilations'))} came with opset "
                f"{context.far + 1}, and the size of spatial axis {axis} is not known",
                "state the input's shape in the model's value_info or inputs",
            )
        count = window.count(window.end, ceil=bool(context.value("ceil_mode", 0)))
        count = window.starts_inside(count)
        end = (count - 1) * window.stride + window.kernel - window.length - window.begin
        counts.append(count)
        ends.append(max(0, end))
    nothing = -np.inf if context.node.op_type == "MaxPool" else 0.0
    data = _padded(context, [window.begin for window in windows], ends, nothing)
    kernel, dilations = context.value("kernel_shape"), context.value("dilations")
    for axis, (window, count) in enumerate(zip(windows, counts, strict=True)):
        starts = window.stride * np.arange(count, dtype=np.int64)[:, None]
        places = starts + dilations[axis] * np.arange(kernel[axis], dtype=np.int64)
        indices = context.array(places.reshape(-1), "windows")
        data = context.emit("Gather", [data, indices], "windows", axis=axis + 2)
    drop = ("auto_pad", "ceil_mode", "dilations", "pads")
    context.replace(inputs=[data], strides=list(kernel), drop=drop)


_ADDED = "it has dilations or ceil_mode=1 with an unknown size, or dilations with indices"


@down(
    ("AveragePool", "MaxPool"),
    10,
    "ceil_mode=1 written as padding, dilated windows gathered",
    blocks=_ADDED,
)
@down("LpPool", 18, "ceil_mode=1 written as padding, dilated windows gathered", blocks=_ADDED)
def without_ceil_mode(context: Context) -> None:
    """``MaxPool<ceil_mode=1, kernel_shape=[2], strides=[2]>(x)``, x of length 5, becomes
    ``MaxPool<pads=[0, 1], kernel_shape=[2], strides=[2]>(x)``.

    ``MaxPool<dilations=[2], kernel_shape=[2]>(x)``, x of length 4, becomes
    ``MaxPool<kernel_shape=[2], strides=[2]>(Gather<axis=2>(x, [0, 2, 1, 3]))``.
    """
    if any(step != 1 for step in context.value("dilations", ())):
        _windows_gathered(context)
        return
    windows = _windows(context)
    if windows is not None and not all(window.stride == 1 for window in windows):
        _written_as_padding(context, windows, drop=("dilations",))
    elif any(context.attribute(name) is not None for name in ("ceil_mode", "dilations")):
        context.replace(drop=("ceil_mode", "dilations"))


@down("MaxPool", 12, "int8 and uint8 computed in float, which holds them exactly")
def small_integers(context: Context) -> None:
    """``MaxPool(x)`` of int8 becomes ``Cast<int8>(MaxPool(Cast<float>(x)))``."""
    narrow = context.elem_type(context.input(0))
    if narrow not in (TensorProto.INT8, TensorProto.UINT8):
        return
    wide = cast(context, context.input(0), TensorProto.FLOAT)
    output, *indices = context.node.output
    pooled = context.fresh("float")
    context.replace(inputs=[wide], outputs=[pooled, *indices])
    cast(context, pooled, narrow, [output])


@up(("GlobalLpPool", "LpPool"), 2, "p: from a float to an integer", blocks="it is not whole")
def whole_p(context: Context) -> None:
    """``LpPool<p=2.0, kernel_shape=[2]>(x)`` becomes ``LpPool<p=2, kernel_shape=[2]>(x)``."""
    p = context.value("p", 2.0)
    if p != int(p):
        raise Blocked(f"its p={p} is not whole, as from opset 2 on it must be", "round it")
    if context.node.op_type == "LpPool" and context.attribute("kernel_shape") is None:
        raise Blocked("it has no kernel_shape, which opset 2 requires", "write kernel_shape out")
    context.replace(p=int(p))


@down(("GlobalLpPool", "LpPool"), 2, "p: from an integer to a float")
def float_p(context: Context) -> None:
    """``LpPool<p=2, kernel_shape=[2]>(x)`` becomes ``LpPool<p=2.0, kernel_shape=[2]>(x)``."""
    context.replace(p=float(context.value("p", 2)))
