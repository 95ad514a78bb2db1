"""QuantizeLinear and DequantizeLinear: 19, 23, 24, 25 and 28, what dtypes they take and give.

- 19 took all inputs' types apart or together; halves and float8 came with it.
- 23 took the types of what is quantized and of its scale apart, and added `precision`, and
  `output_dtype` to DequantizeLinear; float4 came with it.
- 24, 25 and 28 brought float8e8m0, 2-bit integers and float6.
"""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.casts import HALVES, INTEGERS, cast
from onnxreduce_cli.emit.context import Blocked, Context
from onnxreduce_cli.model.values import dtype_name
from onnxreduce_cli.steps.quantization.arithmetic import quantize, quantized_to
from onnxreduce_cli.steps.quantization.wider_storage import dequantize_held
from onnxreduce_cli.steps.registry import down, up

_NO_CONSTANT = (
    "what it dequantizes has a dtype that came with this opset, and is neither constant nor "
    "quantized by the model itself"
)


@up("QuantizeLinear", 19, "an int32 to quantize cast to float, the dtype of its scale")
def one_type(context: Context) -> None:
    """``QuantizeLinear(x, scale)`` of int32 becomes ``QuantizeLinear(Cast<float>(x), scale)``."""
    data = context.input(0)
    if context.need_elem_type(data, "its scale must have the same") == TensorProto.INT32:
        converted = cast(context, data, TensorProto.FLOAT)
        context.replace(inputs=[converted, *context.node.input[1:]])


@down(
    "QuantizeLinear",
    19,
    "halves divided in float, the quotient rounded to theirs; saturate dropped: it acts on float8",
    blocks="it quantizes to float8 what is not dequantized only",
)
def quantize_halves(context: Context) -> None:
    """``QuantizeLinear(x, scale)`` of float16 becomes
    ``Cast<uint8>(Clip(Round(Cast<float16>(Div(Cast<float>(x), Cast<float>(scale)))), 0, 255))``.
    """
    to = quantized_to(context)
    if to not in INTEGERS:
        raise Blocked(
            f"it quantizes to {dtype_name(to)}, and no dtype of opset 18 holds such numbers only",
            "quantize to an integer, or choose opset 19 or later",
        )
    if context.elem_type(context.input(1)) in HALVES:
        quantize(context)
    elif context.attribute("saturate") is not None:
        context.replace(drop=("saturate",))


@down(
    "DequantizeLinear",
    19,
    "computed in float and cast to the half of its scale; constants of float8 held in float",
    blocks="what it dequantizes is a float8, neither constant nor quantized by the model itself",
)
def dequantize_to_halves(context: Context) -> None:
    """``DequantizeLinear(x, scale)`` with a scale of float16 becomes
    ``Cast<float16>(DequantizeLinear(x, Cast<float>(scale)))``.
    """
    given = context.elem_type(context.input(1))
    if not dequantize_held(context) and given in HALVES:
        _dequantize_in_float(context, int(given or 0))


def _dequantize_in_float(context: Context, to: int) -> None:
    data, scale, zero = (context.input(index) for index in range(3))
    if context.elem_type(scale) != TensorProto.FLOAT:
        scale = cast(context, scale, TensorProto.FLOAT)
    wide = context.replace(
        inputs=[data, scale, zero], outputs=[context.fresh("float")], drop=("output_dtype",)
    )
    cast(context, wide.output[0], to, [context.node.output[0]])


@down(
    "QuantizeLinear",
    23,
    "data and scale cast to the dtype that it divides in",
    blocks="that is no float",
)
def divide_in_one_dtype(context: Context) -> None:
    """``QuantizeLinear(x, scale)``, x of float16 and scale of float, becomes
    ``QuantizeLinear(Cast<float>(x), scale)``.
    """
    inputs = list(context.node.input)
    given = [context.need_elem_type(name, "data and scale must have one") for name in inputs[:2]]
    working = context.value("precision", 0) or given[1]
    if working not in (TensorProto.FLOAT, *HALVES) and given != [working] * 2:
        raise Blocked(
            f"it divides {dtype_name(given[0])} by {dtype_name(given[1])} in "
            f"{dtype_name(working)}, for which the definition before opset 23 has no place",
            "let its scale be a float",
        )
    for index, elem_type in enumerate(given):
        if elem_type != working:
            inputs[index] = cast(context, inputs[index], working)
    if inputs != list(context.node.input) or context.attribute("precision") is not None:
        context.replace(inputs=inputs, drop=("precision",))


@down(
    "DequantizeLinear",
    23,
    "output_dtype dropped, the scale or the result cast to it; constants of float4 held in float",
    blocks="what it dequantizes is a float4 that is no constant",
)
def multiply_in_output_dtype(context: Context) -> None:
    """``DequantizeLinear<output_dtype=1>(x, scale)``, scale of float16, becomes
    ``DequantizeLinear(x, Cast<float>(scale))``, and to float16 with a scale of float
    ``Cast<float16>(DequantizeLinear(x, scale))``.
    """
    if dequantize_held(context):
        return
    given = context.need_elem_type(
        context.input(1), "before opset 23 it is the dtype of the output"
    )
    to = context.value("output_dtype", 0) or given
    if to == TensorProto.FLOAT and given in HALVES:
        scale = cast(context, context.input(1), to)
        inputs = [context.input(0), scale, context.input(2)]
        context.replace(inputs=inputs, drop=("output_dtype",))
    elif to != given:
        _dequantize_in_float(context, to)
    elif context.attribute("output_dtype") is not None:
        context.replace(drop=("output_dtype",))


@down(
    "DequantizeLinear", 24, "unchanged; constants of float8e8m0 held in float", blocks=_NO_CONSTANT
)
@down("DequantizeLinear", 25, "unchanged; constants of 2 bits held as 8", blocks=_NO_CONSTANT)
@down("DequantizeLinear", 28, "unchanged; constants of float6 held in float", blocks=_NO_CONSTANT)
def dequantize_constants(context: Context) -> None:
    """``DequantizeLinear(x, scale)`` with a constant x of int2 becomes the same with it in int8."""
    dequantize_held(context)
