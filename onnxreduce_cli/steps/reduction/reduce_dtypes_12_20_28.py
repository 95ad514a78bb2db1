"""Reduce* 12 to 11, 20 to 19 and 27 to 28: the dtypes.

- 12 added int8 and uint8 to ReduceMax and ReduceMin, 20 bool. 13 added bfloat16 to all; dtypes that
  need no step are in the audit.
- 28 removed the integers from ReduceLogSum and ReduceLogSumExp.
"""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast, computed_in
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import INTEGERS
from onnxreduce_cli.steps.registry import down, up

_MAX_MIN = ("ReduceMax", "ReduceMin")

#: The lowest and highest number of each dtype that 12 added.
_BOUNDS: dict[int, tuple[float, float]] = {
    TensorProto.INT8: (-128.0, 127.0),
    TensorProto.UINT8: (0.0, 255.0),
}


@down(_MAX_MIN, 12, "int8 and uint8 computed in float, which holds them exactly")
def reduce_small_integers(context: Context) -> None:
    """``ReduceMax(x)`` of int8 becomes ``Cast<int8>(Clip(ReduceMax(Cast<float>(x))))``.

    The Clip is there for the empty set: its maximum is -inf in float, the lowest value in int8.
    """
    data = context.input(0)
    elem_type = data.elem_type
    if elem_type is None or elem_type not in _BOUNDS:
        return
    low, high = _BOUNDS[elem_type]
    output = context.node.output[0]
    wide = cast(context, data, TensorProto.FLOAT)
    reduced = context.replace(inputs=[wide], outputs=[context.fresh("float")]).output[0]
    if _may_be_empty(data):
        reduced = context.op.Clip(reduced, context.scalar(low, "low"), context.scalar(high, "high"))
    cast(context, reduced, elem_type, [output])


def _may_be_empty(data: Value) -> bool:
    """Return whether a dimension may be zero, as far as is known."""
    dims = data.dims
    return dims is None or not all(isinstance(dim, int) and dim > 0 for dim in dims)


@down(_MAX_MIN, 20, "bool computed in uint8")
def reduce_booleans(context: Context) -> None:
    """``ReduceMax(x)`` of bool becomes ``Cast<bool>(ReduceMax(Cast<uint8>(x)))``."""
    if context.input(0).elem_type == TensorProto.BOOL:
        computed_in(context, TensorProto.UINT8)


@up(
    ("ReduceLogSum", "ReduceLogSumExp"),
    28,
    "integers computed in double, which the newer version takes",
)
def integer_logarithms(context: Context) -> None:
    """``ReduceLogSum(x)`` of int32 becomes ``Cast<int32>(ReduceLogSum(Cast<double>(x)))``."""
    if context.input(0).elem_type in INTEGERS:
        computed_in(context, TensorProto.DOUBLE)
