"""RoiAlign: 10 and 16.

It was introduced with 10; 16 added `coordinate_transformation_mode`, whose default is not what it
did before.
"""

from __future__ import annotations

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.refusals import NO_LOOP
from onnxreduce_cli.steps.registry import down, introduced, up
from onnxreduce_cli.steps.resampling.emulated_roi_align import align_by_gather


@up("RoiAlign", 16, "the mapping that was the only one written out")
def output_half_pixel(context: Context) -> None:
    """``RoiAlign(x, rois, batch)`` becomes
    ``RoiAlign<coordinate_transformation_mode="output_half_pixel">(x, rois, batch)``.
    """
    context.replace(coordinate_transformation_mode="output_half_pixel")


@down(
    "RoiAlign",
    16,
    "coordinate_transformation_mode='output_half_pixel' dropped; half_pixel as below 10",
    blocks=f"it is half_pixel, and the input's dtype is not known, or {NO_LOOP}",
)
def without_mapping(context: Context) -> None:
    """``RoiAlign<coordinate_transformation_mode="output_half_pixel">(x, rois, batch)`` becomes
    ``RoiAlign(x, rois, batch)``.

    Shifted regions don't stand for half_pixel: without it, those below one pixel are enlarged.
    """
    if context.value("coordinate_transformation_mode", "half_pixel") != "output_half_pixel":
        align_by_gather(context, half_pixel=True)
        return
    context.replace(drop=("coordinate_transformation_mode",))


@introduced(
    "RoiAlign",
    10,
    "a Loop over the regions: their elements taken by Gather and weighted",
    blocks=f"the input's dtype is not known, or {NO_LOOP}",
)
def alignedalign_by_gather(context: Context) -> None:
    """``RoiAlign(x, rois, batch)`` becomes a ``Loop`` over the regions, each round of which is
    ``ReduceSum(columns * Gather(ReduceSum(rows * Gather(image, y)), x))``, with y and x the rows
    and columns on either side of every sampling point, and rows and columns their weights.

    With ``mode="max"`` it is ReduceMax.
    """
    align_by_gather(context, half_pixel=False)
