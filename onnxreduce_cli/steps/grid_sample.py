"""GridSample below opset 16: the places computed, their elements taken by Gather and weighted."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import TensorProto

from onnxreduce_cli.steps.births import (
    Number,
    arange,
    as_name,
    born,
    constant,
    size_of,
    times,
)
from onnxreduce_cli.steps.casts import HALVES, cast, finish, widened
from onnxreduce_cli.steps.context import Blocked, Context

_MODES = {"bilinear": "linear", "bicubic": "cubic"}

#: The coefficient of the cubic weights.
_CUBIC = -0.75


@dataclass(frozen=True)
class _Tap:
    """One neighbour of each place along one axis.

    Attributes:
        index: which element, an int64 within the axis.
        inside: whether it truly lies there; empty where what lies outside is none.
        weight: how much it counts; empty where it is the only one.
    """

    index: str
    inside: str
    weight: str


@born(
    "GridSample",
    16,
    "the places computed, their elements taken by Gather and weighted",
    blocks="it is cubic beyond a border that is not 0, or the dtype of the grid is not known",
)
def grid_sample(context: Context) -> None:
    """``GridSample<mode="nearest">(x, grid)`` becomes
    ``Transpose(Gather(Reshape(Transpose(x), [-1, C]), (batch * H + row) * W + column))`` with rows
    and columns rounded from the grid; with ``mode="linear"`` it is the sum of four of these, each
    multiplied by the row's and the column's weight, with ``mode="cubic"`` of sixteen.
    """
    mode = context.value("mode", "linear")
    mode = _MODES.get(mode, mode)
    padding = context.value("padding_mode", "zeros")
    if mode == "cubic" and padding != "zeros":
        raise Blocked(
            f"it is cubic with padding_mode={padding!r}, of which runtimes and the definition make "
            "different numbers",
            "choose another mode or padding in the exporter, or opset 16 or later",
        )
    data, given, working = (context.input(0), 0, 0) if mode == "nearest" else widened(context, 0)
    sizes = [size_of(context, context.input(0), axis) for axis in range(4)]
    batch, channels, height, width = sizes
    columns = _taps(context, 0, width, mode, working)
    rows = _taps(context, 1, height, mode, working)
    last = context.emit("Transpose", [data], "channels_last", perm=[0, 2, 3, 1])
    flat_shape = context.emit(
        "Concat", [context.array([-1], "all"), as_name(context, channels)], "flat_shape", axis=0
    )
    flat = context.emit("Reshape", [last, flat_shape], "flat")
    first = _scaled(context, arange(context, batch), times(context, height, width))
    first = context.emit("Reshape", [first, context.array([-1, 1, 1], "batches")], "of_batch")
    total = ""
    for row in rows:
        line = context.emit("Add", [first, _scaled(context, row.index, width)], "line")
        for column in columns:
            place = context.emit("Add", [line, column.index], "place")
            part = _counted(context, context.emit("Gather", [flat, place], axis=0), row, column)
            total = context.emit("Add", [total, part], "sum") if total else part
    perm = [0, 3, 1, 2]
    if working:
        finish(context, "Transpose", [total], given, working, perm=perm)
    else:
        context.replace("Transpose", [total], keep=(), perm=perm)


def _scaled(context: Context, name: str, factor: Number) -> str:
    return context.emit("Mul", [name, as_name(context, factor)], "scaled")


def _counted(context: Context, part: str, row: _Tap, column: _Tap) -> str:
    """The elements of one neighbour as far as they count."""
    behind = context.array([3], "behind")
    if row.inside:
        inside = context.emit("And", [row.inside, column.inside], "inside")
        inside = context.emit("Unsqueeze", [inside, behind], "inside")
        elem_type = context.need_elem_type(context.input(0), "outside it is 0 of that dtype")
        if row.weight and elem_type in HALVES:
            elem_type = TensorProto.FLOAT
        part = context.emit("Where", [inside, part, constant(context, 0, elem_type, "zero")])
    if row.weight:
        weight = context.emit("Mul", [row.weight, column.weight], "weight")
        weight = context.emit("Unsqueeze", [weight, behind], "weight")
        part = context.emit("Mul", [part, weight], "weighted")
    return part


def _taps(context: Context, index: int, size: Number, mode: str, working: int) -> list[_Tap]:
    """The neighbours along one axis, the grid's numbers at `index`."""
    grid = context.input(1)
    elem_type = context.need_elem_type(grid, "places are computed in that dtype")
    if elem_type in HALVES:
        grid, elem_type = cast(context, grid, TensorProto.FLOAT), int(TensorProto.FLOAT)

    def number(value: float) -> str:
        return constant(context, value, elem_type, "number")

    if isinstance(size, int):
        length, last = number(size), number(size - 1)
    else:
        scalar = context.emit("Reshape", [size, context.array([], "scalar")], "length")
        length = cast(context, scalar, elem_type)
        last = context.emit("Sub", [length, number(1)], "last")
    zero, half = number(0), number(0.5)
    given = context.emit("Gather", [grid, context.scalar(index, "which")], "given", axis=3)
    raised = context.emit("Add", [given, number(1)], "raised")
    aligned = context.value("align_corners", 0)
    if aligned:
        place = context.emit("Mul", [context.emit("Mul", [raised, half]), last], "place")
    else:
        spread = context.emit("Sub", [context.emit("Mul", [raised, length]), number(1)], "spread")
        place = context.emit("Mul", [spread, half], "place")
    if mode == "nearest":
        place = context.emit("Round", [place], "nearest")
    padding = context.value("padding_mode", "zeros")
    if padding == "reflection":
        place = _reflected(context, place, length, last, elem_type, aligned=bool(aligned))
    if padding == "zeros":
        low, high = number(-3), context.emit("Add", [length, number(2)], "beyond")
    else:
        low, high = zero, last
    if padding == "zeros" or mode == "nearest" or padding == "border":
        place = _between(context, place, low, high)
    starts, weights = _neighbours(context, place, mode, elem_type)
    taps = []
    for start, weight in zip(starts, weights, strict=True):
        inside = ""
        if padding == "zeros":
            ends = (("Less", start, zero), ("Greater", start, last))
            outside = [context.emit(op_type, [a, b]) for op_type, a, b in ends]
            inside = context.emit("Not", [context.emit("Or", outside, "outside")], "inside")
        whole = cast(context, _between(context, start, zero, last), TensorProto.INT64)
        counts = weight if not weight or elem_type == working else cast(context, weight, working)
        taps.append(_Tap(whole, inside, counts))
    return taps


def _neighbours(
    context: Context, place: str, mode: str, elem_type: int
) -> tuple[list[str], list[str]]:
    """The elements around each place, and how much they count."""
    if mode == "nearest":
        return [place], [""]

    def number(value: float) -> str:
        return constant(context, value, elem_type, "number")

    low = context.emit("Floor", [place], "low")
    if mode == "linear":
        high = context.emit("Add", [low, number(1)], "high")
        pairs = ((high, place), (place, low))
        return [low, high], [context.emit("Sub", [*pair], "weight") for pair in pairs]
    starts = [
        low if not offset else context.emit("Add", [low, number(offset)], "neighbour")
        for offset in (-1, 0, 1, 2)
    ]
    weights = []
    for start, factors in zip(starts, (_FAR, _NEAR, _NEAR, _FAR), strict=True):
        apart = context.emit("Abs", [context.emit("Sub", [place, start])], "apart")
        total = number(factors[0])
        for factor in factors[1:]:
            product = context.emit("Mul", [total, apart], "product")
            total = context.emit("Add", [product, number(factor)], "weight")
        weights.append(total)
    return starts, weights


#: R. Keys' cubic convolution, the highest power first: of a distance up to 1, and from there to 2.
_NEAR = (_CUBIC + 2, -(_CUBIC + 3), 0.0, 1.0)
_FAR = (_CUBIC, -5 * _CUBIC, 8 * _CUBIC, -4 * _CUBIC)


def _between(context: Context, name: str, low: str, high: str) -> str:
    return context.emit("Max", [context.emit("Min", [name, high], "least"), low], "within")


def _reflected(
    context: Context, place: str, length: str, last: str, elem_type: int, *, aligned: bool
) -> str:
    """Places beyond an end turned back: at the centre of the last element, or at its border."""

    def number(value: float) -> str:
        return constant(context, value, elem_type, "number")

    start = number(0 if aligned else -0.5)
    # Of one element, whose centre is both ends, any way is as long.
    way = context.emit("Max", [last, number(1)], "way") if aligned else length
    size = context.emit("Abs", [context.emit("Sub", [place, start], "from_start")], "size")
    there_and_back = context.emit("Mul", [way, number(2)], "there_and_back")
    rounds = context.emit("Floor", [context.emit("Div", [size, there_and_back])], "rounds")
    done = context.emit("Mul", [rounds, there_and_back], "done")
    rest = context.emit("Sub", [size, done], "rest")
    back = context.emit("Abs", [context.emit("Sub", [rest, way])], "back")
    return context.emit("Add", [context.emit("Sub", [way, back], "there"), start], "reflected")
