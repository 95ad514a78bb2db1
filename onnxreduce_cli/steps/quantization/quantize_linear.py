"""QuantizeLinear: 10, 13, 19, 21 and 23.

- 13 allowed a scale and a zero point for each index along `axis`.
- 19 gave data and scale one type; halves and float8 came with it, and `saturate`.
- 21 added 16-bit and 4-bit integers, `block_size` and `output_dtype`.
- 23 took the types of data and scale apart, and added `precision` and float4.
"""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto, numpy_helper

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES, INTEGERS
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT
from onnxreduce_cli.emit.sizes import dims_of, static_dims
from onnxreduce_cli.model.graph.values import dtype_name, numpy_dtype
from onnxreduce_cli.steps.quantization.arithmetic import lowest_for_nan, quantize, quantized_to
from onnxreduce_cli.steps.quantization.scales import (
    for_each_element,
    granularity,
    with_scalar_scale,
)
from onnxreduce_cli.steps.registry import down, introduced, up

_16_BITS = frozenset({TensorProto.INT16, TensorProto.UINT16})


@down(
    "QuantizeLinear",
    23,
    "data and scale cast to the dtype that it divides in",
    blocks="that dtype is neither float nor a half",
)
def divide_in_one_dtype(context: Context) -> None:
    """``QuantizeLinear(x, scale)``, x of float16 and scale of float, becomes
    ``QuantizeLinear(Cast<float>(x), scale)``.
    """
    inputs = list(context.node.input)
    elem_types = [
        context.need_elem_type(name, "data and scale must have one") for name in inputs[:2]
    ]
    working = context.value("precision", 0) or elem_types[1]
    if working not in (TensorProto.FLOAT, *HALVES) and elem_types != [working] * 2:
        raise Blocked(
            f"it divides {dtype_name(elem_types[0])} by {dtype_name(elem_types[1])} in "
            f"{dtype_name(working)}, which the definition before opset 23 cannot say",
            "cast its scale to float",
        )
    for index, elem_type in enumerate(elem_types):
        if elem_type != working:
            inputs[index] = cast(context, inputs[index], working)
    if inputs != list(context.node.input) or context.attribute("precision") is not None:
        context.replace(inputs=inputs, drop=("precision",))


@down(
    "QuantizeLinear",
    21,
    "output_dtype: a zero point of that dtype; block_size=0 dropped; scales for blocks and 16-bit "
    "integers written as arithmetic",
    blocks="it gives 4 bits, and not only to a DequantizeLinear",
)
def quantize_blocks(context: Context) -> None:
    """``QuantizeLinear<axis=1, block_size=2>(x, scales)`` becomes
    ``Cast<uint8>(Clip(Round(Div(x, Gather<axis=1>(scales, [0, 0, 1, 1]))), 0, 255))``. Without
    blocks the scales are only given x's rank. To a float8 it is a Cast of the quotient.

    ``QuantizeLinear<output_dtype=3>(x, scale)`` becomes ``QuantizeLinear(x, scale, 0)``, a zero
    of int8 in the shape of the scale.
    """
    zero, block = context.input(2), context.value("block_size", 0)
    to = quantized_to(context)
    if to in INTEGERS and (block or to in _16_BITS):
        quantize(context)
        return
    if block:
        _quantize_to_float8(context, to)
        return
    inputs = list(context.node.input)
    if to != TensorProto.UINT8 and not zero:
        inputs = [*inputs[:2], _zeros_like(context, inputs[1], to)]
    if any(context.attribute(name) is not None for name in ("block_size", "output_dtype")):
        context.replace(inputs=inputs, drop=("block_size", "output_dtype"))


def _quantize_to_float8(context: Context, to: int) -> None:
    """``Cast<saturate>(Div(x, scales))``, the quotient in the scales' dtype; zero points are 0."""
    data, scale = context.input(0), context.input(1)
    divided = context.op.Div(data, for_each_element(context, scale, granularity(context)))
    context.replace("Cast", [divided], keep=("saturate",), to=to)


def _zeros_like(context: Context, name: str, elem_type: int) -> Value:
    """Return zeros of dtype `elem_type` in the shape of a tensor of any dtype."""
    op = context.op
    shape = static_dims(dims_of(context, name))
    if shape is not None and math.prod(shape) <= LARGEST_CONSTANT:
        return context.array(np.zeros(shape, numpy_dtype(elem_type)), "zero_point")
    zero = numpy_helper.from_array(np.zeros(1, numpy_dtype(elem_type)))
    shape_of = op.Shape(name)
    return op.ConstantOfShape(shape_of, value=zero)


@up("QuantizeLinear", 19, "an int32 to quantize cast to float, the dtype of its scale")
def quantize_in_one_dtype(context: Context) -> None:
    """``QuantizeLinear(x, scale)`` of int32 becomes ``QuantizeLinear(Cast<float>(x), scale)``."""
    data = context.input(0)
    if context.need_elem_type(data, "its scale must have the same") == TensorProto.INT32:
        converted = cast(context, data, TensorProto.FLOAT)
        context.replace(inputs=[converted, *context.node.input[1:]])


@down(
    "QuantizeLinear",
    19,
    "halves divided in float, the quotient rounded to theirs; saturate dropped: it acts on float8",
    blocks="it quantizes to float8, and not only for a DequantizeLinear",
)
def quantize_halves(context: Context) -> None:
    """``QuantizeLinear(x, scale)`` of float16 becomes
    ``Cast<uint8>(Clip(Round(Cast<float16>(Div(Cast<float>(x), Cast<float>(scale)))), 0, 255))``.
    """
    to = quantized_to(context)
    if to not in INTEGERS:
        raise Blocked(
            f"it quantizes to {dtype_name(to)}, and opset 18 has no dtype of such numbers alone",
            "quantize to an integer, or choose opset 19 or later",
        )
    if context.elem_type(context.input(1)) in HALVES:
        quantize(context)
    elif context.attribute("saturate") is not None:
        context.replace(drop=("saturate",))


@down("QuantizeLinear", 13, "one scale for each index written as arithmetic")
def quantize_per_tensor(context: Context) -> None:
    """``QuantizeLinear<axis=1>(x, [s, t])`` becomes
    ``Cast<uint8>(Clip(Add(Round(Div(x, scales)), zero_points), 0, 255))``.

    A scale of one element becomes a scalar, and `axis` is dropped.
    """
    if not with_scalar_scale(context):
        quantize(context)


@introduced("QuantizeLinear", 10, "Round, Add, Clip and Cast")
def quantize_linear(context: Context) -> None:
    """``QuantizeLinear(x, scale, zero)`` becomes
    ``Cast<uint8>(Clip(Round(x / scale) + Cast<float>(zero), 0, 255))``.
    """
    context = context.at(12)  # 11 introduced Round, and limits of Clip as inputs.
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
        context.scalar(value, hint, TensorProto.FLOAT)
        for value, hint in ((lowest, "lowest"), (highest, "highest"))
    ]
    clipped = lowest_for_nan(context, op.Clip(rounded, *limits), limits[0])
    context.replace("Cast", [clipped], keep=(), to=to)
