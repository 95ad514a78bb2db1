"""RoiAlign: 10 and 16.

It was introduced with 10, below which nothing stands for it; 16 added
`coordinate_transformation_mode`, whose default is not what it did before.
"""

from __future__ import annotations

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.steps.registry import down, up


@up("RoiAlign", 16, "the mapping that was the only one written out")
def output_half_pixel(context: Context) -> None:
    """``RoiAlign(x, rois, batch)`` becomes
    ``RoiAlign<coordinate_transformation_mode="output_half_pixel">(x, rois, batch)``.
    """
    context.replace(coordinate_transformation_mode="output_half_pixel")


@down(
    "RoiAlign",
    16,
    "coordinate_transformation_mode='output_half_pixel' dropped",
    blocks="it is half_pixel",
)
def without_mapping(context: Context) -> None:
    """``RoiAlign<coordinate_transformation_mode="output_half_pixel">(x, rois, batch)`` becomes
    ``RoiAlign(x, rois, batch)``.

    Shifted regions don't stand for half_pixel: without it, those below one pixel are enlarged.
    """
    if context.value("coordinate_transformation_mode", "half_pixel") != "output_half_pixel":
        raise Blocked(
            "before opset 16 its regions are not shifted by half a pixel "
            "(coordinate_transformation_mode half_pixel), and only a Loop over them could do that",
            "choose opset 16 or later, or export it with aligned=False",
        )
    context.replace(drop=("coordinate_transformation_mode",))
