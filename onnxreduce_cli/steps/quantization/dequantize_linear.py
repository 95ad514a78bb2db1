"""DequantizeLinear: 10, 13, 19, 21, 23, 24, 25 and 28.

- 13 allowed a scale and a zero point for each index along `axis`.
- 19 allowed scales, and so results, of halves; float8 came with it.
- 21 added 16-bit and 4-bit integers, and `block_size`.
- 23 added `output_dtype` and float4.
- 24, 25 and 28 brought float8e8m0, 2-bit integers and float6.
"""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES
from onnxreduce_cli.steps.quantization.arithmetic import dequantize, less_zero_point
from onnxreduce_cli.steps.quantization.scales import with_scalar_scale
from onnxreduce_cli.steps.quantization.wider_storage import dequantize_in_wider_storage, in_float
from onnxreduce_cli.steps.registry import down, introduced

_NO_CONSTANT = (
    "its input has a dtype that came with this opset, and is neither constant nor "
    "quantized by the model itself"
)

_16_BITS = frozenset({TensorProto.INT16, TensorProto.UINT16})


@down(
    "DequantizeLinear",
    24,
    "unchanged; constants of float8e8m0 stored in float",
    blocks=_NO_CONSTANT,
)
@down("DequantizeLinear", 25, "unchanged; constants of 2 bits stored in 8", blocks=_NO_CONSTANT)
@down(
    "DequantizeLinear",
    28,
    "unchanged; constants of float6 stored in float",
    blocks=_NO_CONSTANT,
)
def dequantize_constants(context: Context) -> None:
    """``DequantizeLinear(x, scale)`` with a constant x of int2 becomes the same with it in int8."""
    dequantize_in_wider_storage(context)


@down(
    "DequantizeLinear",
    23,
    "output_dtype dropped, the scale or the result cast to it; constants of float4 stored in float",
    blocks="its input is float4, and not constant",
)
def multiply_in_output_dtype(context: Context) -> None:
    """``DequantizeLinear<output_dtype=1>(x, scale)``, scale of float16, becomes
    ``DequantizeLinear(x, Cast<float>(scale))``, and to float16 with a scale of float
    ``Cast<float16>(DequantizeLinear(x, scale))``.
    """
    if dequantize_in_wider_storage(context):
        return
    scale_type = context.need_elem_type(
        context.input(1), "before opset 23 it is the dtype of the output"
    )
    to = context.value("output_dtype", 0) or scale_type
    if to == TensorProto.FLOAT and scale_type in HALVES:
        scale = cast(context, context.input(1), to)
        inputs = [context.input(0), scale, context.input(2)]
        context.replace(inputs=inputs, drop=("output_dtype",))
    elif to != scale_type:
        _dequantize_in_float(context, to)
    elif context.attribute("output_dtype") is not None:
        context.replace(drop=("output_dtype",))


@down(
    "DequantizeLinear",
    21,
    "block_size=0 dropped; scales for blocks and 16-bit integers written as arithmetic; constants "
    "of 4 bits stored in 8",
    blocks="its input has 4 bits, and is neither constant nor quantized by the model itself",
)
def dequantize_blocks(context: Context) -> None:
    """``DequantizeLinear<axis=1, block_size=2>(x, scales, zero_points)`` becomes
    ``Mul(Sub(Cast<float>(x), Cast<float>(points)), Gather<axis=1>(scales, [0, 0, 1, 1]))``, with
    points gathered like the scales. Without blocks the scales are only given x's rank.

    ``DequantizeLinear<block_size=0>(x, scale)`` of 8 bits becomes ``DequantizeLinear(x, scale)``.
    """
    if dequantize_in_wider_storage(context):
        return
    data = context.input(0)
    if context.value("block_size", 0) or context.elem_type(data) in _16_BITS:
        dequantize(context, in_float(context, data))
    elif context.attribute("block_size") is not None:
        context.replace(drop=("block_size",))


@down(
    "DequantizeLinear",
    19,
    "computed in float and cast to the half of its scale; constants of float8 stored in float",
    blocks="its input is float8, and neither constant nor quantized by the model itself",
)
def dequantize_to_halves(context: Context) -> None:
    """``DequantizeLinear(x, scale)`` with a scale of float16 becomes
    ``Cast<float16>(DequantizeLinear(x, Cast<float>(scale)))``.
    """
    scale_type = context.elem_type(context.input(1))
    if not dequantize_in_wider_storage(context) and scale_type in HALVES:
        _dequantize_in_float(context, int(scale_type or 0))


def _dequantize_in_float(context: Context, to: int) -> None:
    """Replace the node by ``Cast<to>(DequantizeLinear(x, Cast<float>(scale)))``."""
    data, scale, zero = (context.input(index) for index in range(3))
    if context.elem_type(scale) != TensorProto.FLOAT:
        scale = cast(context, scale, TensorProto.FLOAT)
    wide = context.replace(
        inputs=[data, scale, zero], outputs=[context.fresh("float")], drop=("output_dtype",)
    )
    cast(context, wide.output[0], to, [context.node.output[0]])


@down("DequantizeLinear", 13, "one scale for each index written as arithmetic")
def dequantize_per_tensor(context: Context) -> None:
    """``DequantizeLinear<axis=1>(x, [s, t], zero_points)`` becomes
    ``Mul(Sub(Cast<float>(x), Cast<float>(zero_points)), scales)``.

    A scale of one element becomes a scalar, and `axis` is dropped.
    """
    if not with_scalar_scale(context):
        dequantize(context, cast(context, context.input(0), TensorProto.FLOAT))


@introduced("DequantizeLinear", 10, "(x - zero point) * scale")
def dequantize_linear(context: Context) -> None:
    """``DequantizeLinear(x, scale, zero)`` becomes
    ``Mul(Cast<float>(Cast<int32>(x) - Cast<int32>(zero)), scale)``.
    """
    data = context.input(0)
    if context.elem_type(data) == TensorProto.INT32:
        whole = data  # It has no zero point.
    else:
        whole = less_zero_point(context, data, context.input(2))
    numbers = cast(context, whole, TensorProto.FLOAT)
    context.replace("Mul", [numbers, context.input(1)], keep=())
