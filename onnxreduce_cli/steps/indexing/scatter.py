"""Scatter: introduced with 9, called ScatterElements from 11 on."""

from __future__ import annotations

import math

import numpy as np

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import Array
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.sizes import dims_of, known_dims
from onnxreduce_cli.steps.indexing.emulated_scatter import positions_at_run_time
from onnxreduce_cli.steps.registry import impossible, introduced, up


@introduced("Scatter", 9, "Gather from the data and the updates in a row", blocks=NO_COUNTING)
def scatter(context: Context) -> None:
    """``Scatter(x, [[1]], [[9]])`` with x of shape [3, 1] becomes
    ``Gather([x0, x1, x2, 9], [[0], [3], [2]])``.

    Indices that are only known at run time are compared with each position; see
    `positions_at_run_time`.
    """
    op = context.op
    data, updates = context.input(0), context.input(2)
    flat = context.array([-1], "flat")
    both = op.Concat(*[op.Reshape(name, flat) for name in (data, updates)], axis=0)
    positions = _constant_positions(context)
    if positions is not None:
        context.replace("Gather", [both, context.array(positions, "positions")], keep=(), axis=0)
        return
    inputs = [both, positions_at_run_time(context)]
    if context.rank(data) == 1:
        context.replace("Gather", inputs, keep=(), axis=0)
        return
    gathered, shape = op.Gather(*inputs, axis=0), op.Shape(data)
    context.at(shapes.OPSET).replace("Reshape", [gathered, shape], keep=(), allowzero=1)


def _constant_positions(context: Context) -> Array | None:
    """Return the position of each element of the result in the flattened data and updates.

    Returns:
        an int64 array of the data's shape, or None where shape or indices are not known.
    """
    indices, dims = (
        context.constant(context.input(1)),
        known_dims(dims_of(context, context.input(0))),
    )
    if indices is None or dims is None or math.prod(dims) > LARGEST_CONSTANT:
        return None
    size = math.prod(dims)
    positions = np.arange(size, dtype=np.int64).reshape(dims)
    at = list(np.indices(indices.shape))
    if at:
        at[context.value("axis", 0)] = indices
    positions[tuple(at)] = size + np.arange(indices.size).reshape(indices.shape)
    return positions


@up("Scatter", 11, "its successor ScatterElements")
def scatter_elements(context: Context) -> None:
    """``Scatter(x, indices, updates)`` becomes ``ScatterElements(x, indices, updates)``."""
    context.replace("ScatterElements")


impossible(
    "Scatter",
    11,
    "down",
    "Scatter is deprecated from opset 11 on: no valid model from there has one to bring down",
)
