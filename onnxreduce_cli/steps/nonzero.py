"""NonZero and Compress below opset 9: the places are taken one by one in a Loop."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.steps.births import (
    NO_LOOP,
    Number,
    arange,
    as_name,
    born,
    constant,
    reduced,
    size_of,
    times,
    unsqueezed,
)
from onnxreduce_cli.steps.casts import cast
from onnxreduce_cli.steps.context import Context
from onnxreduce_cli.steps.loops import Body, Carried, loop


@born(
    "NonZero", 9, "a Loop that takes the places one by one, and their coordinates", blocks=NO_LOOP
)
def non_zero(context: Context) -> None:
    """``NonZero(x)`` becomes a Loop of as many rounds as x has elements that are not 0. Each gives
    the first place that is left in the flattened x; coordinates are divided out of them.
    """
    data = context.input(0)
    rank = context.rank(data)
    if not rank:
        context = context.at(13)
    if context.need_elem_type(data, "it is compared with 0") != TensorProto.BOOL:
        data = cast(context, data, TensorProto.BOOL)
    flat_shape = context.array([-1], "flat")
    hits = cast(context, context.emit("Reshape", [data, flat_shape], "flat"), TensorProto.DOUBLE)
    size: Number = 1
    sizes = [size_of(context, context.input(0), axis) for axis in range(rank or 0)]
    for each in sizes:
        size = times(context, size, each)
    if rank is None:
        count = context.emit("Size", [data], "size")
        size = context.emit("Reshape", [count, context.array([1], "one")], "size")
    # Counted from the back, so that the first place left is the highest number, and none is 0.
    numbers = cast(context, arange(context, size), TensorProto.DOUBLE)
    if isinstance(size, int):
        length = constant(context, size, TensorProto.DOUBLE, "length")
    else:
        length = cast(context, as_name(context, size), TensorProto.DOUBLE)
    from_back = context.emit("Mul", [hits, context.emit("Sub", [length, numbers])], "from_back")
    total = reduced(context, "ReduceSum", cast(context, hits, TensorProto.INT64), [0], keep=True)

    scalar_shape = context.array([], "scalar")

    def write(body: Body) -> tuple[list[str], list[Carried]]:
        (left,) = body.values
        highest = body.emit("ReduceMax", [left], "highest", axes=[0], keepdims=1)
        lower = body.emit("Less", [left, highest], "lower")
        kept = body.emit("Cast", [lower], "kept", to=int(TensorProto.DOUBLE))
        scalar = body.emit("Reshape", [highest, scalar_shape], "taken")
        taken = Carried(scalar, TensorProto.DOUBLE, ())
        return [body.emit("Mul", [left, kept], "rest")], [taken]

    known = size if isinstance(size, int) else None
    carried = Carried(from_back, TensorProto.DOUBLE, (known,))
    inputs, graph = loop(context, total, [carried], write)
    rest, taken = context.fresh("rest"), context.fresh("taken")
    context.emit("Loop", inputs, outputs=[rest, taken], body=graph)
    place = cast(context, context.emit("Sub", [length, taken], "place"), TensorProto.INT64)
    if rank:
        _coordinates(context, place, sizes)
    else:
        _coordinates_of_any_rank(context, place)


def _coordinates(context: Context, place: str, sizes: list[Number]) -> None:
    """One row of coordinates for each axis."""
    rows = []
    for axis in reversed(range(len(sizes))):
        row = place
        if axis:
            divisor = _divisor(context, sizes[axis])
            place = context.emit("Div", [place, divisor], "before")
            row = context.emit("Sub", [row, context.emit("Mul", [place, divisor])], "row")
        rows.append(context.emit("Unsqueeze", [row], "row", axes=[0]))
    context.replace("Concat", rows[::-1], keep=(), axis=0)


def _coordinates_of_any_rank(context: Context, place: str) -> None:
    """As many rows of coordinates as there are axes: none for a scalar."""
    shape = context.emit("Shape", [context.input(0)], "shape")
    axes = arange(context, context.emit("Shape", [shape], "rank"))
    column, row = (unsqueezed(context, axes, [at]) for at in (1, 0))
    behind = context.emit("Less", [column, row], "behind")
    sizes = _divisor(context, shape)
    factors = context.emit("Where", [behind, sizes, context.array([1], "one")], "factors")
    strides = reduced(context, "ReduceProd", factors, [1], keep=True)
    whole = context.emit("Div", [place, strides], "whole")
    sizes = unsqueezed(context, sizes, [1])
    before = context.emit("Mul", [context.emit("Div", [whole, sizes]), sizes], "before")
    context.replace("Sub", [whole, before], keep=())


def _divisor(context: Context, size: Number) -> str:
    """Sizes, or 1 where one is 0: nothing is divided then, but some runtimes end on a 0."""
    if isinstance(size, int):
        return context.array([max(size, 1)], "size")
    name = as_name(context, size)
    is_nothing = context.emit("Equal", [name, context.array([0], "zero")], "is_nothing")
    return context.emit("Add", [name, cast(context, is_nothing, TensorProto.INT64)], "divisor")


@born("Compress", 9, "Gather at the places of NonZero", blocks=NO_LOOP)
def compress(context: Context) -> None:
    """``Compress<axis=1>(x, condition)`` becomes ``Gather<axis=1>(x, NonZero(condition)[0])``;
    without an axis x is flattened.
    """
    context = context.at(9)  # NonZero came with the same opset; its own step goes on.
    data, axis = context.input(0), context.value("axis")  # Gather's may be negative too.
    places = context.emit("NonZero", [context.input(1)], "places")
    places = context.emit("Squeeze", [places], "places", axes=[0])
    if axis is None:
        data = context.emit("Reshape", [data, context.array([-1], "flat")], "flat")
    context.replace("Gather", [data, places], keep=(), axis=axis or 0)
