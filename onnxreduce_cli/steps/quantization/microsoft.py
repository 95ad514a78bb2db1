"""Quantized operators of ONNX Runtime's own domain, com.microsoft, in the default domain.

Those on quantized tensors become the operator on floats between DequantizeLinear and
QuantizeLinear.
Source: docs/ContribOperators.md of ONNX Runtime, and its kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.model.graph.values import numpy_dtype
from onnxreduce_cli.steps.quantization.qdq_form import (
    PER_AXIS,
    dequantized,
    product,
    quantize_result,
)
from onnxreduce_cli.steps.registry import instead

_FORM = "the operator on floats between DequantizeLinear and QuantizeLinear"

#: The dtype of unsigned integers of some bits.
_OF_BITS: dict[int, int] = {4: TensorProto.UINT4, 8: TensorProto.UINT8}

#: The accuracy_level at which data is rounded to int8.
_IN_INT8 = 4

_FLAGS = ("alpha", "transA", "transB")


def _input(context: Context, index: int) -> Value:
    """Return a quantized input in float; its scale and zero point follow it."""
    return dequantized(
        context, context.input(index), context.input(index + 1), context.input(index + 2)
    )


@instead(("com.microsoft.QLinearAdd", "com.microsoft.QLinearMul"), {"any"}, _FORM)
def q_linear_pair(context: Context) -> None:
    """``QLinearAdd(a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero)`` becomes
    ``QuantizeLinear(Add(DequantizeLinear(a), DequantizeLinear(b)), c_scale, c_zero)``.
    """
    context = context.at(max(context.op.opset, PER_AXIS))
    op_type = context.node.op_type.removeprefix("QLinear")
    result = context.op.emit(op_type, _input(context, 0), _input(context, 3))
    quantize_result(context, result, context.input(6), context.input(7))


@instead(("com.microsoft.QLinearSigmoid", "com.microsoft.QLinearLeakyRelu"), {"any"}, _FORM)
def q_linear_activation(context: Context) -> None:
    """``QLinearSigmoid(x, x_scale, x_zero, y_scale, y_zero)`` becomes
    ``QuantizeLinear(Sigmoid(DequantizeLinear(x)), y_scale, y_zero)``.
    """
    context = context.at(max(context.op.opset, PER_AXIS))
    op_type = context.node.op_type.removeprefix("QLinear")
    result = context.op.emit(op_type, _input(context, 0), alpha=context.attribute("alpha"))
    quantize_result(context, result, context.input(3), context.input(4))


@instead("com.microsoft.QLinearGlobalAveragePool", {"any"}, _FORM)
def q_linear_global_average_pool(context: Context) -> None:
    """``QLinearGlobalAveragePool(x, x_scale, x_zero, y_scale, y_zero)`` becomes
    ``QuantizeLinear(GlobalAveragePool(DequantizeLinear(x)), y_scale, y_zero)``.
    """
    if context.value("channels_last", 0):
        raise Blocked("its channels come last", "export the model with channels first")
    context = context.at(max(context.op.opset, PER_AXIS))
    result = context.op.GlobalAveragePool(_input(context, 0))
    quantize_result(context, result, context.input(3), context.input(4))


@instead("com.microsoft.QLinearSoftmax", {"any"}, _FORM)
def q_linear_softmax(context: Context) -> None:
    """``QLinearSoftmax<opset=13>(x, x_scale, x_zero, y_scale, y_zero)`` becomes
    ``QuantizeLinear(Softmax(DequantizeLinear(x)), y_scale, y_zero)``, Softmax as that opset has it.
    """
    defined = 13 if context.value("opset") >= 13 else 11
    axis = context.value("axis", -1 if defined == 13 else 1)
    context = context.at(max(context.op.opset, PER_AXIS))
    data = _input(context, 0)
    # Below opset 13 it is over all axes from this one on.
    softmax = context.at(defined if defined < 13 else context.op.opset)
    result = softmax.op.Softmax(data, axis=axis)
    quantize_result(context, result, context.input(3), context.input(4))


@instead("com.microsoft.QLinearConcat", {"any"}, _FORM)
def q_linear_concat(context: Context) -> None:
    """``QLinearConcat(y_scale, y_zero, x1, x1_scale, x1_zero, ...)`` becomes
    ``QuantizeLinear(Concat(DequantizeLinear(x1), ...), y_scale, y_zero)``.
    """
    context = context.at(max(context.op.opset, PER_AXIS))
    parts = [_input(context, index) for index in range(2, len(context.node.input), 3)]
    result = context.op.Concat(*parts, axis=context.attribute("axis"))
    quantize_result(context, result, context.input(0), context.input(1))


@instead("com.microsoft.QGemm", {"any"}, "Gemm between DequantizeLinear and QuantizeLinear")
def q_gemm(context: Context) -> None:
    """``QGemm(a, a_scale, a_zero, b, b_scale, b_zero, c, y_scale, y_zero)`` becomes
    ``QuantizeLinear(Gemm(DequantizeLinear(a), DequantizeLinear(b), DequantizeLinear(c, a_scale *
    b_scale)), y_scale, y_zero)``; without y_scale the result stays float.
    """
    context = context.at(max(context.op.opset, PER_AXIS))
    a, a_scale, a_zero, b, b_scale, b_zero, bias, y_scale, y_zero = (
        context.input(index) for index in range(9)
    )
    columns = 0 if context.value("transB", 0) else 1
    inputs = [
        dequantized(context, a, a_scale, a_zero),
        dequantized(context, b, b_scale, b_zero, columns),
    ]
    alpha = context.value("alpha", 1.0)
    if bias:
        if alpha != 1.0:
            raise Blocked(
                f"its alpha is {alpha}, and its bias is in steps of that", "export it with 1"
            )
        rank = context.need_rank(bias, "its scales lie along its last axis")
        inputs.append(dequantized(context, bias, product(context, a_scale, b_scale), "", rank - 1))
    flags: dict[str, Any] = {name: context.attribute(name) for name in _FLAGS}
    if y_scale:
        quantize_result(context, context.op.Gemm(*inputs, **flags), y_scale, y_zero)
    else:
        context.replace("Gemm", inputs, keep=_FLAGS)


@instead("com.microsoft.MatMulIntegerToFloat", {"any"}, "MatMulInteger, multiplied by both scales")
def mat_mul_integer_to_float(context: Context) -> None:
    """``MatMulIntegerToFloat(a, b, a_scale, b_scale, a_zero, b_zero, bias)`` becomes
    ``Cast<float>(MatMulInteger(a, b, a_zero, b_zero)) * (a_scale * b_scale) + bias``.
    """
    context = context.at(max(context.op.opset, 10))
    a, b, a_scale, b_scale, a_zero, b_zero, bias = (context.input(index) for index in range(7))
    _rescale(context, context.op.MatMulInteger(a, b, a_zero, b_zero), [a_scale, b_scale], bias)


@instead(
    "com.microsoft.DynamicQuantizeMatMul",
    {"any"},
    "DynamicQuantizeLinear and MatMulInteger, multiplied by both scales",
)
def dynamic_quantize_mat_mul(context: Context) -> None:
    """``DynamicQuantizeMatMul(a, b, b_scale, b_zero, bias)`` becomes
    ``Cast<float>(MatMulInteger(q, b, q_zero, b_zero)) * (q_scale * b_scale) + bias`` with
    ``q, q_scale, q_zero = DynamicQuantizeLinear(a)``.
    """
    context = context.at(max(context.op.opset, 11))
    a, b, b_scale, b_zero, bias = (context.input(index) for index in range(5))
    q, q_scale, q_zero = context.op.DynamicQuantizeLinear(a, outputs=3)
    _rescale(context, context.op.MatMulInteger(q, b, q_zero, b_zero), [q_scale, b_scale], bias)


def _rescale(context: Context, total: str, scales: list[str], bias: str) -> None:
    """Replace the node by a product of integers times two scales, and a bias if there is one."""
    op = context.op
    to = context.need_elem_type(context.node.input[2], "it is the dtype of the result")
    if to != TensorProto.FLOAT:
        raise Blocked("it gives float16, which its kernels compute in another order")
    numbers, factor = cast(context, total, TensorProto.FLOAT), op.Mul(*scales)
    if bias:
        context.replace("Add", [op.Mul(numbers, factor), bias], keep=())
    else:
        context.replace("Mul", [numbers, factor], keep=())


@instead("com.microsoft.MatMulNBits", {"any"}, "MatMul of what DequantizeLinear makes of blocks")
def mat_mul_n_bits(context: Context) -> None:
    """``MatMulNBits<K=64, N=32, block_size=16>(a, b, scales, zeros)`` becomes
    ``MatMul(a, Transpose(DequantizeLinear<axis=1, block_size=16>(b, scales, zeros)))``, b of uint4.

    Below opset 21, which introduced blocks and uint4, the steps of DequantizeLinear go on.
    """
    bits, block, rows, columns = (
        context.value(name, default)
        for name, default in (("bits", 4), ("block_size", None), ("N", None), ("K", None))
    )
    if bits not in _OF_BITS:
        raise Blocked(f"its weights have {bits} bits, and DequantizeLinear takes 4 or 8 of them")
    if context.input(4):
        raise Blocked("its g_idx puts rows into blocks in any order, which no other operator does")
    if context.value("accuracy_level", 0) == _IN_INT8:
        raise Blocked("its accuracy_level is 4: it rounds its data to int8 in each block")
    context = context.at(max(context.op.opset, 21))
    op, blocks = context.op, -(-columns // block)
    data, packed, scales, zeros, _, bias = (context.input(index) for index in range(6))
    weights = _unpacked(context, packed, bits, (rows, blocks * block))
    if zeros and context.elem_type(zeros) != TensorProto.UINT8:
        raise Blocked("its zero points are floats, and those of DequantizeLinear are integers")
    if zeros:
        zeros = _unpacked(context, zeros, bits, (rows, blocks))
    else:
        middle = np.full((rows, blocks), 1 << (bits - 1), numpy_dtype(_OF_BITS[bits]))
        zeros = context.array(middle, "zero_point")
    known = context.constant(scales)
    if known is None:
        shaped = op.Reshape(scales, context.array([rows, blocks], "shape"))
    else:
        shaped = context.array(known.reshape(rows, blocks), "scale")
    found = op.DequantizeLinear(weights, shaped, zeros, axis=1, block_size=block)
    if blocks * block > columns:
        bounds = [context.array([number], "bound") for number in (0, columns, 1)]
        found = op.Slice(found, bounds[0], bounds[1], bounds[2])
    turned = op.Transpose(found, perm=[1, 0])
    if bias:
        context.replace("Add", [op.MatMul(data, turned), bias], keep=())
    else:
        context.replace("MatMul", [data, turned], keep=())


def _unpacked(context: Context, packed: Value, bits: int, dims: tuple[int, int]) -> Value:
    """Return a constant of uint4 or uint8 that is packed in bytes, the lower half first.

    Each row is filled to whole bytes.
    """
    known = context.constant(packed)
    if known is None:
        tensor = context.tensor(packed)
        if tensor is None or (bits == 4 and dims[1] % 2):
            raise Blocked(
                f"{packed!r} is not constant, and nothing else unpacks it",
                "make its weights initializers",
            )
        return context.taken_for(tensor, _OF_BITS[bits], dims)
    numbers = known.reshape(dims[0], -1)
    if bits == 4:
        numbers = np.stack([numbers & 15, numbers >> 4], axis=-1).reshape(dims[0], -1)
    numbers = np.ascontiguousarray(numbers[:, : dims[1]])
    return context.array(numbers.astype(numpy_dtype(_OF_BITS[bits])), "weights")
