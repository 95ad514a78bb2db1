"""DFT: introduced at opset 17; 20 made its axis an input, by default the signal's last one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import non_negative_axes, unsqueezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast, widened
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT, Number, as_name, is_small, sizes
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.shapes import axes_from_front, element, product, reshaped, scalar_input
from onnxreduce_cli.emit.sizes import arange, dims_of, size_of, sliced
from onnxreduce_cli.model.graph.values import numpy_dtype
from onnxreduce_cli.steps.linear_algebra.dft_matrix import (
    FourierTransform,
    angle_table,
    constant_matrix,
)
from onnxreduce_cli.steps.registry import down, introduced, up


@up("DFT", 20, "axis: attribute to input, its default 1 written out")
def axis_to_input(context: Context) -> None:
    """``DFT(x)`` becomes ``DFT(x, "", 1)``."""
    axis = context.scalar(context.value("axis", 1), "axis")
    context.replace(inputs=[context.input(0), context.input(1), axis], drop=("axis",))


@down("DFT", 20, "axis: input to attribute, its default -2 written out", blocks=NO_COUNTING)
def axis_to_attribute(context: Context) -> None:
    """``DFT(x)`` becomes ``DFT<axis=-2>(x)``.

    With an axis that is only known at run time, it becomes ``DFT<axis=1>(Reshape(x))`` with what
    is before and after the axis in one dimension each, in the shape that it has to have.
    """
    if not context.input(2):
        context.replace(inputs=[context.input(0), context.input(1)], axis=-2)
        return
    known = context.constant(context.input(2))
    if known is not None:
        axis = int(known.reshape(-1)[0])
        context.replace(inputs=[context.input(0), context.input(1)], axis=axis)
        return
    context.require_specialised("what is known of its axis")
    listed = context.op.Reshape(context.input(2), context.array([1], "one"))
    around_axis(context, listed)


@introduced("DFT", 17, "the product with a matrix of cosines and sines", blocks=NO_COUNTING)
def dft(context: Context) -> None:
    """``DFT<axis=1>(x)`` with x of shape [B, N, 2] becomes
    ``Reshape(MatMul(Reshape(x, [B, N * 2]), matrix), [B, N, 2])``.

    The matrix is a constant where its sizes are known and it is small. Otherwise it is gathered at
    run time from N angles. Other dimensions are transposed to the front, and back.
    """
    op = context.op
    given_axis, rank = context.value("axis", 1), context.specialised_rank(context.input(0))
    if rank is None:
        # Else it is not known of the signal in four dimensions either.
        context.need_elem_type(context.input(0), "a DFT of unknown rank is taken in another shape")
        context = context.at(17)
        op = context.op
        around_axis(context, context.array([given_axis], "axis"))
        return
    axis = non_negative_axes((given_axis,), rank)[0]
    data, given, working = widened(context, TensorProto.FLOAT)
    data, kind = _transform(context, data, rank)
    size = size_of(context, context.input(0), axis)
    length = _transform_length(context, kind, size)
    half = length // 2 + 1 if kind.onesided else length
    taken = _least(context, size, half if kind.is_real else length)
    given_size = length if kind.is_real else half
    if taken != size:
        data = op.Gather(data, arange(context, taken), axis=axis)
    perm = [*(index for index in range(rank - 1) if index != axis), axis, rank - 1]
    if axis != rank - 2:
        data = op.Transpose(data, perm=perm)
    rows = taken * kind.parts
    data = _merge_last(context, data, rank - 2, [rows])
    matrix = _matrix(context, kind, length, taken, given_size, working)
    data = op.MatMul(data, matrix)
    data = _merge_last(context, data, rank - 2, [given_size, kind.result_parts])
    if axis != rank - 2:
        back = [perm.index(index) for index in range(rank)]
        data = op.Transpose(data, perm=back)
    if working == given:
        context.replace("Identity", [data], keep=())
    else:
        context.replace("Cast", [data], keep=(), to=given)


def _transform(context: Context, data: str, rank: int) -> tuple[str, FourierTransform]:
    """Return the signal as the transform takes it, of the same dtype and of rank `rank`, and the
    transform.

    Where it is not known whether the signal has an imaginary part, zeros are put behind, and the
    first two parts taken.
    """
    op = context.op
    inverse, onesided = (bool(context.value(name, 0)) for name in ("inverse", "onesided"))
    dims = dims_of(context, context.input(0)) or ()
    parts = dims[-1] if dims else None
    if not isinstance(parts, int):
        zero = context.scalar(0, "number", context.elem_type(data) or TensorProto.FLOAT)
        zeros = op.Expand(zero, op.Shape(data))
        both = op.Concat(data, zeros, axis=rank - 1)
        data = op.Gather(both, context.array([0, 1], "parts"), axis=rank - 1)
        parts = 2
    if parts not in (1, 2):
        raise Blocked(
            f"its signal has {parts} numbers for an element, not 1 or 2",
            "mend the model: give it a signal of shape [..., 1] or [..., 2]",
        )
    return data, FourierTransform(inverse, onesided, parts)


def _transform_length(context: Context, kind: FourierTransform, size: Number) -> Number:
    """Return the length of the transform: as the node's input says, or else what follows from the
    signal's size.
    """
    name = context.input(1)
    if not name:
        return (size - 1) * 2 if kind.is_real else size
    return scalar_input(context, name)


def _least(context: Context, first: Number, second: Number) -> Number:
    """Return the lesser of two sizes: an int if known, else a term, int64 of shape [1]."""
    op = context.op
    if first == second:
        return first
    if isinstance(first, int) and isinstance(second, int):
        return min(first, second)
    names = [as_name(context, value) for value in (first, second)]
    is_less = op.Less(*names)
    return sizes(context, op.Where(is_less, *names))


def _merge_last(context: Context, data: str, kept: int, sizes: list[Number]) -> Value:
    """Return a tensor of any dtype with its first `kept` dimensions as they are, and dimensions of
    `sizes` after them.
    """
    op = context.op
    names: list[str] = [context.array([0] * kept, "kept")] if kept else []
    names += [as_name(context, size) for size in sizes]
    known = [size for size in sizes if isinstance(size, int)]
    if len(known) == len(sizes):
        shape = context.array([0] * kept + known, "shape")
    else:
        shape = op.Concat(*names, axis=0)
    return op.Reshape(data, shape)


def _matrix(
    context: Context,
    kind: FourierTransform,
    length: Number,
    taken: Number,
    given: Number,
    elem_type: int,
) -> Value:
    """Return the matrix of shape [taken * kind.parts, given * parts of the result], of dtype
    `elem_type`.

    Args:
        context: the node.
        kind: which transform it is.
        length: the length of the transform.
        taken: how many elements of the signal are transformed.
        given: how many elements the result has.
        elem_type: the dtype of the product.
    """
    if (
        isinstance(length, int)
        and isinstance(taken, int)
        and isinstance(given, int)
        and is_small(taken, given, kind.parts, kind.result_parts)
    ):
        values = constant_matrix(kind, length, taken, given)
        return context.array(values.astype(numpy_dtype(elem_type)), "matrix")
    return matrix_at_run_time(context, kind, length, taken, given, elem_type)


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
    is_real = context.value("inverse", 0) and context.value("onesided", 0)
    # What onnx infers of a real signal is two parts.
    parts = one if is_real else element(context, found, -1)
    wanted = op.Concat(op.Where(here, element(context, found, 1), front), parts, axis=0)
    reshaped(context, outputs[0], wanted, output=context.node.output[0])


def matrix_at_run_time(
    context: Context,
    kind: FourierTransform,
    length: Number,
    taken: Number,
    given: Number,
    elem_type: int,
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


def _angle_table(context: Context, kind: FourierTransform, length: Number) -> Value:
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


def _real_weights(
    context: Context, kind: FourierTransform, frequencies: str, length: Number
) -> Value:
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
