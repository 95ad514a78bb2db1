"""MatMulInteger and ConvInteger below opset 10, computed in wider dtypes.

Zero points are subtracted in int32. Sums are exact, in int32, double, or float up to 2**24.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper

from onnxreduce_cli.emit.axes import unsqueezed
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.sizes import along_axis, dims_of, static_dims
from onnxreduce_cli.steps.quantization.arithmetic import less_zero_point
from onnxreduce_cli.steps.registry import introduced

#: Up to here a float represents every whole number, so sums of them are exact in any order.
_WHOLE = 2**24
#: The greatest difference of two 8-bit numbers.
_RANGE = 255


@introduced("MatMulInteger", 10, "MatMul in int32, below opset 9 in double")
def mat_mul_integer(context: Context) -> None:
    """``MatMulInteger(a, b, a_zero, b_zero)`` becomes
    ``MatMul(Cast<int32>(a) - Cast<int32>(a_zero), Cast<int32>(b) - Cast<int32>(b_zero))``.

    Below opset 9 MatMul takes floats only; a double represents every sum that an int32 does.
    """
    op = context.op
    data, first_zero = context.input(0), context.input(2)
    first = less_zero_point(context, data, first_zero and for_each_row(context, first_zero, data))
    if first_zero and context.rank(data) is None:
        first = op.Reshape(first, op.Shape(data))
    # One zero point for each column is in line already.
    second = less_zero_point(context, context.input(1), context.input(3))
    if context.reaches(9):
        context.replace("MatMul", [first, second], keep=())
        return
    factors = [cast(context, name, TensorProto.DOUBLE) for name in (first, second)]
    product = op.MatMul(*factors)
    context.replace("Cast", [product], keep=(), to=int(TensorProto.INT32))


def for_each_row(context: Context, name: str, data: str) -> str:
    """Return zero points or scales of a matrix in a shape that broadcasts to it.

    Those of shape [n] become [n, 1]. One for the whole matrix, and those of two or more
    dimensions, stay as they are. Of unknown rank they get a dimension of 1 if they have one.

    Args:
        context: the product.
        name: the zero points or scales.
        data: the matrix, or a stack of them.
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


@introduced("ConvInteger", 10, "Conv of whole floats, below 2**24 in all")
def conv_integer(context: Context) -> None:
    """``ConvInteger(x, w, x_zero, w_zero)`` becomes
    ``Cast<int32>(Conv(Cast<float>(x - x_zero), Cast<float>(w - w_zero)))``.

    With many weights w is split in two, or x too, and so are the sums; with very many, or nobody
    knows how many, it is a Conv of doubles.
    """
    context = context.at(10)  # Slice took computed ends then.
    x, w, x_zero, w_zero = (context.input(index) for index in range(4))
    total = convolution_sums(context, x, x_zero, w, w_zero)
    context.replace("Identity", [total], keep=())


def convolution_sums(context: Context, x: str, x_zero: str, w: str, w_zero: str) -> str:
    """Return the sums of a convolution of quantized tensors, in int32.

    They are exact: whole floats of at most 2**24, or doubles. To stay below that the weights are
    split in 4 bits and the rest where there are many of them, and with more of them the data too.
    """
    weights = less_zero_point(context, w, w_zero and for_each_channel(context, w_zero, w, 0))
    numbers = less_zero_point(context, x, x_zero)
    attributes: dict[str, Any] = {item.name: item for item in context.node.attribute}
    dims = dims_of(context, w)
    counts = None if dims is None else static_dims(dims[1:])
    most = None if counts is None else math.prod(counts)

    def sums_of(data: str, kernel: str) -> str:
        sums = context.op.Conv(data, kernel, **attributes)
        if most is None or most * 16 * 16 > _WHOLE:
            sums = cast(context, sums, TensorProto.INT64)  # From which an int32 wraps.
        return cast(context, sums, TensorProto.INT32)

    if most is None or most * 16 * 16 > _WHOLE:
        return sums_of(*(cast(context, name, TensorProto.DOUBLE) for name in (numbers, weights)))
    data, kernels = (cast(context, name, TensorProto.FLOAT) for name in (numbers, weights))
    if most * _RANGE * _RANGE <= _WHOLE:
        return sums_of(data, kernels)
    nibbles = _nibbles(context, kernels)
    if most * _RANGE * 16 <= _WHOLE:
        return _of_nibbles(context, *(sums_of(data, nibble) for nibble in nibbles))
    return _of_nibbles(
        context,
        *(
            _of_nibbles(context, *(sums_of(part, nibble) for part in _nibbles(context, data)))
            for nibble in nibbles
        ),
    )


def for_each_channel(context: Context, name: str, weights: str, axis: int) -> str:
    """Return numbers, of shape [channels] or [], in a shape that broadcasts along an axis.

    Args:
        context: the convolution.
        name: the numbers.
        weights: the weights of the convolution, of the same rank as its data.
        axis: the axis of the channels.
    """
    op = context.op
    rank, known = context.rank(weights), context.rank(name)
    if known == 0:
        return name
    if rank is None:
        return op.Reshape(name, along_axis(context, weights, axis))
    if known == 1:
        return unsqueezed(context, name, list(range(1, rank - axis)))
    shape = context.array([-1] + [1] * (rank - axis - 1), "shape")
    return op.Reshape(name, shape)


def _nibbles(context: Context, name: str) -> tuple[str, str]:
    """Return low, from 0 to 15, and high of whole floats ``low + 16 * high``, as floats."""
    op = context.op
    sixteen = context.scalar(16.0, "sixteen")
    high = op.Floor(op.Div(name, sixteen))
    return op.Sub(name, op.Mul(high, sixteen)), high


def _of_nibbles(context: Context, low: str, high: str) -> Value:
    """Return ``low + 16 * high`` of two int32 tensors of one shape."""
    op = context.op
    factor = context.scalar(16, "sixteen", TensorProto.INT32)
    return op.Add(low, op.Mul(high, factor))
