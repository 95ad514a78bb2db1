"""Concat: 4 removed the default of its axis.

That 11 allowed a negative axis is in `negative_axis`.
"""

from __future__ import annotations

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.steps.registry import up


@up("Concat", 4, "axis: its default 1 written out")
def concat_axis_written_out(context: Context) -> None:
    """``Concat(x, y)`` becomes ``Concat<axis=1>(x, y)``."""
    if context.attribute("axis") is None:
        context.replace(axis=1)
