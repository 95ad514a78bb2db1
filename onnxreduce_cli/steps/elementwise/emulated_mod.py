"""Mod of floats below opset 10, to the last bit."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast, replace_and_cast_back
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.polynomials import clipped
from onnxreduce_cli.model.values import numpy_dtype


def _sign(context: Context, name: str, elem_type: int) -> Value:
    """Return 1 or -1 by the signs of floats of dtype `elem_type`; zeros and NaN stay."""
    op = context.op
    info = np.finfo(numpy_dtype(elem_type))
    size = op.Abs(name)
    limits = float(info.smallest_subnormal), float(info.max)
    return op.Div(name, clipped(context, size, *limits, elem_type))


#: By dtype, shifts up to the largest difference of two exponents, in steps of the bits by which
#: double is more precise.
_SHIFTS: dict[int, range] = {
    TensorProto.FLOAT16: range(1),
    TensorProto.FLOAT: range(0, 280, 28),
}


def fmod_of_floats(context: Context, given: int) -> None:
    """``Mod<fmod=1>(a, b)`` becomes ``r * side`` with ``r = Abs(a)``, from which
    ``s * Floor(r / s)`` is taken for each s of ``b * 2 ** 252``, ``b * 2 ** 224``, ..., b.

    In double nothing of that is rounded: each quotient has as many bits as go with those of b, and
    is further from the next whole number than it could be rounded. Infinite b is made more than a.
    """
    op = context.op
    first, second = context.input(0), context.input(1)
    if given == TensorProto.FLOAT16:
        first, second = (cast(context, name, TensorProto.FLOAT) for name in (first, second))
    finite = float(np.finfo(np.float32).max)
    size = op.Abs(second)
    infinite = op.Greater(size, context.scalar(finite, "number", TensorProto.FLOAT))
    limited = clipped(context, size, 0, finite, TensorProto.FLOAT)
    infinite, divisor = (cast(context, name, TensorProto.DOUBLE) for name in (infinite, limited))
    beyond = op.Mul(infinite, context.scalar(2.0**200, "number", TensorProto.DOUBLE))
    divisor = op.Add(divisor, beyond)
    rest = cast(context, op.Abs(first), TensorProto.DOUBLE)
    for shift in reversed(_SHIFTS[given]):
        step = divisor
        if shift:
            scale = context.scalar(2.0**shift, "number", TensorProto.DOUBLE)
            step = op.Mul(divisor, scale)
        whole = op.Floor(op.Div(rest, step))
        rest = op.Sub(rest, op.Mul(whole, step))
    sides = [cast(context, rest, TensorProto.FLOAT), _sign(context, first, TensorProto.FLOAT)]
    replace_and_cast_back(context, "Mul", sides, given, TensorProto.FLOAT)
