"""MatMul of integers below opset 9, which brought them."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import INTEGERS, INTEGERS_OF_64_BITS
from onnxreduce_cli.emit.sizes import dims_of
from onnxreduce_cli.steps.registry import down


@down("MatMul", 9, "integers in parts, the products of which double holds")
def matmul_of_integers(context: Context) -> None:
    """``MatMul(x, y)`` of int32 becomes ``x0 * y0 + (x0 * y1 + x1 * y0) * 65536``, with
    ``x = x0 + x1 * 65536`` and products that are MatMuls of doubles.

    What is higher wraps, as it does in the integers. The parts have 16 bits where no more than
    2**21 products are added, else 11, for up to 2**31.
    """
    op = context.op
    given = context.elem_type(context.input(0))
    if given not in INTEGERS:
        return
    bits = 16 if _length(context) <= 1 << 21 else 11
    count = -(-(64 if given in INTEGERS_OF_64_BITS else 32) // bits)
    unit = context.scalar(2**bits, "unit")
    first, second = (_parts(context, name, count, unit) for name in context.node.input)
    total = ""
    for place in reversed(range(count)):
        # From the highest down: what there is so far moves up, what belongs here is added.
        if total:
            total = op.Mul(total, unit)
        for index in range(place + 1):
            product = op.MatMul(first[index], second[place - index])
            part = cast(context, product, TensorProto.INT64)
            total = op.Add(total, part) if total else part
    context.replace("Cast", [total], to=given)


def _length(context: Context) -> int:
    """The number of products that are added for each element, or an upper bound of it."""
    for name, axis in ((context.input(0), -1), (context.input(1), -2)):
        dims = dims_of(context, name)
        dim = dims[max(axis, -len(dims))] if dims else None
        if isinstance(dim, int):
            return dim
    return 1 << 31


def _parts(context: Context, name: str, count: int, unit: str) -> list[str]:
    """Numbers in parts, the lowest first, each less than `unit` and of their sign; in double."""
    op = context.op
    rest = cast(context, name, TensorProto.INT64)
    parts = []
    for _ in range(count - 1):
        high = op.Div(rest, unit)
        parts.append(op.Sub(rest, op.Mul(high, unit)))
        rest = high
    return [cast(context, part, TensorProto.DOUBLE) for part in (*parts, rest)]
