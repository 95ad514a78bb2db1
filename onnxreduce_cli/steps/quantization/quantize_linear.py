"""QuantizeLinear and DequantizeLinear: 13 and 21, scales for parts of a tensor.

- 13 allowed a scale and a zero point for each index along `axis`.
- 21 added 16-bit and 4-bit integers, `block_size` and, to QuantizeLinear, `output_dtype`.

What became of their dtypes is in `quantize_dtypes.py`.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, numpy_helper

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import INTEGERS, cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import dims_of, static
from onnxreduce_cli.model.values import numpy_dtype
from onnxreduce_cli.steps.quantization.arithmetic import (
    dequantize,
    of_blocks,
    parts,
    quantize,
    quantized_to,
)
from onnxreduce_cli.steps.quantization.wider_storage import dequantize_held, in_float
from onnxreduce_cli.steps.registry import down

_PER_INDEX = "one scale for each index written as arithmetic"


@down("QuantizeLinear", 13, _PER_INDEX)
def quantize_per_tensor(context: Context) -> None:
    """``QuantizeLinear<axis=1>(x, [s, t])`` becomes
    ``Cast<uint8>(Clip(Add(Round(Div(x, scales)), zero_points), 0, 255))``.

    A scale of one element becomes a scalar, and `axis` is dropped.
    """
    if not _made_scalar(context):
        quantize(context)


@down("DequantizeLinear", 13, _PER_INDEX)
def dequantize_per_tensor(context: Context) -> None:
    """``DequantizeLinear<axis=1>(x, [s, t], zero_points)`` becomes
    ``Mul(Sub(Cast<float>(x), Cast<float>(zero_points)), scales)``.

    A scale of one element becomes a scalar, and `axis` is dropped.
    """
    if not _made_scalar(context):
        dequantize(context, cast(context, context.input(0), TensorProto.FLOAT))


def _made_scalar(context: Context) -> bool:
    """Leave one scale for the whole tensor, and say whether there is but one."""
    if dims_of(context, context.input(1)) not in ((), (1,)):
        return False
    inputs = [context.input(0), *(_scalar(context, name) for name in context.node.input[1:])]
    if inputs != list(context.node.input) or context.attribute("axis") is not None:
        context.replace(inputs=inputs, drop=("axis",))
    return True


def _scalar(context: Context, name: str) -> str:
    op = context.op
    known = context.constant(name) if name else None
    rank = context.rank(name) if name else 0
    if rank == 0:
        return name
    if known is not None:
        return context.array(known.reshape(()), "scalar")
    if rank == 1:
        return op.Squeeze(name, axes=[0])
    return op.Reshape(name, context.array([], "scalar"))


@down(
    "DequantizeLinear",
    21,
    "block_size=0 dropped; scales for blocks and 16-bit integers written as arithmetic; constants "
    "of 4 bits held as 8",
    blocks="they have 4 bits, and are neither constant nor quantized by the model itself",
)
def dequantize_blocks(context: Context) -> None:
    """``DequantizeLinear<axis=1, block_size=2>(x, scales, zero_points)`` becomes
    ``Mul(Sub(Cast<float>(x), Cast<float>(points)), Gather<axis=1>(scales, [0, 0, 1, 1]))``, with
    points gathered like the scales. Without blocks the scales are only given x's rank.

    ``DequantizeLinear<block_size=0>(x, scale)`` of 8 bits becomes ``DequantizeLinear(x, scale)``.
    """
    if dequantize_held(context):
        return
    data = context.input(0)
    if context.value("block_size", 0) or context.elem_type(data) in _16_BITS:
        dequantize(context, in_float(context, data))
    elif context.attribute("block_size") is not None:
        context.replace(drop=("block_size",))


_16_BITS = frozenset({TensorProto.INT16, TensorProto.UINT16})


@down(
    "QuantizeLinear",
    21,
    "output_dtype: a zero point of that dtype; block_size=0 dropped; scales for blocks and 16-bit "
    "integers written as arithmetic",
    blocks="it gives 4 bits that are not dequantized only",
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
    divided = context.op.Div(data, of_blocks(context, scale, parts(context)))
    context.replace("Cast", [divided], keep=("saturate",), to=to)


def _zeros_like(context: Context, name: str, elem_type: int) -> Value:
    op = context.op
    shape = static(dims_of(context, name))
    if shape is not None:
        return context.array(np.zeros(shape, numpy_dtype(elem_type)), "zero_point")
    zero = numpy_helper.from_array(np.zeros(1, numpy_dtype(elem_type)))
    shape_of = op.Shape(name)
    return op.ConstantOfShape(shape_of, value=zero)
