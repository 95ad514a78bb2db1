"""Quantization and products of quantized tensors below opset 10, in wider dtypes.

Zero points are subtracted in int32, which holds every difference of two 8-bit numbers.
"""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.steps.births import born, constant, unsqueezed
from onnxreduce_cli.steps.casts import cast
from onnxreduce_cli.steps.context import Context


def centred(context: Context, name: str, zero_point: str, axes: list[int] | None = None) -> str:
    """A quantized tensor less its zero point, in int32."""
    wide = cast(context, name, TensorProto.INT32)
    if not zero_point:
        return wide
    offset = unsqueezed(context, cast(context, zero_point, TensorProto.INT32), axes or [])
    return context.emit("Sub", [wide, offset], "centred")


@born(
    "MatMulInteger",
    10,
    "MatMul in int32, below opset 9 in double",
    blocks="the rank of a zero point is not known",
)
def mat_mul_integer(context: Context) -> None:
    """``MatMulInteger(a, b, a_zero, b_zero)`` becomes
    ``MatMul(Cast<int32>(a) - Cast<int32>(a_zero), Cast<int32>(b) - Cast<int32>(b_zero))``.

    Below opset 9 MatMul takes floats only; a double holds every sum that an int32 does.
    """
    first_zero = context.input(2)
    per_row = first_zero and context.need_rank(first_zero, "one per row is a column")
    # One zero point for each row stands in a column; one for each column is in line already.
    first = centred(context, context.input(0), first_zero, [1] if per_row == 1 else None)
    second = centred(context, context.input(1), context.input(3))
    if context.target >= 9:
        context.replace("MatMul", [first, second], keep=())
        return
    factors = [cast(context, name, TensorProto.DOUBLE) for name in (first, second)]
    product = context.emit("MatMul", factors, "product")
    context.replace("Cast", [product], keep=(), to=int(TensorProto.INT32))


@born("DequantizeLinear", 10, "(x - zero point) * scale")
def dequantize_linear(context: Context) -> None:
    """``DequantizeLinear(x, scale, zero)`` becomes
    ``Mul(Cast<float>(Cast<int32>(x) - Cast<int32>(zero)), scale)``.
    """
    data = context.input(0)
    if context.elem_type(data) == TensorProto.INT32:
        apart = data  # It has no zero point.
    else:
        apart = centred(context, data, context.input(2))
    numbers = cast(context, apart, TensorProto.FLOAT)
    context.replace("Mul", [numbers, context.input(1)], keep=())


def lowest_for_nan(context: Context, clipped: str, lowest: str) -> str:
    """The clipped value, and the lowest one for NaN: so kernels have it, and a Cast is free to."""
    above = context.emit("Greater", [clipped, lowest], "is_above")
    return context.emit("Where", [above, clipped, lowest], "without_nan")


@born("QuantizeLinear", 10, "Round, Add, Clip and Cast")
def quantize_linear(context: Context) -> None:
    """``QuantizeLinear(x, scale, zero)`` becomes
    ``Cast<uint8>(Clip(Round(x / scale) + Cast<float>(zero), 0, 255))``.
    """
    context.far = 12  # Round came with 11, and limits of Clip that are inputs.
    data, zero_point = context.input(0), context.input(2)
    to: int = TensorProto.UINT8
    if zero_point:
        to = context.need_elem_type(zero_point, "it is the dtype of the result")
    if context.elem_type(data) == TensorProto.INT32:
        data = cast(context, data, TensorProto.FLOAT)
    scaled = context.emit("Div", [data, context.input(1)], "scaled")
    rounded = context.emit("Round", [scaled], "rounded")
    if zero_point:
        offset = cast(context, zero_point, TensorProto.FLOAT)
        rounded = context.emit("Add", [rounded, offset], "shifted")
    lowest, highest = (-128, 127) if to == TensorProto.INT8 else (0, 255)
    limits = [
        constant(context, value, TensorProto.FLOAT, hint)
        for value, hint in ((lowest, "lowest"), (highest, "highest"))
    ]
    clipped = lowest_for_nan(
        context, context.emit("Clip", [rounded, *limits], "clipped"), limits[0]
    )
    context.replace("Cast", [clipped], keep=(), to=to)
