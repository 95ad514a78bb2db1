"""AffineGrid: introduced with 20."""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import unsqueezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT, Term, term
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

    Where a size is only known at run time each axis' coordinates, along an axis of their own, are
    multiplied by their column of theta.
    """
    op = context.op
    theta, rank = context.input(0), _image_rank(context)
    elem_type = context.need_elem_type(theta, "the grid has it")
    aligned = bool(context.value("align_corners", 0))
    lines = [_line(size, aligned=aligned).cast(elem_type) for size in _image_sizes(context, rank)]
    known = [line.known for line in lines if line.known is not None]
    if len(known) == rank and prod(map(len, known)) in range(1, LARGEST_CONSTANT):
        axes = np.meshgrid(*known, indexing="ij")
        points = np.stack([*axes[::-1], np.ones_like(axes[0])], -1)
        grid = context.array(points.reshape(-1, rank + 1), "grid")
        product = op.MatMul(grid, op.Transpose(theta, perm=[0, 2, 1]))
        shape = context.array([0, *map(len, known), rank], "shape")
        context.replace("Reshape", [product, shape], keep=())
        return
    columns = Term(context, unsqueezed(context, theta, list(range(1, rank + 1))), elem_type)
    total = columns.at(rank, axis=rank + 2)
    for column, line in enumerate(reversed(lines)):
        along = line.shaped(-1, *[1] * (column + 1))
        total = total + along * columns.at(column, axis=rank + 2)
    context.replace("Identity", [total.name], keep=())


def _image_rank(context: Context) -> int:
    """Return the number of spatial axes: two or three.

    Raises:
        Blocked: it is not known.
    """
    size, theta = (dims_of(context, context.input(index)) for index in (1, 0))
    if size and size[0] in (4, 5):
        return int(size[0]) - 2
    if theta and len(theta) > 1 and theta[1] in (2, 3):
        return int(theta[1])
    raise Blocked(
        "the shapes of its inputs do not say whether its grid has two or three dimensions",
        "state the shape of one of them in the model's value_info",
    )


def _image_sizes(context: Context, rank: int) -> list[Term]:
    """Return the lengths of the image's spatial axes, each an int64 of shape [].

    Raises:
        Blocked: they are known to be others.
    """
    name = context.input(1)
    known = context.elements(name) or (None,) * (rank + 2)
    if len(known) != rank + 2:
        reason = f"its input size has {len(known)} elements, not {rank + 2}"
        raise Blocked(reason, f"mend the model: give it {rank + 2} elements")
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
    numbers, length = range_of(size, _DOUBLE), size.cast(_DOUBLE)
    if not aligned:
        return (numbers * 2 + 1) / length - 1
    last = length - 1
    return (numbers - last) * 2 / last.most(1) + 1
