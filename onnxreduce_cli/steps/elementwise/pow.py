"""Pow: 12 let base and exponent have different types, and be integers."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import INTEGERS
from onnxreduce_cli.emit.node_facts import Array
from onnxreduce_cli.model.graph.values import exactly_in
from onnxreduce_cli.steps.registry import down

_SMALL = frozenset({TensorProto.INT8, TensorProto.INT16, TensorProto.UINT8, TensorProto.UINT16})


@down(
    "Pow",
    12,
    "an exponent of another type cast to that of the base, or both computed in a wider one; of "
    "int64 and whole exponents the base squared and multiplied",
    blocks="whole exponents of int64 are not known, or some are negative",
)
def pow_in_one_dtype(context: Context) -> None:
    """``Pow(x, [2])`` with an int64 exponent becomes ``Pow(x, [2.0])`` in the type of x.

    Where that type cannot represent the exponent both are cast to one that represents both, and the
    result back. Integers are computed in double, which represents every result that does not
    overflow, except of 64 bits: of these a whole power is a product.
    """
    base, exponent = context.input(0), context.input(1)
    purpose = "before opset 12 base and exponent have one type"
    base_type = context.need_elem_type(base, purpose)
    exponent_type = context.need_elem_type(exponent, purpose)
    if base_type == exponent_type and base_type not in INTEGERS:
        return
    constant = context.constant(exponent)
    if base_type not in INTEGERS and constant is not None:
        same = exactly_in(constant, base_type)
        if same is not None:
            context.replace(inputs=[base, context.array(same, "exponent")])
            return
    if constant is not None and constant.ndim == 0 and constant == 2:
        context.replace("Mul", [base, base], keep=())
        return
    if base_type == TensorProto.INT64 and exponent_type in INTEGERS:
        if constant is None or np.any(constant < 0):
            context.require_specialised("what is known of its exponent")
            raise Blocked(
                f"its exponents {exponent!r} are not known or some are negative, and before opset "
                "12 only a Loop computes such powers of int64",
                "choose opset 12 or later, or make them constant",
            )
        context.replace("Identity", [constant_power(context, base, constant)], keep=())
        return
    narrow = {TensorProto.FLOAT16, TensorProto.FLOAT, *_SMALL}
    working = TensorProto.FLOAT if {base_type, exponent_type} <= narrow else TensorProto.DOUBLE
    inputs = [
        name if dtype == working else cast(context, name, working)
        for name, dtype in ((base, base_type), (exponent, exponent_type))
    ]
    if base_type == working:
        context.replace(inputs=inputs)
        return
    result = context.replace(inputs=inputs, outputs=[context.fresh("power")]).output[0]
    cast(context, result, base_type, [context.node.output[0]])


def constant_power(context: Context, base: str, exponent: Array) -> str:
    """Return powers of int64 by constant exponents: products of the squares at the exponents' bits.

    Args:
        context: the context of the node.
        base: the bases, int64.
        exponent: the exponents, none negative, of a shape that broadcasts with the bases'.
    """
    op = context.op
    one = context.scalar(1, "one")
    bits = int(exponent.max(initial=0)).bit_length()
    result, square = "", base
    for bit in range(max(bits, 1)):
        if bit:
            square = op.Mul(square, square)
        has_bit = exponent.astype(np.uint64) & np.uint64(1 << bit) != 0
        mask = context.array(has_bit.astype(np.int64), "bit")
        more = op.Sub(square, one)
        factor = op.Add(op.Mul(more, mask), one)
        result = op.Mul(result, factor) if result else factor
    return result
