"""Operators on quantized tensors as DequantizeLinear, the operator on floats and QuantizeLinear.

Many runtimes take that form alone. The product is rounded as float before it is quantized: where it
lies halfway between two steps, either may come out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES, INTEGERS
from onnxreduce_cli.emit.sizes import dims_of
from onnxreduce_cli.model.graph.values import dtype_name
from onnxreduce_cli.steps.quantization import qlinear_matmul_conv
from onnxreduce_cli.steps.registry import instead

#: The opset that introduced QuantizeLinear: below it products of integers are the shorter form.
_INTRODUCED = 10

#: The opset from which on there may be a scale for each index along an axis.
PER_AXIS = 13

_CONV = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")


@instead("QLinearConv", {"any"}, "Conv between DequantizeLinear and QuantizeLinear")
def q_linear_conv(context: Context) -> None:
    """``QLinearConv(x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b)`` becomes
    ``QuantizeLinear(Conv(DequantizeLinear(x), DequantizeLinear<axis=0>(w),
    DequantizeLinear<axis=0>(b, x_scale * w_scale)), y_scale, y_zero)``.
    """
    if not context.reaches(_INTRODUCED):
        qlinear_matmul_conv.q_linear_conv(context)
        return
    context = context.at(max(context.op.opset, PER_AXIS))
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias = (
        context.input(index) for index in range(9)
    )
    inputs = [dequantized(context, x, x_scale, x_zero), dequantized(context, w, w_scale, w_zero, 0)]
    if bias:
        inputs.append(dequantized(context, bias, product(context, x_scale, w_scale), "", 0))
    attributes: dict[str, Any] = {name: context.attribute(name) for name in _CONV}
    quantize_result(context, context.op.Conv(*inputs, **attributes), y_scale, y_zero)


@instead("QLinearMatMul", {"any"}, "MatMul between DequantizeLinear and QuantizeLinear")
def q_linear_mat_mul(context: Context) -> None:
    """``QLinearMatMul(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero)`` becomes
    ``QuantizeLinear(MatMul(DequantizeLinear<axis=-2>(a), DequantizeLinear<axis=-1>(b)), y_scale,
    y_zero)``.
    """
    if not context.reaches(_INTRODUCED):
        qlinear_matmul_conv.q_linear_mat_mul(context)
        return
    context = context.at(max(context.op.opset, PER_AXIS))
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (
        context.input(index) for index in range(8)
    )
    first = dequantized(context, a, a_scale, a_zero, -2)
    second = dequantized(context, b, b_scale, b_zero, -1)
    quantize_result(context, context.op.MatMul(first, second), y_scale, y_zero)


def dequantized(
    context: Context, data: Value, scale: str, zero: str, axis: int | None = None
) -> Value:
    """Return a tensor in float.

    Args:
        context: the node.
        data: the tensor, of integers.
        scale: its scale, one or one for each index along the axis.
        zero: its zero point, likewise; empty for 0.
        axis: the axis; None where there is one scale for all.

    Raises:
        Blocked: it is not of integers, or has scales along more than one axis.
    """
    _need_integers(context, data)
    scale = _as_float(context, scale)
    scale_dims, zero_dims = dims_of(context, scale), dims_of(context, zero) if zero else None
    if any(dims is not None and len(dims) > 1 for dims in (scale_dims, zero_dims)):
        raise Blocked(
            f"{data!r} has a scale for each row of each matrix, which DequantizeLinear cannot say"
        )
    if zero and scale_dims != zero_dims:
        scale, zero = _in_one_shape(context, scale, zero)
    if axis is None or (scale_dims in ((), (1,)) and zero_dims in (None, (), (1,))):
        return context.op.DequantizeLinear(data, scale, zero)
    return context.op.DequantizeLinear(data, scale, zero, axis=axis)


def quantize_result(context: Context, result: str, scale: str, zero: Value) -> None:
    """Replace the node by the QuantizeLinear of a result in float."""
    if zero:
        _need_integers(context, zero)
        known = [dims_of(context, name) for name in (scale, zero)]
        if known[0] != known[1]:
            scale, zero = _in_one_shape(context, scale, zero)
    context.replace("QuantizeLinear", [result, _as_float(context, scale), zero], keep=())


def product(context: Context, first: str, second: str) -> Value:
    """Return the product of two scales in float; a constant where both are known."""
    known = context.constant(first), context.constant(second)
    if known[0] is not None and known[1] is not None:
        return context.array(
            np.asarray(known[0].astype(np.float32) * known[1].astype(np.float32)), "scale"
        )
    return context.op.Mul(_as_float(context, first), _as_float(context, second))


def _need_integers(context: Context, name: Value) -> None:
    elem_type = context.need_elem_type(name, "floats of 8 bits are not multiplied as integers are")
    if elem_type not in INTEGERS:
        raise Blocked(f"{name!r} is {dtype_name(elem_type)}, and only integers are written so")


def _as_float(context: Context, scale: str) -> str:
    """Return a scale in float; products are rounded once, from float, not in 16 bits."""
    in_half = context.elem_type(scale) in HALVES
    return cast(context, scale, TensorProto.FLOAT) if in_half else scale


def _in_one_shape(context: Context, scale: str, zero: str) -> tuple[Value, Value]:
    """Return a scale and a zero point in the shape that both broadcast to."""
    first, second = context.constant(scale), context.constant(zero)
    if first is not None and second is not None:
        first, second = np.broadcast_arrays(first, second)
        return context.array(first.copy(), "scale"), context.array(second.copy(), "zero_point")
    op = context.op
    shapes = op.Shape(scale), op.Shape(zero)
    return op.Expand(scale, shapes[1]), op.Expand(zero, shapes[0])
