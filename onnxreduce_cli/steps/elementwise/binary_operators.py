"""Add, And, Div, Equal, Greater, Less, Mul, Or, Pow, Sub and Xor: 7 made them broadcast.

From then on they do as NumPy does, without attributes. Before, the second input alone could be
repeated: with `broadcast=1` it had one element, or its shape stood within the first's, at `axis`
(by default at the end).
"""

from __future__ import annotations

from onnxreduce_cli.emit.broadcast import (
    aligned,
    broadcast_dims,
    broadcast_with,
    may_need_broadcast,
    placed_within,
)
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.sizes import dims_of, need_dims
from onnxreduce_cli.model.graph.values import Dims
from onnxreduce_cli.steps.registry import down, up

_OPERATORS = (
    "Add",
    "And",
    "Div",
    "Equal",
    "Greater",
    "Less",
    "Mul",
    "Or",
    "Pow",
    "Sub",
    "Xor",
)
#: The operator that means the same with the inputs swapped, for each that has one.
_SWAPPED = {op: op for op in ("Add", "And", "Equal", "Mul", "Or", "Xor")}
_SWAPPED |= {"Less": "Greater", "Greater": "Less"}
#: The reason why ranks must be known.
_PURPOSE = "before opset 7 broadcasting depends on it"


@up(_OPERATORS, 7, "broadcast and axis: dropped, trailing dimensions added")
def without_attributes(context: Context) -> None:
    """``Add<broadcast=1, axis=1>(x, y)`` becomes ``Add(x, Unsqueeze(y))``, aligned at the end.

    Where a rank is not known y is reshaped at run time.
    """
    if context.attribute("broadcast") is None and context.attribute("axis") is None:
        return
    second: str
    first, second = context.input(0), context.input(1)
    if context.value("broadcast", 0):
        second = placed_within(context, second, first)
    context.replace(inputs=[first, second], drop=("broadcast", "axis"))


@down(
    _OPERATORS,
    7,
    "broadcast=1 where the second input is repeated, else a Tile for each that is",
    blocks="the rank of an input is not known and the other is no scalar",
)
def with_attributes(context: Context) -> None:
    """``Add(x, y)``, y of shape [3], becomes ``Add<broadcast=1>(x, y)``.

    The first input is repeated by Tile where it must be, and the second where it does not stand
    within the first as it is: of shapes [4, 1] and [1, 3] ``Sub(x, y)`` becomes
    ``Sub<broadcast=1>(Tile(x, [1, 3]), Squeeze(y))``.
    """
    outer: str
    outer, inner = context.input(0), context.input(1)
    first, second = dims_of(context, outer), dims_of(context, inner)
    if outer == inner or (first is not None and first == second and None not in first):
        return
    op_type = context.node.op_type
    swapped = _SWAPPED.get(op_type)
    if swapped is not None and _grows_more(first, second):
        op_type, outer, inner, first, second = swapped, inner, outer, second, first
    if second == ():
        context.replace(op_type, [outer, inner], broadcast=1)
        return
    first, second = (need_dims(context, name, _PURPOSE) for name in (outer, inner))
    if _is_one_element(second):
        # The result has the first input's shape there, so that has all the dimensions.
        context.replace(op_type, [aligned(context, outer, inner), inner], broadcast=1)
        return
    if may_need_broadcast(first, second) or len(first) < len(second):
        outer, first = broadcast_with(context, outer, [inner]), broadcast_dims([first, second])
    position = _position(first, second)
    if position is None:
        context.replace(op_type, [outer, broadcast_with(context, inner, [outer])])
        return
    axis, ones = position
    if ones:
        inner = context.op.Squeeze(inner, axes=ones)
    at_end = axis + len(second) - len(ones) == len(first)
    context.replace(op_type, [outer, inner], broadcast=1, axis=None if at_end else axis)


def _grows_more(first: Dims | None, second: Dims | None) -> bool:
    """Return whether the second input alone is known to have the shape of the result."""
    if _is_one_element(second) or _is_one_element(first):
        return not _is_one_element(second)
    if first is None or second is None:
        return False
    return may_need_broadcast(first, second) and not may_need_broadcast(second, first)


def _is_one_element(dims: Dims | None) -> bool:
    """Return whether a tensor is known to have one element."""
    return dims is not None and all(dim == 1 for dim in dims)


def _position(outer: Dims, inner: Dims) -> tuple[int, list[int]] | None:
    """Return where the shape `inner` lies within `outer`; None if it does not, as far as is known.

    Returns:
        the first of its dimensions that stands for more than one element, counted in `outer`, and
        the dimensions of 1 around them, counted in `inner`, which must be squeezed first.
    """
    wide = [index for index, dim in enumerate(inner) if dim != 1]
    if not wide:
        return None
    core = inner[wide[0] : wide[-1] + 1]
    start = len(outer) - len(inner) + wide[0]
    if start < 0 or None in core or outer[start : start + len(core)] != core:
        return None
    return start, [index for index in range(len(inner)) if not wide[0] <= index <= wide[-1]]
