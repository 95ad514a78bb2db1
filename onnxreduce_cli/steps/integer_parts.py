"""64-bit integers where neither arithmetic takes them nor a float holds them all.

Before opset 6 only Cast, reductions and operators that move elements take them: so a sum is the
ReduceSum of a stack, and what takes floats alone gets two parts that double holds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.model.values import dtype_name
from onnxreduce_cli.steps.births import dims_of, unsqueezed
from onnxreduce_cli.steps.casts import cast
from onnxreduce_cli.steps.context import Context
from onnxreduce_cli.steps.loops import Body, Carried, loop

INTEGERS_OF_64_BITS = frozenset({TensorProto.INT64, TensorProto.UINT64})

_UNIT = 2.0**32


def with_number(context: Context, op_type: str, name: str, number: float, hint: str = "") -> str:
    """``op_type(name, number)`` in double, whatever the shape."""
    constant = context.scalar(number, "number", TensorProto.DOUBLE)
    broadcast = 1 if context.far < 7 else None
    return context.emit(op_type, [name, constant], hint, broadcast=broadcast)


def parts(context: Context, name: str) -> tuple[str, str]:
    """A 64-bit integer as ``high * 2**32 + low``, both in double, low from 0 to below 2**32.

    Low is what a Cast to uint32 leaves. Double rounds the rest to within 2**11, so that half a unit
    more and Floor find high.
    """
    known = context.constant(name)
    if known is not None:
        halves = (known >> 32, known & (2**32 - 1))
        high, low = (context.array(half.astype(np.float64), "part") for half in halves)
        return high, low
    low = cast(context, cast(context, name, TensorProto.UINT32), TensorProto.DOUBLE)
    rest = context.emit("Sub", [cast(context, name, TensorProto.DOUBLE), low], "rest")
    units = with_number(context, "Mul", rest, 1 / _UNIT, "units")
    high = context.emit("Floor", [with_number(context, "Add", units, 0.5, "rounded")], "high")
    return high, low


def joined(context: Context, high: str, low: str, elem_type: int, output: str) -> None:
    """The 64-bit integer of two parts, as the node's output."""
    scaled = with_number(context, "Mul", high, _UNIT, "scaled")
    whole = [cast(context, part, elem_type) for part in (scaled, low)]
    stack = stacked(context, whole, elem_type)
    context.emit("ReduceSum", [stack], outputs=[output], axes=[0], keepdims=0)


def difference(context: Context, first: str, second: str) -> str:
    """A double of the sign that the difference of two 64-bit integers has, 0 if they are equal.

    A difference of the high parts outweighs any of the low ones, whatever is rounded.
    """
    pairs = zip(parts(context, first), parts(context, second), strict=True)
    apart = [context.emit("Sub", list(pair), "apart") for pair in pairs]
    weighed = with_number(context, "Mul", apart[0], 2 * _UNIT, "weighed")
    return context.emit("Add", [weighed, apart[1]], "difference")


def stacked(context: Context, names: Sequence[str], elem_type: int) -> str:
    """Tensors of one shape, one behind the other along a new first dimension.

    Before opset 4 Concat takes floats only, and they are what the rounds of a Loop give.
    """
    if context.target >= 4:
        rows = [unsqueezed(context, name, [0]) for name in names]
        return context.emit("Concat", rows, "stack", axis=0)
    carried = [Carried(name, elem_type, dims_of(context, name)) for name in names]

    def turned(body: Body) -> tuple[list[str], list[Carried]]:
        first, *others = body.values
        given = body.emit("Identity", [first], dtype_name(elem_type))
        return [*others, first], [Carried(given, elem_type, carried[0].dims)]

    inputs, graph = loop(context, context.array([len(names)], "rounds"), carried, turned)
    outputs = [context.fresh("left") for _ in names] + [context.fresh("stack")]
    context.emit("Loop", inputs, outputs=outputs, body=graph)
    return outputs[-1]
