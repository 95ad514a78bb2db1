"""QuantizeLinear and DequantizeLinear written as arithmetic, and the parts of it."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast, replace_and_cast_back
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES
from onnxreduce_cli.model.graph.values import iinfo, numpy_dtype
from onnxreduce_cli.steps.quantization.scales import as_float, spread


def quantized_to(context: Context) -> int:
    """Return the dtype that a QuantizeLinear gives."""
    zero = context.input(2)
    if not zero:
        return int(context.value("output_dtype", 0)) or int(TensorProto.UINT8)
    return context.need_elem_type(zero, "it is the dtype to quantize to")


def quantize(context: Context) -> None:
    """``QuantizeLinear(x, scale, zero_point)`` to an integer dtype becomes
    ``Cast(Clip(Add(Round(Div(x, scale)), zero_point)))``, in float until the Cast.

    Only the quotient is rounded to the dtype of the scale, if that has 16 bits.
    """
    op = context.op
    data, scale, zero = (context.input(index) for index in range(3))
    to = quantized_to(context)
    limits = iinfo(numpy_dtype(to))
    divided = op.Div(as_float(context, data), spread(context, scale))
    scale_type = context.need_elem_type(scale, "it is divided in the dtype of the scale")
    if scale_type in HALVES:
        # Rounded to float and then to a half it is rounded as once.
        divided = cast(context, cast(context, divided, scale_type), TensorProto.FLOAT)
    rounded = op.Round(divided)
    if zero:
        rounded = op.Add(rounded, spread(context, zero))
    bounds = [context.scalar(float(limit), "limit") for limit in (limits.min, limits.max)]
    clipped = lowest_for_nan(context, op.Clip(rounded, *bounds), bounds[0])
    context.replace("Cast", [clipped], keep=(), to=to)


def lowest_for_nan(context: Context, clipped: str, lowest: str) -> Value:
    """Return the clipped numbers, and the lowest for NaN, in their dtype and shape.

    `lowest` is a scalar of that dtype. Kernels give it for NaN; what a Cast to an integer makes of
    NaN is left open.
    """
    op = context.op
    above = op.Greater(clipped, lowest)
    return op.Where(above, clipped, lowest)


def dequantize(context: Context, numbers: str) -> None:
    """Replace the node by ``Cast(Mul(Sub(numbers, zero_point), scale))``, `numbers` being in float.

    The Cast is to the dtype of the result, and left out where that is float.
    """
    scale, zero = context.input(1), context.input(2)
    scale_type = context.need_elem_type(scale, "it is the dtype of the result")
    if zero:
        numbers = context.op.Sub(numbers, spread(context, zero))
    to = int(context.value("output_dtype", 0)) or scale_type
    replace_and_cast_back(
        context, "Mul", [numbers, spread(context, scale)], to, int(TensorProto.FLOAT)
    )


def less_zero_point(context: Context, name: str, zero_point: str) -> Value:
    """Return a quantized tensor less its zero point, which broadcasts to it, in int32.

    It represents every difference of two 8-bit numbers. An empty `zero_point` stands for 0.
    """
    wide = cast(context, name, TensorProto.INT32)
    if not zero_point:
        return wide
    return context.op.Sub(wide, cast(context, zero_point, TensorProto.INT32))
