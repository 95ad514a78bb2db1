"""NonZero below opset 9, with which it was introduced: a Loop finds one element after the other."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.axes import reduced, unsqueezed
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.loops import LoopBody, LoopValue, loop
from onnxreduce_cli.emit.numbers import Number, as_name, sizes
from onnxreduce_cli.emit.refusals import NO_LOOP
from onnxreduce_cli.emit.sizes import arange, size_of
from onnxreduce_cli.steps.registry import introduced


@introduced(
    "NonZero", 9, "a Loop that takes the places one by one, and their coordinates", blocks=NO_LOOP
)
def non_zero(context: Context) -> None:
    """``NonZero(x)`` becomes a Loop of as many rounds as x has elements that are not 0. Each gives
    the first place that is left in the flattened x; coordinates are divided out of them.
    """
    rank = context.rank(context.input(0))
    if not rank:
        context = context.at(13)
    op, data = context.op, context.input(0)
    if context.need_elem_type(data, "it is compared with 0") != TensorProto.BOOL:
        data = cast(context, data, TensorProto.BOOL)
    flat_shape = context.array([-1], "flat")
    hits = cast(context, op.Reshape(data, flat_shape), TensorProto.DOUBLE)
    size: Number = 1
    dims = [size_of(context, context.input(0), axis) for axis in range(rank or 0)]
    for each in dims:
        size = size * each
    if rank is None:
        count = op.Size(data)
        size = sizes(context, op.Reshape(count, context.array([1], "one")))
    # Counted from the back, so that the first place left is the highest number, and none is 0.
    numbers = cast(context, arange(context, size), TensorProto.DOUBLE)
    if isinstance(size, int):
        length = context.scalar(size, "length", TensorProto.DOUBLE)
    else:
        length = cast(context, as_name(context, size), TensorProto.DOUBLE)
    from_back = op.Mul(hits, op.Sub(length, numbers))
    total = reduced(context, "ReduceSum", cast(context, hits, TensorProto.INT64), [0], keep=True)
    taken = _descending(context, from_back, total, size if isinstance(size, int) else None)
    place = cast(context, op.Sub(length, taken), TensorProto.INT64)
    if rank:
        _coordinates(context, place, dims)
    else:
        _coordinates_of_any_rank(context, place)


def _descending(context: Context, numbers: str, count: str, size: int | None) -> Value:
    """Return the `count` largest of different numbers, the largest first: double of shape [count].

    Args:
        context: the node's.
        numbers: a double tensor of shape [size], without negative ones.
        count: an int64 of one element.
        size: how many numbers there are, if known.

    Returns:
        a double tensor of shape [count].
    """
    scalar_shape = context.array([], "scalar")

    def write(body: LoopBody) -> tuple[list[str], list[LoopValue]]:
        (left,) = body.values
        highest = body.ReduceMax(left, axes=[0], keepdims=1)
        lower = body.Less(left, highest)
        kept = body.Cast(lower, to=int(TensorProto.DOUBLE))
        scalar = body.Reshape(highest, scalar_shape)
        taken = LoopValue(scalar, TensorProto.DOUBLE, ())
        return [body.Mul(left, kept)], [taken]

    carried = LoopValue(numbers, TensorProto.DOUBLE, (size,))
    inputs, graph = loop(context, count, [carried], write, "over the elements taken")
    _, taken = context.op.Loop(*inputs, outputs=2, body=graph)
    return taken


def _coordinates(context: Context, place: str, dims: list[Number]) -> None:
    """Replace the node by the coordinates of elements at indices of the flattened data."""
    op = context.op
    rows = []
    for axis in reversed(range(len(dims))):
        row = place
        if axis:
            divisor = _divisor(context, dims[axis])
            place = op.Div(place, divisor)
            row = op.Sub(row, op.Mul(place, divisor))
        rows.append(op.Unsqueeze(row, axes=[0]))
    context.replace("Concat", rows[::-1], keep=(), axis=0)


def _coordinates_of_any_rank(context: Context, place: str) -> None:
    """Do as `_coordinates` where the rank is not known: no rows of coordinates for a scalar."""
    op = context.op
    shape = op.Shape(context.input(0))
    axes = arange(context, sizes(context, op.Shape(shape)))
    column, row = (unsqueezed(context, axes, [at]) for at in (1, 0))
    behind = op.Less(column, row)
    dims: str = _divisor(context, sizes(context, shape))
    factors = op.Where(behind, dims, context.array([1], "one"))
    strides = reduced(context, "ReduceProd", factors, [1], keep=True)
    whole = op.Div(place, strides)
    dims = unsqueezed(context, dims, [1])
    before = op.Mul(op.Div(whole, dims), dims)
    context.replace("Sub", [whole, before], keep=())


def _divisor(context: Context, size: Number) -> Value:
    """Return sizes as int64 of shape [1], or of a term's own shape, with 1 for 0: nothing is
    divided then, but some runtimes end on a 0.
    """
    op = context.op
    if isinstance(size, int):
        return context.array([max(size, 1)], "size")
    name = as_name(context, size)
    is_nothing = op.Equal(name, context.array([0], "zero"))
    return op.Add(name, cast(context, is_nothing, TensorProto.INT64))
