"""Operators that make tensors of a given shape, below the opset they came with."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, numpy_helper

from onnxreduce_cli.emit.axes import normalised
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import INTEGERS, cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.loops import Body, Carried, loop
from onnxreduce_cli.emit.numbers import (
    MOST_WRITTEN,
    NO_COUNTING,
    Number,
    arange,
    constant,
    dims_of,
    size_of,
    unsqueezed,
)
from onnxreduce_cli.emit.reversed_dims import mirrored
from onnxreduce_cli.model.values import numpy_dtype, tensor_type
from onnxreduce_cli.steps.registry import introduced


def _written(rows: Number, columns: Number) -> tuple[int, int] | None:
    """The sizes of a matrix that can be written into a model; None of one that cannot."""
    if isinstance(rows, int) and isinstance(columns, int) and rows * columns <= MOST_WRITTEN:
        return rows, columns
    return None


@introduced("Trilu", 14, "a mask and Where", blocks=NO_COUNTING)
def trilu(context: Context) -> None:
    """``Trilu(x, k)`` becomes ``Where(mask, x, 0)``: a constant mask where the last two dimensions
    and k are known and the mask is small, else ``Not(Less(columns - rows, k))``.
    """
    op = context.op
    data = context.input(0)
    elem_type = context.need_elem_type(data, "what is left out is a zero of it")
    upper = bool(context.value("upper", 1))
    k = context.constant(context.input(1)) if context.input(1) else np.zeros(1, np.int64)
    rows, columns = (size_of(context, data, axis) for axis in (-2, -1))
    sizes = _written(rows, columns)
    if k is not None and sizes is not None:
        apart = np.arange(sizes[1]) - np.arange(sizes[0])[:, None]
        bound = int(k.reshape(-1)[0])
        mask = context.array(apart >= bound if upper else apart <= bound, "mask")
    else:
        places = [arange(context, number) for number in (rows, columns)]
        difference = op.Sub(places[1], unsqueezed(context, places[0], [1]))
        bound_name = context.input(1) or context.array([0], "zero")
        beyond = op.emit("Less" if upper else "Greater", difference, bound_name)
        mask = op.Not(beyond)
    context.replace("Where", [mask, data, constant(context, 0, elem_type, "zero")], keep=())


@introduced("ConstantOfShape", 9, "Expand of a constant")
def constant_of_shape(context: Context) -> None:
    """``ConstantOfShape<value=[2]>(shape)`` becomes ``Expand(2, shape)``."""
    value = context.value("value")
    array = np.zeros((), np.float32) if value is None else numpy_helper.to_array(value)
    scalar = context.array(array.reshape(()), "value")
    context.replace("Expand", [scalar, context.input(0)], keep=())


@introduced("Expand", 8, "Tile", blocks=NO_COUNTING)
def expand(context: Context) -> None:
    """``Expand(x, [4, 3])`` with x of shape [3] becomes ``Tile(Unsqueeze<axes=[0]>(x), [4, 1])``.

    Where the sizes are not known, a dimension is repeated as often as the shape says if it is 1.
    """
    data: str
    data, shape = context.input(0), context.input(1)
    dims, lengths = dims_of(context, data), dims_of(context, shape)
    known = context.constant(shape)
    rank = lengths[0] if known is None and lengths is not None else None
    rank = rank if known is None else known.size
    if dims is None or not isinstance(rank, int):
        context.settled_rank(data)
        _repeat(context, *_of_one_rank(context))
        return
    dims = (1,) * (rank - len(dims)) + dims
    data = unsqueezed(context, data, list(range(rank - len(dims_of(context, data) or ()))))
    wanted = (1,) * (len(dims) - rank)
    if known is not None:
        wanted += tuple(int(length) for length in known.reshape(-1))
        if all(
            length == 1 or isinstance(dim, int) for dim, length in zip(dims, wanted, strict=True)
        ):
            repeats = [length if dim == 1 else 1 for dim, length in zip(dims, wanted, strict=True)]
            context.replace("Tile", [data, context.array(repeats, "repeats")], keep=())
            return
    if len(dims) > rank:
        ones = context.array([1] * (len(dims) - rank), "ones")
        shape = context.op.Concat(ones, shape, axis=0)
    _repeat(context, data, shape)


def _repeat(context: Context, data: str, shape: str) -> None:
    """Repeat each dimension that is 1 as often as the shape says, which has one for each."""
    op = context.op
    one = context.array([1], "one")
    sizes = op.Shape(data)
    single = cast(context, op.Equal(sizes, one), TensorProto.INT64)
    more = op.Sub(shape, one)
    extra = op.Mul(single, more)
    context.replace("Tile", [data, op.Add(extra, one)], keep=())


def _of_one_rank(context: Context) -> tuple[str, str]:
    """The node's data and shape, the shorter one with dimensions of 1 put in front by a Loop."""
    op = context.op
    data, shape = context.input(0), context.input(1)
    elem_type = context.need_elem_type(data, "it is carried through a Loop")
    rank = op.Shape(op.Shape(data))
    length = op.Shape(shape)

    def put_before(body: Body) -> tuple[list[str], list[Carried]]:
        return [body.Unsqueeze(*body.values, axes=[0])], []

    def lengthen(body: Body) -> tuple[list[str], list[Carried]]:
        ones = context.array([1], "one")
        return [body.Concat(ones, *body.values, axis=0)], []

    found = []
    for count, name, carried_type, dims, write in (
        ([length, rank], data, elem_type, None, put_before),
        ([rank, length], shape, TensorProto.INT64, (None,), lengthen),
    ):
        missing = op.Sub(*count)
        carried = Carried(name, carried_type, dims)
        inputs, graph = loop(context, missing, [carried], write)
        like = tensor_type(carried_type, dims)
        found.append(op.Loop(*inputs, like=like, body=graph))
    return found[0], found[1]


@introduced("Range", 11, "start + i * delta, i the places of as many ones", blocks=NO_COUNTING)
def range_(context: Context) -> None:
    """``Range(start, limit, delta)`` becomes ``Add(start, Mul(i, delta))`` with
    ``i = Squeeze(NonZero(ConstantOfShape<value=1>(count)))``; before opset 9 a Loop counts.
    """
    op = context.op
    start, limit, delta = (context.input(index) for index in range(3))
    elem_type = context.need_elem_type(start, "how to count depends on it")
    apart = op.Sub(limit, start)
    if elem_type in INTEGERS:
        to = TensorProto.INT64
        wide = [_as(context, apart, elem_type, to), _input_as(context, 2, elem_type, to)]
        count = _whole_steps(context, *wide)
    else:
        to = TensorProto.DOUBLE
        wide = [_as(context, apart, elem_type, to), _input_as(context, 2, elem_type, to)]
        steps = op.Ceil(op.Div(*wide))
        count = cast(context, op.Relu(steps), TensorProto.INT64)
    # Function bodies of other operators give Range tensors of shape [1] for scalars.
    count = op.Reshape(count, context.array([1], "one"))
    numbers = arange(context, count)
    numbers = _as(context, numbers, TensorProto.INT64, elem_type)
    scaled = numbers
    if not _is(context, delta, 1):
        scaled = op.Mul(numbers, delta)
    if _is(context, start, 0):
        context.replace("Identity", [scaled], keep=())
    else:
        context.replace("Add", [scaled, start], keep=())


def _as(context: Context, name: str, given: int, wanted: int) -> str:
    return name if given == wanted else cast(context, name, wanted)


def _input_as(context: Context, index: int, given: int, wanted: int) -> str:
    """An input in another dtype; a constant is another constant then, which emits nothing."""
    known = context.constant(context.input(index))
    if known is not None:
        return context.array(known.astype(numpy_dtype(wanted)), "number")
    return _as(context, context.input(index), given, wanted)


def _is(context: Context, name: str, value: int) -> bool:
    known = context.constant(name)
    return known is not None and bool(np.all(known == value))


def _whole_steps(context: Context, apart: str, delta: str) -> Value:
    """How many steps of `delta` it takes to cover `apart`, 0 if they lead away; int64."""
    op = context.op
    zero = context.array(np.array(0, np.int64), "zero")
    if _is(context, delta, 1):
        steps = apart
        forward = cast(context, op.Greater(apart, zero), TensorProto.INT64)
    else:
        whole = op.Div(apart, delta)
        covered = op.Mul(whole, delta)
        exact = op.Not(op.Equal(covered, apart))
        steps = op.Add(whole, cast(context, exact, TensorProto.INT64))
        signs = [op.Greater(name, zero) for name in (apart, delta)]
        forward = cast(context, op.Equal(*signs), TensorProto.INT64)
    return op.Mul(steps, forward)


@introduced("OneHot", 9, "compared with every class, and the values gathered", blocks=NO_COUNTING)
def one_hot(context: Context) -> None:
    """``OneHot<axis=-1>(indices, depth, values)`` becomes
    ``Gather(values, Cast(Equal(Unsqueeze(indices), classes)))``.
    """
    op = context.op
    indices, depth, values = (context.input(index) for index in range(3))
    axis, rank, turned = context.value("axis", -1), context.settled_rank(indices), False
    if rank is not None:
        axis = normalised((axis,), rank + 1)[0]
        behind = rank - axis
    else:
        context = context.at(11)  # Before, Unsqueeze has no negative axes; its step goes on.
        op = context.op
        if turned := axis >= 0:
            indices, axis = mirrored(context, indices), -1 - axis
        behind = -1 - axis
    known = context.constant(depth)
    if known is not None:
        classes = arange(context, int(known.reshape(-1)[0]))
    else:
        number = _as(context, depth, context.elem_type(depth) or 0, TensorProto.INT64)
        if context.rank(depth) != 1:
            number = op.Reshape(number, context.array([1], "one"))
        classes = arange(context, number)
    classes = unsqueezed(context, classes, list(range(1, behind + 1)))
    given = context.need_elem_type(indices, "they are compared with integers")
    numbers = unsqueezed(context, _as(context, indices, given, TensorProto.INT64), [axis])
    hits = op.Equal(numbers, classes)
    inputs = [values, cast(context, hits, TensorProto.INT64)]
    if not turned:
        context.replace("Gather", inputs, keep=(), axis=0)
        return
    result = context.replace("Gather", inputs, [context.fresh("mirrored")], keep=(), axis=0)
    mirrored(context, result.output[0], context.node.output[0])


@introduced("EyeLike", 9, "a constant, or where row and column are the same", blocks=NO_COUNTING)
def eye_like(context: Context) -> None:
    """``EyeLike<k=1>(x)`` with x of shape [2, 3] becomes ``Constant<[[0, 1, 0], [0, 0, 1]]>``.

    Where the shape is not known, or large, it is ``Cast(Equal(rows + 1, columns))``.
    """
    op = context.op
    data, k = context.input(0), context.value("k", 0)
    to = context.value("dtype") or context.need_elem_type(data, "the result has it")
    rows, columns = (size_of(context, data, axis) for axis in (0, 1))
    sizes = _written(rows, columns)
    if sizes is not None:
        eye = np.eye(*sizes, k=k, dtype=np.int64)
        context.replace("Identity", [cast(context, context.array(eye, "eye"), to)], keep=())
        return
    places = [arange(context, number) for number in (rows, columns)]
    row = unsqueezed(context, op.Add(places[0], context.array([k], "k")), [1])
    diagonal = op.Equal(row, places[1])
    context.replace("Cast", [diagonal], keep=(), to=to)
