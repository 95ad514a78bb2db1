"""TensorScatter: introduced with 24."""

from __future__ import annotations

import numpy as np
from onnx import numpy_helper

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import Number, as_name, sizes
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.sizes import arange, size_of
from onnxreduce_cli.steps.registry import introduced


@introduced(
    "TensorScatter",
    24,
    "ScatterElements at the places that follow from write_indices",
    blocks=NO_COUNTING,
)
def tensor_scatter(context: Context) -> None:
    """``TensorScatter<axis=1>(cache, update, at)`` with a cache of shape [B, M] becomes
    ``ScatterElements<axis=1>(cache, Expand(at + [0, ..., L - 1], Shape(update)), update)``.

    Circular indices are taken modulo M. Without `write_indices` the update replaces the first
    elements: ``Concat(update, Slice(cache))``.
    """
    op = context.op
    cache, update, at = (context.input(index) for index in range(3))
    axis, rank = context.value("axis", -2), context.rank(cache)
    if rank is not None:
        axis %= rank
    length = _size(context, update, axis)
    if not at:
        end, axes = context.array([2**63 - 1], "end"), context.array([axis], "axis")
        rest = op.Slice(cache, as_name(context, length), end, axes)
        context.replace("Concat", [update, rest], keep=(), axis=axis)
        return
    first = op.Reshape(at, _along(context, 0))
    steps = op.Reshape(arange(context, length), _along(context, axis))
    indices = op.Add(first, steps)
    if context.value("mode", "linear") == "circular":
        around = as_name(context, _size(context, cache, axis))
        indices = op.Mod(indices, around)
    shape = op.Shape(update)
    indices = op.Expand(indices, shape)
    context.replace("ScatterElements", [cache, indices, update], keep=(), axis=axis)


def _size(context: Context, name: str, axis: int) -> Number:
    """Return the size of an axis; that is negative where the rank is not known.

    As a value the size is an int64 of shape [1].
    """
    op = context.op
    if axis >= 0:
        return size_of(context, name, axis)
    shape = op.Shape(name)
    return sizes(context, op.Gather(shape, context.array([axis], "axis"), axis=0))


def _along(context: Context, axis: int) -> Value:
    """Return the shape in which a vector lies along an axis of the cache.

    Returns:
        an int64 vector: -1, and 1 for each axis behind.
    """
    op = context.op
    rank = context.rank(context.input(0))
    if axis < 0 or rank is not None:
        return context.array([-1] + [1] * ((-1 if axis < 0 else (rank or 0) - 1) - axis), "along")
    ranks = op.Shape(op.Shape(context.input(0)))
    behind = op.Sub(ranks, context.array([axis + 1], "axis"))
    one = numpy_helper.from_array(np.ones(1, np.int64))
    ones = op.ConstantOfShape(behind, value=one)
    return op.Concat(context.array([-1], "open"), ones, axis=0)
