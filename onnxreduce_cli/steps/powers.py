"""Pow: 12 let base and exponent have different types, and be integers."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.model.values import numpy_dtype
from onnxreduce_cli.steps.births import NO_LOOP, dims_of
from onnxreduce_cli.steps.casts import INTEGERS, cast
from onnxreduce_cli.steps.context import Array, Context
from onnxreduce_cli.steps.loops import Body, Carried, loop
from onnxreduce_cli.steps.registry import down

_SMALL = frozenset({TensorProto.INT8, TensorProto.INT16, TensorProto.UINT8, TensorProto.UINT16})


@down(
    "Pow",
    12,
    "an exponent of another type cast to that of the base, or both computed in a wider one; of "
    "int64 and whole exponents the base squared and multiplied",
    blocks=f"whole exponents of int64 are not known, or some negative, and {NO_LOOP}",
)
def one_type(context: Context) -> None:
    """``Pow(x, [2])`` with an int64 exponent becomes ``Pow(x, [2.0])`` in the type of x.

    Where that type cannot hold the exponent both are cast to one that holds both, and the result
    back. Integers are computed in double, which holds every result that does not overflow; 64 bits
    it does not hold, of them a whole power is a product.
    """
    base, exponent = context.input(0), context.input(1)
    purpose = "before opset 12 base and exponent have one type"
    given = context.need_elem_type(base, purpose)
    other = context.need_elem_type(exponent, purpose)
    if given == other and given not in INTEGERS:
        return
    constant = context.constant(exponent)
    if given not in INTEGERS and constant is not None:
        with np.errstate(over="ignore"):
            same = constant.astype(numpy_dtype(given))
        if np.array_equal(same.astype(constant.dtype), constant, equal_nan=other not in INTEGERS):
            context.replace(inputs=[base, context.array(same, "exponent")])
            return
    if constant is not None and constant.ndim == 0 and constant == 2:
        context.replace("Mul", [base, base], keep=())
        return
    if given == TensorProto.INT64 and other in INTEGERS:
        _whole_power(context, other, constant)
        return
    narrow = {TensorProto.FLOAT16, TensorProto.FLOAT, *_SMALL}
    working = TensorProto.FLOAT if {given, other} <= narrow else TensorProto.DOUBLE
    inputs = [
        name if kind == working else cast(context, name, working)
        for name, kind in ((base, given), (exponent, other))
    ]
    if given == working:
        context.replace(inputs=inputs)
        return
    result = context.replace(inputs=inputs, outputs=[context.fresh("power")]).output[0]
    cast(context, result, given, [context.node.output[0]])


def _whole_power(context: Context, other: int, constant: Array | None) -> None:
    """A power of int64 by squaring and multiplying, which wraps where it overflows.

    Where an exponent is negative it is -1, 0 or 1, which double holds; a power of 0 there is what
    the cast of infinity gives.
    """
    base, exponent = context.input(0), context.input(1)
    if constant is not None and np.all(constant >= 0):
        name = _by_known_bits(context, base, constant)
        context.replace("Identity", [name], keep=())
        return
    context.settle("what is known of its exponent")
    if numpy_dtype(other).kind == "u":
        context.replace("Identity", [_by_bits(context, base, exponent, other)], keep=())
        return
    if other != TensorProto.INT64:
        exponent = cast(context, exponent, TensorProto.INT64)
    zero, one = context.scalar(0, "zero"), context.scalar(1, "one")
    negative = cast(context, context.emit("Less", [exponent, zero]), TensorProto.INT64)
    others = context.emit("Sub", [one, negative], "is_not_negative")
    above, below = (
        context.emit("Mul", [exponent, mask], hint)
        for mask, hint in ((others, "above"), (negative, "below"))
    )
    whole = _by_bits(context, base, above, TensorProto.INT64, numpy_dtype(other).itemsize * 8 - 1)
    inputs = [cast(context, name, TensorProto.DOUBLE) for name in (base, below)]
    small = cast(context, context.emit("Pow", inputs, "small"), TensorProto.INT64)
    parts = [
        context.emit("Mul", [power, mask], "part")
        for power, mask in ((whole, others), (small, negative))
    ]
    context.replace("Add", parts, keep=())


def _by_known_bits(context: Context, base: str, exponent: Array) -> str:
    """The product of the base's squares that the bits of the exponents ask for."""
    one = context.scalar(1, "one")
    bits = int(exponent.max(initial=0)).bit_length()
    result, square = "", base
    for bit in range(max(bits, 1)):
        if bit:
            square = context.emit("Mul", [square, square], "square")
        has_bit = exponent.astype(np.uint64) & np.uint64(1 << bit) != 0
        asked = context.array(has_bit.astype(np.int64), "bit")
        more = context.emit("Sub", [square, one], "more")
        factor = context.emit("Add", [context.emit("Mul", [more, asked]), one], "factor")
        result = context.emit("Mul", [result, factor], "power") if result else factor
    return result


def _by_bits(context: Context, base: str, exponent: str, elem_type: int, bits: int = 0) -> str:
    """The same in a Loop, a round for each bit that the exponent may have."""
    one, two = context.scalar(1, "one"), context.scalar(2, "two", elem_type)
    bits = bits or numpy_dtype(elem_type).itemsize * 8
    zero = context.scalar(0, "zero")
    flat = (
        exponent if elem_type == TensorProto.INT64 else cast(context, exponent, TensorProto.INT64)
    )
    zeros = [context.emit("Mul", [name, zero], "zeros") for name in (base, flat)]
    ones = context.emit("Add", [context.emit("Add", zeros, "zeros"), one], "ones")

    def write(body: Body) -> tuple[list[str], list[Carried]]:
        square, power, left = body.values
        half = body.emit("Div", [left, two], "half")
        bit = body.emit("Sub", [left, body.emit("Mul", [half, two])], "bit")
        if elem_type != TensorProto.INT64:
            bit = body.emit("Cast", [bit], "bit", to=int(TensorProto.INT64))
        more = body.emit("Sub", [square, one], "more")
        factor = body.emit("Add", [body.emit("Mul", [more, bit]), one], "factor")
        return [
            body.emit("Mul", [square, square], "square"),
            body.emit("Mul", [power, factor], "power"),
            half,
        ], []

    kinds = ((base, TensorProto.INT64), (ones, TensorProto.INT64), (exponent, elem_type))
    carried = [Carried(name, kind, dims_of(context, name)) for name, kind in kinds]
    inputs, graph = loop(context, context.scalar(bits, "bits"), carried, write)
    outputs = [context.fresh(hint) for hint in ("squares", "power", "left")]
    context.emit("Loop", inputs, outputs=outputs, body=graph)
    return outputs[1]
