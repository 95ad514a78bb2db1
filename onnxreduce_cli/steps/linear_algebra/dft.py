"""DFT: 20 made its axis an input, and the default the last one of the signal; introduced at 17."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import normalised
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast, widened
from onnxreduce_cli.emit.context import Array, Context
from onnxreduce_cli.emit.curves import number
from onnxreduce_cli.emit.numbers import (
    MOST_WRITTEN,
    NO_COUNTING,
    Number,
    arange,
    as_name,
    dims_of,
    minus,
    part,
    plus,
    quotient,
    size_of,
    times,
    unsqueezed,
)
from onnxreduce_cli.emit.shapes import (
    axes_from_front,
    element,
    product,
    reshaped,
    scalar_input,
)
from onnxreduce_cli.model.values import numpy_dtype
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
    context.settle("what is known of its axis")
    listed = context.op.Reshape(context.input(2), context.array([1], "one"))
    _around(context, listed)


def _around(context: Context, axis: str) -> None:
    """``DFT<axis=1>`` of the signal in four dimensions: the axis, before, after and the last."""
    op = context.op
    data = context.input(0)
    shape = op.Shape(data)
    front, last = part(context, shape, 0, -1), element(context, shape, -1)
    rank = size_of(context, shape, 0)
    axis = axes_from_front(context, axis, rank)
    places = arange(context, minus(context, rank, 1))
    one = context.array([1], "one")
    before, after = (
        product(context, op.Where(op.Less(*pair), front, one))
        for pair in ([places, axis], [axis, places])
    )
    four = reshaped(
        context,
        data,
        op.Concat(before, element(context, front, axis), after, last, axis=0),
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


@dataclass(frozen=True)
class _Kind:
    """Which transform it is.

    Attributes:
        inverse: whether it is the inverse.
        onesided: whether only the half of the frequencies is given, or taken by the inverse.
        parts: how many numbers each element of the signal has, 1 or 2.
    """

    inverse: bool
    onesided: bool
    parts: int

    @property
    def is_real(self) -> bool:
        """Whether the result is a real signal."""
        return self.inverse and self.onesided

    def turned(self, cos: Array, sin: Array) -> Array:
        """What the parts of an element give to those of the result, turned by angles.

        Of shape [angles, parts, parts of the result].
        """
        rows = [[cos, sin], [-sin, cos]] if self.inverse else [[cos, -sin], [sin, cos]]
        columns = 1 if self.is_real else 2
        return np.array([row[:columns] for row in rows[: self.parts]]).transpose(2, 0, 1)


@introduced("DFT", 17, "the product with a matrix of cosines and sines", blocks=NO_COUNTING)
def dft(context: Context) -> None:
    """``DFT<axis=1>(x)`` with x of shape [B, N, 2] becomes
    ``Reshape(MatMul(Reshape(x, [B, N * 2]), matrix), [B, N, 2])``.

    The matrix is a constant where its sizes are known and it is small. Otherwise it is gathered at
    run time from N angles. Other dimensions are transposed to the front, and back.
    """
    op = context.op
    given_axis, rank = context.value("axis", 1), context.settled_rank(context.input(0))
    if rank is None:
        context = context.at(17)
        op = context.op
        _around(context, context.array([given_axis], "axis"))
        return
    axis = normalised((given_axis,), rank)[0]
    data, given, working = widened(context, TensorProto.FLOAT)
    data, kind = _kind(context, data, rank)
    size = size_of(context, context.input(0), axis)
    length = _length(context, kind, size)
    half = plus(context, quotient(context, length, 2), 1) if kind.onesided else length
    taken = _least(context, size, half if kind.is_real else length)
    given_size = length if kind.is_real else half
    if taken != size:
        data = op.Gather(data, arange(context, taken), axis=axis)
    perm = [*(index for index in range(rank - 1) if index != axis), axis, rank - 1]
    if axis != rank - 2:
        data = op.Transpose(data, perm=perm)
    rows = times(context, taken, kind.parts)
    data = _folded_last(context, data, rank - 2, [rows])
    matrix = _matrix(context, kind, length, taken, given_size, working)
    data = op.MatMul(data, matrix)
    data = _folded_last(context, data, rank - 2, [given_size, 1 if kind.is_real else 2])
    if axis != rank - 2:
        back = [perm.index(index) for index in range(rank)]
        data = op.Transpose(data, perm=back)
    if working == given:
        context.replace("Identity", [data], keep=())
    else:
        context.replace("Cast", [data], keep=(), to=given)


def _kind(context: Context, data: str, rank: int) -> tuple[str, _Kind]:
    """The transform, and the signal as it takes it.

    Where it is not known whether the signal has an imaginary part, zeros are put behind, and the
    first two parts taken.
    """
    op = context.op
    inverse, onesided = (bool(context.value(name, 0)) for name in ("inverse", "onesided"))
    dims = dims_of(context, context.input(0)) or ()
    parts = dims[-1] if dims else None
    if not isinstance(parts, int):
        zero = number(context, 0, context.elem_type(data) or TensorProto.FLOAT)
        zeros = op.Expand(zero, op.Shape(data))
        both = op.Concat(data, zeros, axis=rank - 1)
        data = op.Gather(both, context.array([0, 1], "parts"), axis=rank - 1)
        parts = 2
    return data, _Kind(inverse, onesided, parts)


def _length(context: Context, kind: _Kind, size: Number) -> Number:
    """The length of the transform: as it is given, or what the signal has."""
    name = context.input(1)
    if not name:
        return times(context, minus(context, size, 1), 2) if kind.is_real else size
    return scalar_input(context, name)


def _least(context: Context, first: Number, second: Number) -> Number:
    """The lesser of two sizes."""
    op = context.op
    if first == second:
        return first
    if isinstance(first, int) and isinstance(second, int):
        return min(first, second)
    names = [as_name(context, value) for value in (first, second)]
    is_less = op.Less(*names)
    return op.Where(is_less, *names)


def _folded_last(context: Context, data: str, kept: int, sizes: list[Number]) -> Value:
    """The tensor with its first dimensions as they are, and the given ones after them."""
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
    context: Context, kind: _Kind, length: Number, taken: Number, given: Number, elem_type: int
) -> Value:
    """What each part of each element taken gives to each part of each element of the result."""
    op = context.op
    columns = 1 if kind.is_real else 2
    if isinstance(length, int) and isinstance(taken, int) and isinstance(given, int):
        places = np.outer(np.arange(taken), np.arange(given)) % max(length, 1)
        if places.size * kind.parts * columns <= MOST_WRITTEN:
            values = _written_table(kind, length)[places]
            if kind.is_real:
                values *= _written_weights(length, taken)[:, None, : kind.parts, None]
            values = values.transpose(0, 2, 1, 3).reshape(taken * kind.parts, given * columns)
            return context.array(values.astype(numpy_dtype(elem_type)), "matrix")
    counts = [arange(context, count) for count in (taken, given)]
    turns = op.Mul(unsqueezed(context, counts[0], [1]), counts[1])
    places_name = op.Mod(turns, as_name(context, length))
    table = _table(context, kind, length)
    values_name = op.Gather(table, places_name, axis=0)
    if kind.is_real:
        weights = _weights(context, kind, counts[0], length)
        values_name = op.Mul(values_name, weights)
    if elem_type != TensorProto.DOUBLE:
        values_name = cast(context, values_name, elem_type)
    turned = op.Transpose(values_name, perm=[0, 2, 1, 3])
    return op.Flatten(turned, axis=2)


def _written_table(kind: _Kind, length: int) -> Array:
    angles = 2 * np.pi * np.arange(length) / length
    table = kind.turned(np.cos(angles), np.sin(angles))
    return table / length if kind.inverse else table


def _written_weights(length: int, taken: int) -> Array:
    """What the real and the imaginary part of each frequency count in a real signal.

    All but the first and the middle one stand for two; these have no imaginary part.
    """
    frequencies = np.arange(taken)
    real = 2.0 - (frequencies == 0) - (2 * frequencies == length)
    return np.stack([real, 2 * (real - 1)], axis=1)


def _table(context: Context, kind: _Kind, length: Number) -> Value:
    """What the parts of an element give when turned, for each angle; double."""
    op = context.op
    if isinstance(length, int) and length * kind.parts * 2 <= MOST_WRITTEN:
        return context.array(_written_table(kind, length), "table")
    double = TensorProto.DOUBLE
    count = cast(context, as_name(context, length), double)
    step = op.Div(number(context, 2 * np.pi, double), count)
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


def _weights(context: Context, kind: _Kind, frequencies: str, length: Number) -> Value:
    """The same at run time, of shape [frequencies, 1, parts, 1]."""
    op = context.op
    zero, two = context.array([0], "zero"), context.array([2], "two")
    twice = op.Mul(frequencies, two)
    once = [
        cast(context, op.Equal(*pair), TensorProto.DOUBLE)
        for pair in ([frequencies, zero], [twice, as_name(context, length)])
    ]
    one, both = (number(context, value, TensorProto.DOUBLE) for value in (1, 2))
    real = op.Sub(op.Sub(both, once[0]), once[1])
    more = op.Sub(real, one)
    columns: Sequence[str] = [real, op.Mul(more, both)][: kind.parts]
    columns = [unsqueezed(context, column, [1, 2, 3]) for column in columns]
    return op.Concat(*columns, axis=2)
