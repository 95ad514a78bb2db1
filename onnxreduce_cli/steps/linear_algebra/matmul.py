"""MatMul of integers below opset 9, which allowed them."""

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
    elem_type = context.elem_type(context.input(0))
    if elem_type not in INTEGERS:
        return
    bits = 16 if _inner_length(context) <= 1 << 21 else 11
    count = -(-(64 if elem_type in INTEGERS_OF_64_BITS else 32) // bits)
    unit = context.scalar(2**bits, "unit")
    first, second = (_parts(context, name, count, unit) for name in context.node.input)
    total = ""
    for position in reversed(range(count)):
        # From the highest part down: the sum so far is multiplied by the unit, then added to.
        if total:
            total = op.Mul(total, unit)
        for index in range(position + 1):
            product = op.MatMul(first[index], second[position - index])
            part = cast(context, product, TensorProto.INT64)
            total = op.Add(total, part) if total else part
    context.replace("Cast", [total], to=elem_type)


def _inner_length(context: Context) -> int:
    """Return the number of products that are summed for each element, or an upper bound of it."""
    for name, axis in ((context.input(0), -1), (context.input(1), -2)):
        dims = dims_of(context, name)
        dim = dims[max(axis, -len(dims))] if dims else None
        if isinstance(dim, int):
            return dim
    return 1 << 31


def _parts(context: Context, name: str, count: int, unit: str) -> list[str]:
    """Return integers as sums of parts times powers of `unit`, the lowest part first.

    Args:
        context: the context of the node.
        name: the integers, of any shape.
        count: the number of parts.
        unit: an int64 scalar; all parts but the highest are less than it.

    Returns:
        the parts, double in the integers' shape and of their signs.
    """
    op = context.op
    rest = cast(context, name, TensorProto.INT64)
    parts = []
    for _ in range(count - 1):
        high = op.Div(rest, unit)
        parts.append(op.Sub(rest, op.Mul(high, unit)))
        rest = high
    return [cast(context, part, TensorProto.DOUBLE) for part in (*parts, rest)]
