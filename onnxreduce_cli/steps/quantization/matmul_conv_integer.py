"""Quantization and products of quantized tensors below opset 10, in wider dtypes.

Zero points are subtracted in int32, which holds every difference of two 8-bit numbers.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, numpy_helper

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import constant, dims_of, unsqueezed
from onnxreduce_cli.steps.registry import introduced


def centred(context: Context, name: str, zero_point: str) -> Value:
    """A quantized tensor less its zero point, which broadcasts to it, in int32."""
    wide = cast(context, name, TensorProto.INT32)
    if not zero_point:
        return wide
    return context.op.Sub(wide, cast(context, zero_point, TensorProto.INT32))


@introduced("MatMulInteger", 10, "MatMul in int32, below opset 9 in double")
def mat_mul_integer(context: Context) -> None:
    """``MatMulInteger(a, b, a_zero, b_zero)`` becomes
    ``MatMul(Cast<int32>(a) - Cast<int32>(a_zero), Cast<int32>(b) - Cast<int32>(b_zero))``.

    Below opset 9 MatMul takes floats only; a double holds every sum that an int32 does.
    """
    op = context.op
    data, first_zero = context.input(0), context.input(2)
    first = centred(context, data, first_zero and for_rows(context, first_zero, data))
    if first_zero and context.rank(data) is None:
        first = op.Reshape(first, op.Shape(data))
    # One zero point for each column is in line already.
    second = centred(context, context.input(1), context.input(3))
    if context.target_opset >= 9:
        context.replace("MatMul", [first, second], keep=())
        return
    factors = [cast(context, name, TensorProto.DOUBLE) for name in (first, second)]
    product = op.MatMul(*factors)
    context.replace("Cast", [product], keep=(), to=int(TensorProto.INT32))


def for_rows(context: Context, name: str, data: str) -> str:
    """A number for each row of a matrix as a column; one for all, or of more dimensions, as it is.

    Where that is not known a dimension of 1 is added when there is one, and none otherwise.
    """
    op = context.op
    rank = context.rank(name)
    if rank == 1 and context.rank(data) != 1 and dims_of(context, name) != (1,):
        return unsqueezed(context, name, [1])
    if rank is not None or context.rank(data) == 1:
        return name
    dims = op.Shape(name)
    size_one = numpy_helper.from_array(np.ones(1, np.int64))
    is_one = op.Equal(op.Shape(dims), context.array([1], "one"))
    more = op.ConstantOfShape(cast(context, is_one, TensorProto.INT64), value=size_one)
    shape = op.Concat(dims, more, axis=0)
    return op.Reshape(name, shape)


@introduced("DequantizeLinear", 10, "(x - zero point) * scale")
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


def lowest_for_nan(context: Context, clipped: str, lowest: str) -> Value:
    """The clipped value, and the lowest one for NaN: so kernels have it, and a Cast is free to."""
    op = context.op
    above = op.Greater(clipped, lowest)
    return op.Where(above, clipped, lowest)


@introduced("QuantizeLinear", 10, "Round, Add, Clip and Cast")
def quantize_linear(context: Context) -> None:
    """``QuantizeLinear(x, scale, zero)`` becomes
    ``Cast<uint8>(Clip(Round(x / scale) + Cast<float>(zero), 0, 255))``.
    """
    context = context.at(12)  # Round came with 11, and limits of Clip that are inputs.
    op = context.op
    data, zero_point = context.input(0), context.input(2)
    to: int = TensorProto.UINT8
    if zero_point:
        to = context.need_elem_type(zero_point, "it is the dtype of the result")
    if context.elem_type(data) == TensorProto.INT32:
        data = cast(context, data, TensorProto.FLOAT)
    scaled = op.Div(data, context.input(1))
    rounded = op.Round(scaled)
    if zero_point:
        offset = cast(context, zero_point, TensorProto.FLOAT)
        rounded = op.Add(rounded, offset)
    lowest, highest = (-128, 127) if to == TensorProto.INT8 else (0, 255)
    limits = [
        constant(context, value, TensorProto.FLOAT, hint)
        for value, hint in ((lowest, "lowest"), (highest, "highest"))
    ]
    clipped = lowest_for_nan(context, op.Clip(rounded, *limits), limits[0])
    context.replace("Cast", [clipped], keep=(), to=to)
