"""Upsample: 7, 9 and 10.

7 replaced `height_scale` and `width_scale` by `scales`, 9 made that an input, 10 put Resize in its
place.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.steps.registry import down, impossible, up
from onnxreduce_cli.steps.resampling.resize_axes import known_scales, resize_rank, resized_by_scales
from onnxreduce_cli.steps.resampling.resize_by_gather import by_gather
from onnxreduce_cli.steps.resampling.resize_mapping import ResizeMethod


@up("Upsample", 7, "scales from height_scale and width_scale; mode bilinear called linear")
def scales_for_every_axis(context: Context) -> None:
    """``Upsample<height_scale=2, width_scale=3>`` becomes ``Upsample<scales=[1, 1, 2, 3]>``."""
    scales = (1.0, 1.0, context.value("height_scale"), context.value("width_scale"))
    mode = context.value("mode", "nearest")
    context.replace(keep=(), scales=scales, mode="linear" if mode == "bilinear" else mode)


@down(
    "Upsample",
    7,
    "height_scale and width_scale from scales, mode linear called bilinear; else Gather",
    blocks="integers are interpolated on other axes than height and width of 4-D tensors, or "
    + NO_COUNTING,
)
def scales_for_height_and_width(context: Context) -> None:
    """``Upsample<scales=[1, 1, 2, 3]>`` becomes ``Upsample<height_scale=2, width_scale=3>``.

    Before opset 7 Upsample resizes height and width of 4-D tensors only; others become Gather.
    """
    scales = context.value("scales")
    mode = context.value("mode", "nearest")
    if len(scales) != 4 or scales[0] != 1 or scales[1] != 1:
        _upsample_by_gather(context, scales, "")
        return
    context.replace(
        keep=(),
        height_scale=float(scales[2]),
        width_scale=float(scales[3]),
        mode="bilinear" if mode == "linear" else mode,
    )


def _upsample_by_gather(context: Context, scales: Sequence[float | None], name: str) -> None:
    """Resize by Gather; `name` is the input with the scales, needed where some are None."""
    rank = len(scales)
    method = ResizeMethod(context.value("mode", "nearest"), "asymmetric", "floor")
    by_gather(context, method, resized_by_scales(context, scales, rank), rank, name)


@up("Upsample", 9, "scales: attribute to input")
def scales_to_input(context: Context) -> None:
    """``Upsample<scales=[1, 1, 2, 2]>(x)`` becomes ``Upsample(x, scales)``."""
    scales = context.array(np.array(context.value("scales"), np.float32), "scales")
    context.replace(inputs=[context.input(0), scales], drop=("scales",))


@down(
    "Upsample",
    9,
    "scales: input to attribute; Gather where they are only known at run time",
    blocks="the scales are not known, and integers are interpolated or the rank is not known, or "
    + NO_COUNTING,
)
def scales_to_attribute(context: Context) -> None:
    """``Upsample(x, scales)`` becomes ``Upsample<scales=[1, 1, 2, 2]>(x)``.

    Where the scales are only known at run time, so are the indices of a Gather.
    """
    name = context.input(1)
    scales = context.constant(name)
    if scales is None:
        _upsample_by_gather(context, known_scales(context, name, resize_rank(context, name)), name)
        return
    context.replace(inputs=[context.input(0)], scales=[float(scale) for scale in scales])


@up("Upsample", 10, "Resize in its place")
def upsample_to_resize(context: Context) -> None:
    """``Upsample(x, scales)`` becomes ``Resize(x, scales)``."""
    context.replace("Resize")


impossible(
    "Upsample",
    10,
    "down",
    "Upsample is deprecated from opset 10 on: no valid model from there has one to bring down",
)
