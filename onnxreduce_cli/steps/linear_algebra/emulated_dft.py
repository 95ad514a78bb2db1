"""DFT of an axis, a rank or a length that is only known at run time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import unsqueezed
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT, Number, as_name, sizes
from onnxreduce_cli.emit.shapes import axes_from_front, element, product, reshaped
from onnxreduce_cli.emit.sizes import arange, size_of, sliced
from onnxreduce_cli.steps.linear_algebra.dft_matrix import Kind, angle_table


def around_axis(context: Context, axis: str) -> None:
    """``DFT<axis=1>`` of the signal in four dimensions: the axis, before, after and the last."""
    op = context.op
    data = context.input(0)
    shape = op.Shape(data)
    front, last = sliced(context, shape, 0, -1), element(context, shape, -1)
    rank = size_of(context, shape, 0)
    axis = axes_from_front(context, axis, rank)
    places = arange(context, rank - 1)
    one = context.array([1], "one")
    before, after = (
        product(context, op.Where(op.Less(*pair), front, one))
        for pair in ([places, axis], [axis, places])
    )
    four = reshaped(
        context,
        data,
        op.Concat(before, element(context, front, sizes(context, axis)), after, last, axis=0),
        (None,) * 4,
    )
    outputs = [context.fresh("transform")]
    context.replace(inputs=[four, context.input(1)], outputs=outputs, axis=1)
    found = op.Shape(*outputs)
    here = op.Equal(places, axis)
    wanted = op.Concat(
        op.Where(here, element(context, found, 1), front), element(context, found, -1), axis=0
    )
    reshaped(context, outputs[0], wanted, output=context.node.output[0])


def matrix_at_run_time(
    context: Context, kind: Kind, length: Number, taken: Number, given: Number, elem_type: int
) -> Value:
    """Return the matrix of shape [taken * kind.parts, given * kind.result_parts], of dtype
    `elem_type`.

    It is gathered from a table of angles, or the table's values are computed too if it is large.
    """
    op = context.op
    context.warn("a matrix of the transform's length squared is made when the model runs")
    counts = [arange(context, count) for count in (taken, given)]
    turns = op.Mul(unsqueezed(context, counts[0], [1]), counts[1])
    angles = op.Mod(turns, as_name(context, length))
    table = _angle_table(context, kind, length)
    values = op.Gather(table, angles, axis=0)
    if kind.is_real:
        weights = _real_weights(context, kind, counts[0], length)
        values = op.Mul(values, weights)
    if elem_type != TensorProto.DOUBLE:
        values = cast(context, values, elem_type)
    turned = op.Transpose(values, perm=[0, 2, 1, 3])
    return op.Flatten(turned, axis=2)


def _angle_table(context: Context, kind: Kind, length: Number) -> Value:
    """Return `dft_matrix.angle_table`, double, in nodes where it is large or the length is not
    known.
    """
    op = context.op
    if isinstance(length, int) and length * kind.parts * 2 <= LARGEST_CONSTANT:
        return context.array(angle_table(kind, length), "table")
    double = TensorProto.DOUBLE
    count = cast(context, as_name(context, length), double)
    step = op.Div(context.scalar(2 * np.pi, "number", double), count)
    angles = op.Mul(cast(context, arange(context, length), double), step)
    # The columns of the turned axes: what is 1 of the cosines, and what of the sines.
    axes = np.eye(2)
    cos, sin = (kind.turned(*axes[:, index : index + 1]) for index in range(2))
    parts = [
        op.Mul(
            unsqueezed(context, op.emit(op_type, angles), [1, 2]), context.array(factors, "factors")
        )
        for op_type, factors in (("Cos", cos), ("Sin", sin))
    ]
    table = op.Add(*parts)
    return op.Div(table, count) if kind.inverse else table


def _real_weights(context: Context, kind: Kind, frequencies: str, length: Number) -> Value:
    """Return `dft_matrix.real_weights` in nodes, of int64 frequencies of shape [n]: double of shape
    [n, 1, parts, 1].
    """
    op = context.op
    zero, two = context.array([0], "zero"), context.array([2], "two")
    twice = op.Mul(frequencies, two)
    once = [
        cast(context, op.Equal(*pair), TensorProto.DOUBLE)
        for pair in ([frequencies, zero], [twice, as_name(context, length)])
    ]
    one, both = (context.scalar(value, "number", TensorProto.DOUBLE) for value in (1, 2))
    real = op.Sub(op.Sub(both, once[0]), once[1])
    more = op.Sub(real, one)
    columns: Sequence[str] = [real, op.Mul(more, both)][: kind.parts]
    columns = [unsqueezed(context, column, [1, 2, 3]) for column in columns]
    return op.Concat(*columns, axis=2)
