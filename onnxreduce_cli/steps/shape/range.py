"""Range: 27 brought half types, and stash_type that says in which type it counts."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.casts import HALVES, cast
from onnxreduce_cli.emit.context import Blocked, Context
from onnxreduce_cli.model.values import dtype_name
from onnxreduce_cli.steps.registry import down


@down(
    "Range",
    27,
    "half types computed in float or double, as stash_type says",
    blocks="stash_type is neither for them, for which nothing says how to count",
)
def range_in_float(context: Context) -> None:
    """``Range(a, b, c)`` of float16 becomes ``Cast<float16>(Range(Cast<float>(a), ...))``."""
    stash = context.value("stash_type", TensorProto.FLOAT)
    given = context.need_elem_type(context.input(0), "half types came with opset 27")
    drop = ("stash_type",)
    if given not in HALVES:
        if context.attribute("stash_type") is not None:
            context.replace(drop=drop)
        return
    if stash not in (TensorProto.FLOAT, TensorProto.DOUBLE):
        raise Blocked(
            f"its stash_type is {dtype_name(stash)}, and nothing says how to count in that: the "
            "operator's function body knows float and double",
            "use one of these",
        )
    inputs = [cast(context, name, stash) for name in context.node.input]
    outputs = [context.fresh(dtype_name(stash))]
    wide = context.replace(inputs=inputs, outputs=outputs, drop=drop).output[0]
    cast(context, wide, given, [context.node.output[0]])
