"""Resize as runtimes take it that do not take another form of it."""

from __future__ import annotations

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.steps.registry import instead


@instead("Resize", {"linear, no coordinates"}, "its default mapping of coordinates written out")
def with_coordinates(context: Context) -> None:
    """``Resize<mode="linear">(x, ...)`` from 11 on becomes
    ``Resize<mode="linear", coordinate_transformation_mode="half_pixel">(x, ...)``.
    """
    if context.source_opset >= 11:
        context.replace(coordinate_transformation_mode="half_pixel")
