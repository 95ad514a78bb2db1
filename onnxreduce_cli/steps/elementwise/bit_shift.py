"""BitShift: introduced at opset 11; 28 allowed signed integers and amounts out of range."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.model.graph.values import iinfo, numpy_dtype
from onnxreduce_cli.steps.registry import down, introduced


@down("BitShift", 28, "signed integers shifted as unsigned ones; amounts kept in range by Where")
def shifts_in_range(context: Context) -> None:
    """``BitShift(x, y)`` becomes ``Where(y < bits, BitShift(x, Where(y < bits, y, 0)), 0)``.

    A signed x is shifted to the left by way of the unsigned integer of the same bits. To the right
    a negative one is ``-1 - BitShift(-1 - x, y)``, which fills up with ones. Short ones are shifted
    in 32 bits, which ONNX Runtime can.
    """
    op = context.op
    data, amounts, output = context.input(0), context.input(1), context.node.output[0]
    elem_type = context.need_elem_type(data, "signed integers came with opset 28")
    dtype = numpy_dtype(elem_type)
    if dtype.kind == "u":
        _shift(context, data, amounts, elem_type, dtype.itemsize * 8, [output])
        return
    long = elem_type == TensorProto.INT64
    signed = TensorProto.INT64 if long else TensorProto.INT32
    unsigned = TensorProto.UINT64 if long else TensorProto.UINT32
    whole = data if elem_type == signed else cast(context, data, signed)
    negative, ones = "", context.scalar(-1, "ones", signed)
    if context.value("direction") == "RIGHT":
        negative = op.Less(whole, context.scalar(0, "zero", signed))
        inverted = op.Sub(ones, whole)
        whole = op.Where(negative, inverted, whole)
    whole, amounts = (cast(context, name, unsigned) for name in (whole, amounts))
    shifted = _shift(context, whole, amounts, unsigned, dtype.itemsize * 8)
    if not negative:
        cast(context, shifted, elem_type, [output])  # It cuts off what is too high.
        return
    shifted = cast(context, shifted, signed)
    inverted = op.Sub(ones, shifted)
    outputs = [output] if elem_type == signed else None
    result = op.Where(negative, inverted, shifted, outputs=outputs)
    if elem_type != signed:
        cast(context, result, elem_type, [output])


def _shift(
    context: Context,
    data: str,
    amounts: str,
    elem_type: int,
    bits: int,
    outputs: list[str] | None = None,
) -> str:
    """Shift unsigned integers by amounts that may be out of range, which gives 0.

    Args:
        context: the context of the node.
        data: the integers.
        amounts: the amounts, of the same dtype.
        elem_type: that dtype.
        bits: amounts from this number on are out of range.
        outputs: the name of the result; by default a new one.

    Returns:
        the name of the result, of dtype `elem_type`.
    """
    op = context.op
    constant = context.constant(amounts)
    outputs = outputs or [context.fresh("shifted")]
    if constant is not None and (constant < bits).all():
        context.replace(inputs=[data, amounts], outputs=outputs)
        return outputs[0]
    zero = context.scalar(0, "zero", elem_type)
    inside = op.Less(amounts, context.scalar(bits, "bits", elem_type))
    safe = op.Where(inside, amounts, zero)
    shifted = context.replace(inputs=[data, safe], outputs=[context.fresh("in_range")]).output[0]
    return op.Where(inside, shifted, zero, outputs=outputs)


@introduced("BitShift", 11, "a product with, or a quotient by, a power of two")
def bit_shift(context: Context) -> None:
    """``BitShift<direction="LEFT">(x, y)`` becomes ``Mul(x, Gather([1, 2, 4, ...], y))``, computed
    in uint64; to the right it is a Div.
    """
    op = context.op
    elem_type = context.need_elem_type(context.input(0), "it says how many bits there are")
    width = iinfo(numpy_dtype(elem_type)).bits
    powers = context.array(2 ** np.arange(width, dtype=np.uint64), "powers")
    indices = cast(context, context.input(1), TensorProto.INT64)
    data = context.input(0)
    if elem_type != TensorProto.UINT64:
        data = cast(context, data, TensorProto.UINT64)
    factors = op.Gather(powers, indices, axis=0)
    op_type = "Mul" if context.value("direction") == "LEFT" else "Div"
    shifted = op.emit(op_type, data, factors)
    context.replace("Cast", [shifted], keep=(), to=elem_type)
