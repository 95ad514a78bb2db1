"""AffineGrid: introduced with 20."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import unsqueezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import Term, term
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.sizes import dims_of, range_of
from onnxreduce_cli.steps.registry import introduced

_DOUBLE = TensorProto.DOUBLE


@introduced(
    "AffineGrid",
    20,
    "a grid times theta",
    blocks=f"its number of dimensions or its dtype is not known, or {NO_COUNTING}",
)
def affine_grid(context: Context) -> None:
    """``AffineGrid(theta, [n, c, 2, 3])`` becomes
    ``Reshape(MatMul(grid, Transpose<perm=[0, 2, 1]>(theta)), [0, 2, 3, 2])`` with the constant
    ``grid`` of shape [6, 3]: x, y and 1 for each point.

    Of a size that is only known at run time the grid is computed, and has its shape from the
    beginning.
    """
    op = context.op
    theta, rank = context.input(0), _rank(context)
    elem_type = context.need_elem_type(theta, "the grid has it")
    sizes = _sizes(context, rank)
    lines = [
        _line(size, aligned=bool(context.value("align_corners", 0))).shaped(
            -1, *[1] * (rank - 1 - axis)
        )
        for axis, size in enumerate(sizes)
    ]
    # Each line repeated along the others, whose numbers are finite.
    zeros = [line * 0 for line in lines]
    columns = []
    for axis in reversed(range(rank)):
        column = lines[axis]
        for other in range(rank):
            if other != axis:
                column = column + zeros[other]
        columns.append(column)
    columns = [column.cast(elem_type) for column in (*columns, columns[0] * 0 + 1)]
    turned: str = op.Transpose(theta, perm=[0, 2, 1])
    known = [column.known for column in columns if column.known is not None]
    if len(known) == len(columns) and known[0].size:
        grid = context.array(np.stack([column.reshape(-1) for column in known], -1), "grid")
        product = op.MatMul(grid, turned)
        shape = context.array([0, *known[0].shape, rank], "shape")
        context.replace("Reshape", [product, shape], keep=())
        return
    parts = [unsqueezed(context, column.name, [rank]) for column in columns]
    grid = op.Concat(*parts, axis=rank)
    turned = unsqueezed(context, turned, list(range(1, rank)))
    context.replace("MatMul", [grid, turned], keep=())


def _rank(context: Context) -> int:
    """Return the number of spatial axes: two or three.

    Raises:
        Blocked: it is not known.
    """
    size, theta = (dims_of(context, context.input(index)) for index in (1, 0))
    if size is not None and isinstance(size[0], int):
        return size[0] - 2
    if theta is not None and isinstance(theta[1], int):
        return theta[1]
    raise Blocked(
        "the shapes of its inputs do not tell whether it is of two or three dimensions",
        "state the shape of one of them in the model's value_info",
    )


def _sizes(context: Context, rank: int) -> list[Term]:
    """Return the lengths of the image's spatial axes, each an int64 of shape []."""
    name = context.input(1)
    known = context.elements(name) or (None,) * (rank + 2)
    whole = Term(context, name, TensorProto.INT64)
    return [
        whole.at(axis) if length is None else term(context, length, TensorProto.INT64)
        for axis, length in enumerate(known[2:], 2)
    ]


def _line(size: Term, *, aligned: bool) -> Term:
    """Return the coordinates of an axis' elements from -1 to 1: double, of shape [size].

    Aligned, the first is -1 and the last 1, and a single one 1, as in runtimes; else they are the
    centres of as many cells.
    """
    numbers, length = range_of(size, _DOUBLE) * 2, size.cast(_DOUBLE)
    if not aligned:
        return (numbers + 1) / length - 1
    alone = size.cast(TensorProto.FLOAT).less(2).cast(_DOUBLE)
    return numbers / (length - 1 + alone) - 1 + alone * 2
