"""ConvTranspose: 11 put the odd element of computed padding on the other side."""

from __future__ import annotations

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.steps.registry import down, up

_WARNS = "unchanged, with a remark where padding that is worked out may be odd"


@up("ConvTranspose", 11, _WARNS)
@down("ConvTranspose", 11, _WARNS)
def odd_padding(context: Context) -> None:
    """A ConvTranspose stays as it is.

    The equations of the two versions put the odd element of padding that follows from
    `output_shape` or SAME_* on opposite sides, the older one against its own description of
    `auto_pad`. Runtimes read both as the newer is written.
    """
    same = context.value("auto_pad", "NOTSET") in ("SAME_UPPER", "SAME_LOWER")
    if (context.attribute("output_shape") is not None or same) and not _is_even(context):
        context.warn(
            "its padding follows from output_shape or auto_pad and may be odd; the equations "
            "before and from opset 11 on put the odd element on opposite sides, runtimes do not"
        )


def _is_even(context: Context) -> bool:
    """Return whether the padding on every axis is known to be even, the same on both sides."""
    data, weights = context.type(context.input(0)), context.type(context.input(1))
    if data is None or weights is None or data.dims is None or weights.dims is None:
        return False
    lengths, axes = data.dims[2:], len(data.dims) - 2
    kernel = context.value("kernel_shape") or weights.dims[2:]
    strides = context.value("strides") or [1] * axes
    dilations = context.value("dilations") or [1] * axes
    extra = context.value("output_padding") or [0] * axes
    resized = (context.value("output_shape") or [None] * axes)[-axes:]
    for axis, length in enumerate(lengths):
        width = kernel[axis]
        if not isinstance(length, int) or not isinstance(width, int):
            return False
        size = length * strides[axis] if resized[axis] is None else resized[axis]
        covered = (width - 1) * dilations[axis] + 1
        if (strides[axis] * (length - 1) + extra[axis] + covered - size) % 2:
            return False
    return True
