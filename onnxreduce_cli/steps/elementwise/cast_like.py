"""CastLike below opset 15, which introduced it."""

from __future__ import annotations

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.steps.registry import introduced


@introduced(
    "CastLike", 15, "Cast to the dtype of the second input", blocks="that dtype is not known"
)
def cast_like(context: Context) -> None:
    """``CastLike(x, y)`` with y of int64 becomes ``Cast<to=7>(x)``."""
    to = context.need_elem_type(context.input(1), "it says what to cast to")
    if context.elem_type(context.input(0)) == to:
        context.replace("Identity", [context.input(0)], keep=())
    else:
        context.replace("Cast", [context.input(0)], keep=(), to=to)
