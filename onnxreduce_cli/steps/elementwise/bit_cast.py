"""BitCast below opset 26, which introduced it: bits separated and put together by arithmetic."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import reduced, unsqueezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import Array
from onnxreduce_cli.model.graph.values import dtype_name, numpy_dtype
from onnxreduce_cli.steps.registry import introduced

#: The signed integers by their bits.
_SIGNED: dict[int, int] = {
    8: TensorProto.INT8,
    16: TensorProto.INT16,
    32: TensorProto.INT32,
    64: TensorProto.INT64,
}
#: The number of bits of dtypes of less than a byte; by name, as an older onnx lacks some of them.
_NARROW = {"int4": 4, "uint4": 4, "float4e2m1": 4, "int2": 2, "uint2": 2}
#: Floats with their bits for exponent and mantissa.
_FLOATS: dict[int, tuple[int, int]] = {
    TensorProto.FLOAT16: (5, 10),
    TensorProto.BFLOAT16: (8, 7),
    TensorProto.FLOAT: (8, 23),
    TensorProto.DOUBLE: (11, 52),
}
#: Floats of a byte or less. In the second group no two NaNs have different bits.
_SMALL = ("float8e4m3fn", "float8e5m2")
_ONE_NAN = ("float4e2m1", "float8e4m3fnuz", "float8e5m2fnuz", "float8e8m0")


@introduced(
    "BitCast",
    26,
    "a Cast between integers; of and to floats put together and taken apart by arithmetic",
    blocks="it asks for the bits of a float that may be NaN, or takes or gives complex numbers",
)
def bit_cast(context: Context) -> None:
    """``BitCast<to=int32>(x)`` of uint32 becomes ``Cast<to=int32>(x)``, which keeps the bits.

    A float is ``significand * 2 ** exponent``, both gathered from the integer's bits; one of a
    byte is gathered from all that there are. Any NaN is as good as another for whoever reads it
    as a float; whoever reads bits needs the right one, so of floats only those with one NaN at
    most are read.
    """
    source_type = context.need_elem_type(context.input(0), "its bits depend on it")
    to = int(context.value("to"))
    for elem_type in (source_type, to):
        if elem_type in (TensorProto.COMPLEX64, TensorProto.COMPLEX128):
            raise Blocked(
                f"nothing before opset 26 takes {dtype_name(elem_type)} apart or puts it together",
                "choose opset 26 or later",
            )
    name: str = context.input(0)
    if source_type == to:
        context.replace("Identity", keep=())
        return
    if dtype_name(source_type) in _ONE_NAN:
        name = _code(context, name, source_type)
    elif source_type in _FLOATS or dtype_name(source_type) in _SMALL:
        raise Blocked(
            f"it gives the bits of {dtype_name(source_type)}, and nothing before opset 26 gives "
            "those of a NaN",
            "choose opset 26 or later",
        )
    if dtype_name(to) in _SMALL + _ONE_NAN:
        _from_table(context, name, to)
    elif to in _FLOATS:
        _put_together(context, name, to)
    else:
        context.replace("Cast", [name], keep=(), to=to)


def _all_of(elem_type: int) -> Array:
    """Return all numbers of a dtype of a byte or less in the order of their bits.

    Returns:
        float of shape [2 ** bits].
    """
    count = 2 ** _NARROW.get(dtype_name(elem_type), 8)
    numbers: Array = np.arange(count, dtype=np.uint8).view(numpy_dtype(elem_type))
    return numbers.astype(np.float32)


def _from_table(context: Context, name: str, to: int) -> None:
    """Replace the node by a Gather of the floats of a byte or less that integers have the bits of.

    Args:
        context: the context of the node.
        name: the integers, of as many bits as `to`; negative ones count from the end of the table.
        to: the dtype of the result.
    """
    indices = cast(context, name, TensorProto.INT64)
    table = context.array(_all_of(to), "numbers")
    number = context.op.Gather(table, indices, axis=0)
    # Nothing is to be rounded, infinities included.
    dtype = dtype_name(to)
    exactly = {"round_mode": "down"} if dtype == "float8e8m0" else {"saturate": 0}
    context.replace("Cast", [number], keep=(), to=to, **({} if dtype in _NARROW else exactly))


def _code(context: Context, name: str, elem_type: int) -> str:
    """Return the bits of floats of a byte or less as numbers: how many smaller floats there are.

    Args:
        context: the context of the node.
        name: the floats.
        elem_type: their dtype, which has no two NaNs of different bits.

    Returns:
        int64 in the shape of the floats.
    """
    op = context.op
    numbers = _all_of(elem_type)
    signed = dtype_name(elem_type) != "float8e8m0"
    number = cast(context, name, TensorProto.FLOAT)
    positive = numbers[: len(numbers) // 2] if signed else numbers[:-1]
    number_of = len(positive)
    context.warn(f"each element is compared with {number_of} numbers: memory for all those pairs")
    size = op.Abs(number)
    below = op.Less(context.array(positive, "numbers"), unsqueezed(context, size, [-1]))
    code = reduced(context, "ReduceSum", cast(context, below, TensorProto.INT64), [-1], keep=False)
    if signed:
        # So that a negative zero counts as negative.
        inverse = op.Div(context.scalar(1.0, "one"), number)
        negative = op.Less(inverse, context.scalar(0.0, "zero"))
        sign = cast(context, negative, TensorProto.INT64)
        half = op.Mul(sign, context.scalar(len(positive), "half"))
        code = op.Add(code, half)
    nan = np.flatnonzero(np.isnan(numbers))
    if len(nan):
        is_nan = op.IsNaN(number)
        code = op.Where(is_nan, context.scalar(int(nan[0]), "nan"), code)
    return code


def _put_together(context: Context, name: str, to: int) -> None:
    """Replace the node by what computes the floats that integers have the bits of.

    They are computed in double, which represents each exactly.

    Args:
        context: the context of the node.
        name: the integers, of as many bits as `to`.
        to: the dtype of the result, a float of 16 to 64 bits.
    """
    op = context.op
    exponent_bits, mantissa_bits = _FLOATS[to]
    width = 1 + exponent_bits + mantissa_bits
    whole = cast(context, cast(context, name, _SIGNED[width]), TensorProto.INT64)
    negative = op.Less(whole, context.scalar(0, "zero"))
    lowest = context.scalar(-(2 ** (width - 1)), "lowest")
    without = op.Sub(whole, lowest)
    bits = op.Where(negative, without, whole)

    unit = context.scalar(2**mantissa_bits, "unit")
    exponent = op.Div(bits, unit)
    exponent_part = op.Mul(exponent, unit)
    mantissa = cast(context, op.Sub(bits, exponent_part), TensorProto.DOUBLE)
    fraction = op.Mul(mantissa, context.array(np.array(2.0**-mantissa_bits), "part"))

    # 1 and the fraction, or the fraction alone with the lowest exponent; the highest is infinite.
    exponents = np.arange(2**exponent_bits)
    bias = 2 ** (exponent_bits - 1) - 1
    scales = np.append(np.ldexp(1.0, np.maximum(exponents[:-1], 1) - bias), np.inf)
    leading_digits = np.minimum(exponents, 1).astype(np.float64)
    leading, scale = (
        op.Gather(context.array(table, hint), exponent, axis=0)
        for table, hint in ((leading_digits, "wholes"), (scales, "scales"))
    )
    significand = op.Add(leading, fraction)
    size = op.Mul(significand, scale)
    opposite = op.Neg(size)
    number = op.Where(negative, opposite, size)
    infinite = context.scalar((2**exponent_bits - 1) * 2**mantissa_bits, "infinite")
    is_nan = op.Greater(bits, infinite)
    inputs = [is_nan, context.array(np.array(np.nan), "nan"), number]
    if to == TensorProto.DOUBLE:
        context.replace("Where", inputs, keep=())
    else:
        context.replace("Cast", [op.Where(*inputs)], keep=(), to=to)
