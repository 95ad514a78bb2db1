"""QuantizeLinear and DequantizeLinear: 13, 19, 21 and 23.

- 13 allowed a scale and a zero point for each index along `axis`.
- 19 took all inputs' types apart or together; only an int32 to quantize needs a Cast.
- 21 added 16-bit and 4-bit integers, `block_size` and, to QuantizeLinear, `output_dtype`;
  DequantizeLinear got that with 23.
- 23 took the types of what is quantized and of its scale apart, and added `precision`.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, numpy_helper

from onnxreduce_cli.model.values import dtype_name, numpy_dtype
from onnxreduce_cli.steps.axes import normalised
from onnxreduce_cli.steps.births import arange, size_of
from onnxreduce_cli.steps.casts import HALVES, INTEGERS, cast, finish
from onnxreduce_cli.steps.context import Blocked, Context
from onnxreduce_cli.steps.integer_products import lowest_for_nan
from onnxreduce_cli.steps.registry import down, up

_BLOCKS = "the rank of the data or of the scale is not known"


@down("QuantizeLinear", 13, "one scale for each index written as arithmetic", blocks=_BLOCKS)
def quantize_per_tensor(context: Context) -> None:
    """``QuantizeLinear<axis=1>(x, [s, t])`` becomes
    ``Cast<uint8>(Clip(Add(Round(Div(x, scales)), zero_points), 0, 255))``.

    A scale of one element becomes a scalar, and `axis` is dropped.
    """
    if _made_scalar(context):
        return
    data, scale, zero = (context.input(index) for index in range(3))
    shape = _along_axis(context)
    points = zero and _shaped(context, cast(context, zero, TensorProto.FLOAT), shape)
    _quantize(context, data, _shaped(context, scale, shape), points, _quantized_to(context))


def _quantized_to(context: Context) -> int:
    zero = context.input(2)
    if not zero:
        return int(context.value("output_dtype", 0)) or int(TensorProto.UINT8)
    return context.need_elem_type(zero, "it is the dtype to quantize to")


def _quantize(context: Context, data: str, scale: str, points: str, to: int) -> None:
    """``Cast(Clip(Add(Round(Div(x, scale)), points)))``, all in float until the Cast.

    Only the quotient is rounded to the dtype of the scale, if that is a half.
    """
    limits = np.iinfo(numpy_dtype(to))
    if context.need_elem_type(data, "it is to be divided") != TensorProto.FLOAT:
        data = cast(context, data, TensorProto.FLOAT)
    divided = context.emit("Div", [data, scale], "divided")
    given = context.need_elem_type(context.input(1), "it is divided in the dtype of the scale")
    if given in HALVES:
        # Rounded to float and then to a half it is rounded as once.
        divided = cast(context, cast(context, divided, given), TensorProto.FLOAT)
    rounded = context.emit("Round", [divided], "rounded")
    if points:
        rounded = context.emit("Add", [rounded, points], "moved")
    bounds = [context.scalar(float(limit), "limit") for limit in (limits.min, limits.max)]
    clipped = lowest_for_nan(
        context, context.emit("Clip", [rounded, *bounds], "clipped"), bounds[0]
    )
    context.replace("Cast", [clipped], keep=(), to=to)


@down("DequantizeLinear", 13, "one scale for each index written as arithmetic", blocks=_BLOCKS)
def dequantize_per_tensor(context: Context) -> None:
    """``DequantizeLinear<axis=1>(x, [s, t], zero_points)`` becomes
    ``Mul(Sub(Cast<float>(x), Cast<float>(zero_points)), scales)``.

    A scale of one element becomes a scalar, and `axis` is dropped.
    """
    if _made_scalar(context):
        return
    data, scale, zero = (context.input(index) for index in range(3))
    shape = _along_axis(context)
    data = cast(context, data, TensorProto.FLOAT)
    if zero:
        points = _shaped(context, cast(context, zero, TensorProto.FLOAT), shape)
        data = context.emit("Sub", [data, points], "moved")
    context.replace("Mul", [data, _shaped(context, scale, shape)], keep=())


def _made_scalar(context: Context) -> bool:
    """Leave one scale for the whole tensor, and say whether there is but one."""
    scale = context.input(1)
    known = context.type(scale)
    if known is None or known.dims is None:
        context.need_rank(scale, "before opset 13 it must be a scalar")
        return False
    if known.dims not in ((), (1,)):
        return False
    inputs = [context.input(0), *(_scalar(context, name) for name in context.node.input[1:])]
    if inputs != list(context.node.input) or context.attribute("axis") is not None:
        context.replace(inputs=inputs, drop=("axis",))
    return True


def _scalar(context: Context, name: str) -> str:
    known = context.constant(name) if name else None
    if not name or context.rank(name) == 0:
        return name
    if known is not None:
        return context.array(known.reshape(()), "scalar")
    return context.emit("Squeeze", [name], "scalar", axes=[0])


def _along_axis(context: Context) -> list[int]:
    """The shape that lets a vector broadcast along the node's axis."""
    rank = context.need_rank(context.input(0), "its scales are spread along an axis")
    scale_rank = context.need_rank(context.input(1), "before opset 13 it must be a scalar")
    if scale_rank != 1:
        raise Blocked(f"its scale has rank {scale_rank}", "mend the model")
    if rank == 1:
        return [-1]
    axis = normalised((context.value("axis", 1),), rank)[0]
    return [-1] + [1] * (rank - 1 - axis)


def _shaped(context: Context, name: str, shape: list[int]) -> str:
    if len(shape) == 1:
        return name
    return context.emit("Reshape", [name, context.array(shape, "shape")], "along_axis")


@up("QuantizeLinear", 19, "an int32 to quantize cast to float, the dtype of its scale")
def one_type(context: Context) -> None:
    """``QuantizeLinear(x, scale)`` of int32 becomes ``QuantizeLinear(Cast<float>(x), scale)``."""
    data = context.input(0)
    if context.need_elem_type(data, "its scale must have the same") == TensorProto.INT32:
        converted = cast(context, data, TensorProto.FLOAT)
        context.replace(inputs=[converted, *context.node.input[1:]])


_16_BITS = frozenset({TensorProto.INT16, TensorProto.UINT16})


@down(
    "DequantizeLinear",
    21,
    "block_size=0 dropped; scales for blocks and 16-bit integers written as arithmetic",
    blocks="a shape that this takes is not known, or they have 4 bits, which nothing else holds",
)
def dequantize_blocks(context: Context) -> None:
    """``DequantizeLinear<axis=1, block_size=2>(x, scales, zero_points)`` becomes
    ``Mul(Sub(Cast<float>(x), Cast<float>(points)), Gather<axis=1>(scales, [0, 0, 1, 1]))``, with
    points gathered like the scales. Without blocks the scales are only given x's rank.

    ``DequantizeLinear<block_size=0>(x, scale)`` of 8 bits becomes ``DequantizeLinear(x, scale)``.
    """
    data, scale, zero = (context.input(index) for index in range(3))
    block = context.value("block_size", 0)
    if not block and context.elem_type(data) not in _16_BITS:
        if context.attribute("block_size") is not None:
            context.replace(drop=("block_size",))
        return
    to = context.need_elem_type(scale, "it is the dtype of the result")
    numbers = cast(context, data, TensorProto.FLOAT)
    if zero:
        points = _spread(context, cast(context, zero, TensorProto.FLOAT), zero, block)
        numbers = context.emit("Sub", [numbers, points], "moved")
    factors = [numbers, _spread(context, _as_float(context, scale), scale, block)]
    finish(context, "Mul", factors, to, int(TensorProto.FLOAT))


@down(
    "QuantizeLinear",
    21,
    "output_dtype: a zero point of that dtype; block_size=0 dropped; scales for blocks and 16-bit "
    "integers written as arithmetic",
    blocks="a shape that this takes is not known, or they have 4 bits, which nothing else holds",
)
def quantize_blocks(context: Context) -> None:
    """``QuantizeLinear<axis=1, block_size=2>(x, scales)`` becomes
    ``Cast<uint8>(Clip(Round(Div(x, Gather<axis=1>(scales, [0, 0, 1, 1]))), 0, 255))``. Without
    blocks the scales are only given x's rank.

    ``QuantizeLinear<output_dtype=3>(x, scale)`` becomes ``QuantizeLinear(x, scale, 0)``, a zero
    of int8 in the shape of the scale.
    """
    data, scale, zero = (context.input(index) for index in range(3))
    block = context.value("block_size", 0)
    to = _quantized_to(context)
    if to in INTEGERS and (block or to in _16_BITS):
        points = zero and _spread(context, cast(context, zero, TensorProto.FLOAT), zero, block)
        divisors = _spread(context, _as_float(context, scale), scale, block)
        _quantize(context, data, divisors, points, to)
        return
    if block:
        raise Blocked(
            f"it quantizes to {dtype_name(to)} in blocks (block_size={block}), which came with "
            "opset 21",
            "choose opset 21 or later",
        )
    inputs = list(context.node.input)
    if to != TensorProto.UINT8 and not zero:
        inputs = [*inputs[:2], _zeros_like(context, inputs[1], to)]
    if any(context.attribute(name) is not None for name in ("block_size", "output_dtype")):
        context.replace(inputs=inputs, drop=("block_size", "output_dtype"))


def _as_float(context: Context, name: str) -> str:
    if context.need_elem_type(name, "it is computed with in float") == TensorProto.FLOAT:
        return name
    return cast(context, name, TensorProto.FLOAT)


def _spread(context: Context, name: str, given: str, block: int) -> str:
    """Scales or zero points, in float, such that they broadcast to the data.

    Args:
        context: the node.
        name: the numbers in float.
        given: what they were cast from, whose shape is known if anything is.
        block: how many elements along the node's axis one of them is for; 0 for all, or where
            there is one for each index along the axis.
    """
    if block:
        rank = context.need_rank(context.input(0), "its scales are for blocks along an axis")
        axis = normalised((context.value("axis", 1),), rank)[0]
        size = size_of(context, context.input(0), axis)
        if isinstance(size, int):
            places = context.array(np.arange(size, dtype=np.int64) // block, "blocks")
        else:
            length = context.array([block], "block_size")
            places = context.emit("Div", [arange(context, size), length], "blocks")
        return context.emit("Gather", [name, places], "of_block", axis=axis)
    if context.need_rank(given, "it is spread along an axis") == 0 or _is_one(context, given):
        return name
    return _shaped(context, name, _along_axis(context))


def _is_one(context: Context, name: str) -> bool:
    """Whether a tensor is known to have the shape [1]."""
    known = context.type(name)
    return known is not None and known.dims == (1,)


def _zeros_like(context: Context, name: str, elem_type: int) -> str:
    known = context.type(name)
    dims = None if known is None else known.dims
    if dims is not None and all(isinstance(dim, int) for dim in dims):
        shape = tuple(dim for dim in dims if isinstance(dim, int))
        return context.array(np.zeros(shape, numpy_dtype(elem_type)), "zero_point")
    zero = numpy_helper.from_array(np.zeros(1, numpy_dtype(elem_type)))
    shape_of = context.emit("Shape", [name], "shape")
    return context.emit("ConstantOfShape", [shape_of], "zero_point", value=zero)


@down(
    "QuantizeLinear",
    23,
    "data and scale brought to one dtype, the one that it divides in",
    blocks="that is narrower than one of them",
)
def divide_in_one_dtype(context: Context) -> None:
    """``QuantizeLinear(x, scale)``, x of float16 and scale of float, becomes
    ``QuantizeLinear(Cast<float>(x), scale)``.
    """
    data, scale = context.input(0), context.input(1)
    given = [context.need_elem_type(name, "data and scale must have one") for name in (data, scale)]
    working = context.value("precision", 0) or given[1]
    inputs = list(context.node.input)
    for index, elem_type in enumerate(given):
        if elem_type != working:
            inputs[index] = _wider(context, inputs[index], elem_type, working)
    if inputs != list(context.node.input) or context.attribute("precision") is not None:
        context.replace(inputs=inputs, drop=("precision",))


@down(
    "DequantizeLinear",
    23,
    "output_dtype dropped, the scale cast to it",
    blocks="it is narrower than the scale",
)
def multiply_in_output_dtype(context: Context) -> None:
    """``DequantizeLinear<output_dtype=1>(x, scale)``, scale of float16, becomes
    ``DequantizeLinear(x, Cast<float>(scale))``.
    """
    to = context.value("output_dtype", 0)
    if not to:
        if context.attribute("output_dtype") is not None:
            context.replace(drop=("output_dtype",))
        return
    data, scale, zero = (context.input(index) for index in range(3))
    given = context.need_elem_type(scale, "before opset 23 it is the dtype of the output")
    if given != to:
        scale = _wider(context, scale, given, to)
    context.replace(inputs=[data, scale, zero], drop=("output_dtype",))


def _wider(context: Context, name: str, given: int, to: int) -> str:
    """A Cast of the value from a half to float; nothing else is exact."""
    if given not in HALVES or to != TensorProto.FLOAT:
        raise Blocked(
            f"it computes in {dtype_name(to)} what has dtype {dtype_name(given)}, which opset 23 "
            "allowed",
            f"cast {name!r} to {dtype_name(to)}",
        )
    return cast(context, name, to)
