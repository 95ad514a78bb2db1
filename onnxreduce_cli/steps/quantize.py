"""QuantizeLinear and DequantizeLinear: 13, 19, 21 and 23.

- 13 allowed a scale and a zero point for each index along `axis`.
- 19 took all inputs' types apart or together; only an int32 to quantize needs a Cast.
- 21 added `block_size` and, to QuantizeLinear, `output_dtype`; DequantizeLinear got that with 23.
- 23 took the types of what is quantized and of its scale apart, and added `precision`.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, numpy_helper

from onnxreduce_cli.model.values import dtype_name, numpy_dtype
from onnxreduce_cli.steps.axes import normalised
from onnxreduce_cli.steps.casts import HALVES, cast
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
    purpose = "it is the dtype to quantize to"
    to = context.need_elem_type(zero, purpose) if zero else int(TensorProto.UINT8)
    limits = np.iinfo(numpy_dtype(to))
    if context.need_elem_type(data, "it is to be divided") != TensorProto.FLOAT:
        data = cast(context, data, TensorProto.FLOAT)
    shape = _along_axis(context)
    divided = context.emit("Div", [data, _shaped(context, scale, shape)], "divided")
    rounded = context.emit("Round", [divided], "rounded")
    if zero:
        points = _shaped(context, cast(context, zero, TensorProto.FLOAT), shape)
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


def _check_not_blocked(context: Context) -> None:
    if context.value("block_size", 0):
        raise Blocked(
            f"it quantizes in blocks (block_size={context.value('block_size')}), which came with "
            "opset 21",
            "choose opset 21 or later",
        )


@down("DequantizeLinear", 21, "block_size=0 dropped", blocks="it has scales for blocks")
def dequantize_without_blocks(context: Context) -> None:
    """``DequantizeLinear<block_size=0>(x, scale)`` becomes ``DequantizeLinear(x, scale)``."""
    _check_not_blocked(context)
    if context.attribute("block_size") is not None:
        context.replace(drop=("block_size",))


@down(
    "QuantizeLinear",
    21,
    "output_dtype: a zero point of that dtype; block_size=0 dropped",
    blocks="it has scales for blocks",
)
def quantize_without_blocks(context: Context) -> None:
    """``QuantizeLinear<output_dtype=3>(x, scale)`` becomes ``QuantizeLinear(x, scale, 0)``, a zero
    of int8 in the shape of the scale.
    """
    _check_not_blocked(context)
    inputs = list(context.node.input)
    to = context.value("output_dtype", 0)
    if to not in (0, TensorProto.UINT8) and not context.input(2):
        inputs = [*inputs[:2], _zeros_like(context, inputs[1], to)]
    if any(context.attribute(name) is not None for name in ("block_size", "output_dtype")):
        context.replace(inputs=inputs, drop=("block_size", "output_dtype"))


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
