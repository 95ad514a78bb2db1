"""QLinearMatMul and QLinearConv: 21, and below opset 10.

There they are written as the products of integers, rescaled and rounded.
"""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES, INTEGERS
from onnxreduce_cli.model.graph.values import dtype_name, iinfo, numpy_dtype
from onnxreduce_cli.steps.quantization.arithmetic import lowest_for_nan
from onnxreduce_cli.steps.quantization.matmul_conv_integer import (
    convolution_sums,
    for_each_channel,
    for_each_row,
)
from onnxreduce_cli.steps.registry import down, introduced


@down(
    "QLinearMatMul",
    21,
    "scales of halves cast to float, which the quotient is computed in",
    blocks="it multiplies float8",
)
def scales_in_float(context: Context) -> None:
    """``QLinearMatMul`` with scales of float16 gets ``Cast<float>(scale)`` in their place."""
    inputs = list(context.node.input)
    for index in (1, 4, 6):
        if context.elem_type(inputs[index]) in HALVES:
            inputs[index] = cast(context, inputs[index], TensorProto.FLOAT)
    if inputs != list(context.node.input):
        context.replace(inputs=inputs)


@introduced("QLinearMatMul", 10, "MatMulInteger, rescaled and rounded")
def q_linear_mat_mul(context: Context) -> None:
    """``QLinearMatMul(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero)`` becomes
    ``Cast(Clip(Round(MatMulInteger(a, b, a_zero, b_zero) * s) + y_zero, 0, 255))`` with
    ``s = a_scale * b_scale / y_scale``.
    """
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (
        context.input(index) for index in range(8)
    )
    elem_type = context.need_elem_type(y_zero, "it is the dtype of the result")
    if elem_type not in INTEGERS:
        raise Blocked(
            f"nothing else multiplies {dtype_name(elem_type)}", "choose opset 21 or later"
        )
    context = context.at(10)  # Opset 10 introduced MatMulInteger too; its own step goes on.
    op = context.op
    total = op.MatMulInteger(a, b, a_zero, b_zero)
    factor = op.Mul(for_each_row(context, a_scale, a), b_scale)
    factor = op.Div(factor, y_scale)
    _requantize(context, total, factor, y_zero, may_add_dims=context.rank(a) is None)


@introduced("QLinearConv", 10, "Conv of whole floats, rescaled and rounded")
def q_linear_conv(context: Context) -> None:
    """``QLinearConv(x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b)`` becomes
    ``Cast(Clip(Round((ConvInteger(x, w, x_zero, w_zero) + b) * s) + y_zero, 0, 255))`` with
    ``s = x_scale * w_scale / y_scale``.
    """
    context = context.at(10)  # Slice took computed ends then.
    op = context.op
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias = (
        context.input(index) for index in range(9)
    )
    total = convolution_sums(context, x, x_zero, w, w_zero)
    if bias:
        total = op.Add(total, for_each_channel(context, bias, w, 1))
    factor: str = op.Mul(x_scale, w_scale)
    factor = op.Div(factor, y_scale)
    if context.rank(w_scale) != 0:
        factor = for_each_channel(context, factor, w, 1)
    _requantize(context, total, factor, y_zero)


def _requantize(
    context: Context, total: str, factor: str, zero: str, *, may_add_dims: bool = False
) -> None:
    """Replace the node by ``Cast(Clip(Round(Cast<float>(total) * factor) + zero))``.

    Args:
        context: the product.
        total: its sums, in int32.
        factor: by which they are rescaled, in float.
        zero: the zero point, whose dtype is the result's.
        may_add_dims: whether the factor may have more dimensions than the sums.
    """
    context = context.at(12)  # 11 introduced Round, and limits of Clip as inputs.
    op = context.op
    to = context.need_elem_type(zero, "it is the dtype of the result")
    limits = iinfo(numpy_dtype(to))
    scaled = op.Mul(cast(context, total, TensorProto.FLOAT), factor)
    rounded = op.Round(scaled)
    moved = op.Add(rounded, cast(context, zero, TensorProto.FLOAT))
    bounds = [context.scalar(float(limit), "limit") for limit in (limits.min, limits.max)]
    clipped = op.Clip(moved, *bounds)
    result = lowest_for_nan(context, clipped, bounds[0])
    if may_add_dims:
        result = op.Reshape(result, op.Shape(total))
    context.replace("Cast", [result], keep=(), to=to)
