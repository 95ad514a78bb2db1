"""Round below opset 11, which introduced it."""

from __future__ import annotations

from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.model.graph.values import finfo, numpy_dtype
from onnxreduce_cli.steps.registry import introduced


@introduced("Round", 11, "Floor of the absolute value, and 1 more where that is nearer or even")
def round_(context: Context) -> None:
    """``Round(x)`` becomes ``Mul(Where(a < 2 ** 23, r, a), sign)`` with ``a = Abs(x)`` and r the
    one of ``Floor(a)`` and ``Floor(a) + 1`` that is nearer, or even.

    The sign is -1 where x or its reciprocal is negative: zeros keep theirs.
    """
    op = context.op
    data = context.input(0)
    elem_type = context.need_elem_type(data, "it is compared with numbers of it")
    zero, half, one, two = (
        context.scalar(value, hint, elem_type)
        for value, hint in ((0, "zero"), (0.5, "half"), (1, "one"), (2, "two"))
    )
    size = op.Abs(data)
    # From this number on floats have no fraction, and infinity less infinity is NaN.
    most = 2.0 ** finfo(numpy_dtype(elem_type)).nmant
    limit = context.scalar(most, "without_fraction", elem_type)
    small = op.Less(size, limit)
    kept = op.Where(small, size, zero)
    lower = op.Floor(kept)
    fraction = op.Sub(kept, lower)
    halved = op.Mul(lower, half)
    rest = op.Sub(halved, op.Floor(halved))
    odd = op.Greater(rest, zero)
    below_half = op.Less(fraction, half)
    tie = op.And(odd, op.Not(below_half))
    nearer = op.Greater(fraction, half)
    more = cast(context, op.Or(tie, nearer), elem_type)
    rounded = op.Add(lower, more)
    magnitude = op.Where(small, rounded, size)
    sides = [data, op.Reciprocal(data)]
    negative = op.Or(*[op.Less(side, zero) for side in sides])
    twice = op.Mul(cast(context, negative, elem_type), two)
    context.replace("Mul", [magnitude, op.Sub(one, twice)], keep=())
