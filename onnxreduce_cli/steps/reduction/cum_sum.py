"""CumSum below opset 11, which introduced it, and where a runtime does not take it."""

from __future__ import annotations

import numpy as np

from onnxreduce_cli.emit.axes import non_negative_axes
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import INTEGERS
from onnxreduce_cli.emit.refusals import need_few
from onnxreduce_cli.emit.sizes import known_size, sliced
from onnxreduce_cli.model.graph.values import numpy_dtype
from onnxreduce_cli.steps.registry import instead, introduced

#: The opset that emitted nodes are written in.
_OPSET = 13
#: How many elements are added one after the other, as CumSum does.
_MOST_IN_ORDER = 32


@introduced(
    "CumSum",
    11,
    "Slices along its axis, added up",
    blocks="its axis or the size along that is not known",
)
def cum_sum(context: Context) -> None:
    """``CumSum(x, 1)`` with x of shape [2, 3] becomes ``Concat<axis=1>(a, s, Add(s, c))`` with
    ``s = Add(a, b)``, where a, b and c are the Slices of x along axis 1.

    More than 32 are added to the sums before them 1, 2, 4, ... elements at a time.
    """
    axis, size = _axis_and_size(context)
    need_few(size, "it sums over")
    context = context.at(_OPSET)
    data: str = context.input(0)
    if context.value("exclusive", 0) and size:
        data = _moved_on(context, axis, size)
    if size < 2:
        context.replace("Identity", [data], keep=())
    elif size <= _MOST_IN_ORDER:
        _in_order(context, data, axis, size)
    else:
        _by_doubling(context, data, axis, size)


def _axis_and_size(context: Context) -> tuple[int, int]:
    """Return the axis that a CumSum sums over, not negative, and its size.

    Raises:
        Blocked: either is not known.
    """
    data, axis = context.input(0), context.constant(context.input(1))
    if axis is None:
        raise Blocked("its axis is only known at run time", "choose opset 11 or later")
    rank = context.need_rank(data, "its axis is counted from the front")
    (at,) = non_negative_axes((int(axis.reshape(-1)[0]),), rank)
    size = known_size(context, data, at)
    if size is None:
        raise Blocked("the size that it sums over is not known", "fix it: --dim NAME=SIZE")
    return at, size


def _moved_on(context: Context, axis: int, size: int) -> str:
    """Return the data with a 0 before it, and without its last element; in reverse the other way
    round.
    """
    rank, reverse = context.rank(context.input(0)) or 0, bool(context.value("reverse", 0))
    pads = [0] * (2 * rank)
    pads[axis + rank if reverse else axis] = 1
    padded = context.op.Pad(context.input(0), context.array(pads, "pads"))
    return sliced(context, padded, int(reverse), size + int(reverse), axis)


def _in_order(context: Context, data: str, axis: int, size: int) -> None:
    """Add one element after the other."""
    total = ""
    totals: list[str] = []
    reverse = bool(context.value("reverse", 0))
    for index in reversed(range(size)) if reverse else range(size):
        own = sliced(context, data, index, index + 1, axis)
        total = context.op.Add(total, own) if total else own
        totals.append(total)
    context.replace("Concat", totals[::-1] if reverse else totals, keep=(), axis=axis)


def _by_doubling(context: Context, data: str, axis: int, size: int) -> None:
    """Add to each element the one before it, then what is 2 before it, then 4, ..."""
    if context.elem_type(data) not in INTEGERS:
        context.warn(
            "its sums are added in another order: where one overflows on the way, the result may "
            "differ"
        )
    op, reverse = context.op, bool(context.value("reverse", 0))
    total, step = data, 1
    while True:
        first, last = (0, size - step), (step, size)
        more = op.Add(*[sliced(context, total, *ends, axis) for ends in (first, last)])
        whole = sliced(context, total, *((size - step, size) if reverse else (0, step)), axis)
        parts = [more, whole] if reverse else [whole, more]
        step *= 2
        if step >= size:
            context.replace("Concat", parts, keep=(), axis=axis)
            return
        total = op.Concat(*parts, axis=axis)


@instead("CumSum", {"any"}, "written as MatMul with a triangular constant", last=True)
def triangular_product(context: Context) -> None:
    """``CumSum(x, 1)`` with x of shape [2, 3] becomes
    ``MatMul(x, [[1, 1, 1], [0, 1, 1], [0, 0, 1]])``.
    """
    axis, size = _axis_and_size(context)
    need_few(size**2, f"its matrix of {size:,} rows has")
    op, data = context.op, context.input(0)
    elem_type = context.need_elem_type(data, "the constant has it")
    if elem_type not in INTEGERS:
        context.warn_of_infinite(
            "MatMul is not exact where an infinity or NaN is summed: 0 times that is NaN, and so "
            "is each sum along the axis"
        )
    # Element [i, j] says whether element i is a part of sum j.
    matrix = np.triu(np.ones((size, size)), int(bool(context.value("exclusive", 0))))
    if context.value("reverse", 0):
        matrix = matrix.T
    behind = context.need_rank(data, "its axis is counted from the front") - 1 - axis
    if behind == 1:
        rows = context.array(matrix.T.astype(numpy_dtype(elem_type)), "triangle")
        context.replace("MatMul", [rows, data], keep=())
        return
    columns = context.array(matrix.astype(numpy_dtype(elem_type)), "triangle")
    if not behind:
        context.replace("MatMul", [data, columns], keep=())
        return
    perm = [*range(axis), *range(axis + 1, axis + behind + 1), axis]
    product = op.MatMul(op.Transpose(data, perm=perm), columns)
    back = [perm.index(index) for index in range(len(perm))]
    context.replace("Transpose", [product], keep=(), perm=back)
