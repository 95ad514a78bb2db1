"""DFT: 20 made its axis an input, and the default the last one of the signal; born with 17."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.model.values import numpy_dtype
from onnxreduce_cli.steps.axes import normalised
from onnxreduce_cli.steps.births import (
    MOST_WRITTEN,
    NO_COUNTING,
    Number,
    arange,
    as_name,
    born,
    dims_of,
    minus,
    part,
    plus,
    quotient,
    size_of,
    times,
    unsqueezed,
)
from onnxreduce_cli.steps.casts import cast, widened
from onnxreduce_cli.steps.context import Array, Context
from onnxreduce_cli.steps.curves import number
from onnxreduce_cli.steps.registry import down, up
from onnxreduce_cli.steps.shapes import (
    axes_from_front,
    element,
    product,
    reshaped,
    scalar_input,
)


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
    listed = context.emit("Reshape", [context.input(2), context.array([1], "one")], "axis")
    _around(context, listed)


def _around(context: Context, axis: str) -> None:
    """``DFT<axis=1>`` of the signal in four dimensions: the axis, before, after and the last."""
    data = context.input(0)
    shape = context.emit("Shape", [data], "shape")
    front, last = part(context, shape, 0, -1), element(context, shape, -1)
    rank = size_of(context, shape, 0)
    axis = axes_from_front(context, axis, rank)
    places = arange(context, minus(context, rank, 1))
    one = context.array([1], "one")
    before, after = (
        product(context, context.emit("Where", [context.emit("Less", pair), front, one], "sizes"))
        for pair in ([places, axis], [axis, places])
    )
    sizes = [before, element(context, front, axis), after, last]
    four = reshaped(context, data, context.emit("Concat", sizes, "four", axis=0), (None,) * 4)
    outputs = [context.fresh("transform")]
    context.replace(inputs=[four, context.input(1)], outputs=outputs, axis=1)
    found = context.emit("Shape", outputs, "shape")
    here = context.emit("Equal", [places, axis], "here")
    sizes = [
        context.emit("Where", [here, element(context, found, 1), front], "sizes"),
        element(context, found, -1),
    ]
    wanted = context.emit("Concat", sizes, "wanted", axis=0)
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


@born("DFT", 17, "the product with a matrix of cosines and sines", blocks=NO_COUNTING)
def dft(context: Context) -> None:
    """``DFT<axis=1>(x)`` with x of shape [B, N, 2] becomes
    ``Reshape(MatMul(Reshape(x, [B, N * 2]), matrix), [B, N, 2])``.

    The matrix is a constant where its sizes are known and it is small. Otherwise it is gathered at
    run time from N angles. Other dimensions are transposed to the front, and back.
    """
    given_axis, rank = context.value("axis", 1), context.settled_rank(context.input(0))
    if rank is None:
        context = context.at(17)
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
        inputs = [data, arange(context, taken)]
        data = context.emit("Gather", inputs, "taken", axis=axis)
    perm = [*(index for index in range(rank - 1) if index != axis), axis, rank - 1]
    if axis != rank - 2:
        data = context.emit("Transpose", [data], "turned", perm=perm)
    rows = times(context, taken, kind.parts)
    data = _folded_last(context, data, rank - 2, [rows])
    matrix = _matrix(context, kind, length, taken, given_size, working)
    data = context.emit("MatMul", [data, matrix], "transform")
    data = _folded_last(context, data, rank - 2, [given_size, 1 if kind.is_real else 2])
    if axis != rank - 2:
        back = [perm.index(index) for index in range(rank)]
        data = context.emit("Transpose", [data], "turned_back", perm=back)
    if working == given:
        context.replace("Identity", [data], keep=())
    else:
        context.replace("Cast", [data], keep=(), to=given)


def _kind(context: Context, data: str, rank: int) -> tuple[str, _Kind]:
    """The transform, and the signal as it takes it.

    Where it is not known whether the signal has an imaginary part, zeros are put behind, and the
    first two parts taken.
    """
    inverse, onesided = (bool(context.value(name, 0)) for name in ("inverse", "onesided"))
    dims = dims_of(context, context.input(0)) or ()
    parts = dims[-1] if dims else None
    if not isinstance(parts, int):
        zero = number(context, 0, context.elem_type(data) or TensorProto.FLOAT)
        zeros = context.emit("Expand", [zero, context.emit("Shape", [data])], "zeros")
        both = context.emit("Concat", [data, zeros], "both", axis=rank - 1)
        inputs = [both, context.array([0, 1], "parts")]
        data = context.emit("Gather", inputs, "parts", axis=rank - 1)
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
    if first == second:
        return first
    if isinstance(first, int) and isinstance(second, int):
        return min(first, second)
    names = [as_name(context, value) for value in (first, second)]
    is_less = context.emit("Less", names, "is_less")
    return context.emit("Where", [is_less, *names], "least")


def _folded_last(context: Context, data: str, kept: int, sizes: list[Number]) -> str:
    """The tensor with its first dimensions as they are, and the given ones after them."""
    names = [context.array([0] * kept, "kept")] if kept else []
    names += [as_name(context, size) for size in sizes]
    known = [size for size in sizes if isinstance(size, int)]
    if len(known) == len(sizes):
        shape = context.array([0] * kept + known, "shape")
    else:
        shape = context.emit("Concat", names, "shape", axis=0)
    return context.emit("Reshape", [data, shape], "shaped")


def _matrix(
    context: Context, kind: _Kind, length: Number, taken: Number, given: Number, elem_type: int
) -> str:
    """What each part of each element taken gives to each part of each element of the result."""
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
    turns = context.emit("Mul", [unsqueezed(context, counts[0], [1]), counts[1]], "turns")
    places_name = context.emit("Mod", [turns, as_name(context, length)], "places")
    table = _table(context, kind, length)
    values_name = context.emit("Gather", [table, places_name], "values", axis=0)
    if kind.is_real:
        weights = _weights(context, kind, counts[0], length)
        values_name = context.emit("Mul", [values_name, weights], "weighted")
    if elem_type != TensorProto.DOUBLE:
        values_name = cast(context, values_name, elem_type)
    turned = context.emit("Transpose", [values_name], "matrices", perm=[0, 2, 1, 3])
    return context.emit("Flatten", [turned], "matrix", axis=2)


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


def _table(context: Context, kind: _Kind, length: Number) -> str:
    """What the parts of an element give when turned, for each angle; double."""
    if isinstance(length, int) and length * kind.parts * 2 <= MOST_WRITTEN:
        return context.array(_written_table(kind, length), "table")
    double = TensorProto.DOUBLE
    count = cast(context, as_name(context, length), double)
    step = context.emit("Div", [number(context, 2 * np.pi, double), count], "step")
    angles = context.emit("Mul", [cast(context, arange(context, length), double), step], "angles")
    # The columns of the turned axes: what is 1 of the cosines, and what of the sines.
    axes = np.eye(2)
    cos, sin = (kind.turned(*axes[:, index : index + 1]) for index in range(2))
    parts = [
        context.emit(
            "Mul",
            [
                unsqueezed(context, context.emit(op_type, [angles]), [1, 2]),
                context.array(factors, "factors"),
            ],
            "part",
        )
        for op_type, factors in (("Cos", cos), ("Sin", sin))
    ]
    table = context.emit("Add", parts, "table")
    return context.emit("Div", [table, count], "table") if kind.inverse else table


def _weights(context: Context, kind: _Kind, frequencies: str, length: Number) -> str:
    """The same at run time, of shape [frequencies, 1, parts, 1]."""
    zero, two = context.array([0], "zero"), context.array([2], "two")
    twice = context.emit("Mul", [frequencies, two], "twice")
    once = [
        cast(context, context.emit("Equal", pair), TensorProto.DOUBLE)
        for pair in ([frequencies, zero], [twice, as_name(context, length)])
    ]
    one, both = (number(context, value, TensorProto.DOUBLE) for value in (1, 2))
    real = context.emit("Sub", [context.emit("Sub", [both, once[0]]), once[1]], "real")
    more = context.emit("Sub", [real, one], "more")
    columns = [real, context.emit("Mul", [more, both], "imaginary")][: kind.parts]
    columns = [unsqueezed(context, column, [1, 2, 3]) for column in columns]
    return context.emit("Concat", columns, "weights", axis=2)
