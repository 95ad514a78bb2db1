"""DFT: 20 made its axis an input, and the default the last one of the signal."""

from __future__ import annotations

from onnxreduce_cli.steps.context import Blocked, Context
from onnxreduce_cli.steps.registry import down, up


@up("DFT", 20, "axis: attribute to input, its default 1 written out")
def axis_to_input(context: Context) -> None:
    """``DFT(x)`` becomes ``DFT(x, "", 1)``."""
    axis = context.scalar(context.value("axis", 1), "axis")
    context.replace(inputs=[context.input(0), context.input(1), axis], drop=("axis",))


@down("DFT", 20, "axis: input to attribute, its default -2 written out", blocks="it is no constant")
def axis_to_attribute(context: Context) -> None:
    """``DFT(x)`` becomes ``DFT<axis=-2>(x)``."""
    axis = -2
    if context.input(2):
        array = context.constant(context.input(2))
        if array is None:
            raise Blocked(
                f"its axis {context.input(2)!r} is only known at run time, and before opset 20 it "
                "is an attribute",
                "make it a constant",
            )
        axis = int(array.reshape(-1)[0])
    context.replace(inputs=[context.input(0), context.input(1)], axis=axis)
