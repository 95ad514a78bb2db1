"""Trilu below opset 14 and EyeLike below opset 9, which introduced them."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import unsqueezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import Number, is_small
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.sizes import arange, size_of
from onnxreduce_cli.steps.registry import introduced


@introduced("Trilu", 14, "a mask and Where", blocks=f"it is of strings, or {NO_COUNTING}")
def trilu(context: Context) -> None:
    """``Trilu(x, k)`` becomes ``Where(mask, x, 0)``: a constant mask where the last two dimensions
    and k are known and the mask is small, else ``Not(Less(columns - rows, k))``.
    """
    op = context.op
    data = context.input(0)
    elem_type = context.need_elem_type(data, "what is left out is a zero of it")
    if elem_type == TensorProto.STRING:
        raise Blocked(
            "its data are strings, for which there is no zero", "choose opset 14 or later"
        )
    upper = bool(context.value("upper", 1))
    k = context.constant(context.input(1)) if context.input(1) else np.zeros(1, np.int64)
    rows, columns = (size_of(context, data, axis) for axis in (-2, -1))
    sizes = _constant_sizes(rows, columns)
    if k is not None and sizes is not None:
        diagonals = np.arange(sizes[1]) - np.arange(sizes[0])[:, None]
        bound = int(k.reshape(-1)[0])
        mask = context.array(diagonals >= bound if upper else diagonals <= bound, "mask")
    else:
        row, column = (arange(context, number) for number in (rows, columns))
        difference = op.Sub(column, unsqueezed(context, row, [1]))
        bound_name = context.input(1) or context.array([0], "zero")
        beyond = op.emit("Less" if upper else "Greater", difference, bound_name)
        mask = op.Not(beyond)
    context.replace("Where", [mask, data, context.scalar(0, "zero", elem_type)], keep=())


@introduced("EyeLike", 9, "a constant, or where row and column are the same", blocks=NO_COUNTING)
def eye_like(context: Context) -> None:
    """``EyeLike<k=1>(x)`` with x of shape [2, 3] becomes ``Constant<[[0, 1, 0], [0, 0, 1]]>``.

    Where the shape is not known, or large, it is ``Cast(Equal(rows + 1, columns))``.
    """
    op = context.op
    data, k = context.input(0), context.value("k", 0)
    to = context.value("dtype") or context.need_elem_type(data, "the result has it")
    rows, columns = (size_of(context, data, axis) for axis in (0, 1))
    sizes = _constant_sizes(rows, columns)
    if sizes is not None:
        eye = np.eye(*sizes, k=k, dtype=np.int64)
        context.replace("Identity", [cast(context, context.array(eye, "eye"), to)], keep=())
        return
    row, column = (arange(context, number) for number in (rows, columns))
    shifted = unsqueezed(context, op.Add(row, context.array([k], "k")), [1])
    diagonal = op.Equal(shifted, column)
    context.replace("Cast", [diagonal], keep=(), to=to)


def _constant_sizes(rows: Number, columns: Number) -> tuple[int, int] | None:
    """Return the sizes of a matrix that is known and small enough for a constant, else None."""
    if isinstance(rows, int) and isinstance(columns, int) and is_small(rows, columns):
        return rows, columns
    return None
