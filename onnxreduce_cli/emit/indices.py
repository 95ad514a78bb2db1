"""Indices that are never negative, and indices made non-negative."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto

from onnxreduce_cli.emit.axes import squeezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import UNSIGNED
from onnxreduce_cli.emit.sizes import END, sliced
from onnxreduce_cli.model.graph.domains import is_default

#: Operators whose outputs are never negative.
_WITHOUT_NEGATIVES = frozenset({"ArgMax", "ArgMin", "NonZero", "Shape", "Size"})
#: By operator, the inputs whose elements the output consists of, perhaps rounded.
_MOVING = {
    **dict.fromkeys(("Concat", "Min"), slice(None)),
    "Range": slice(0, 3, 2),
    "Where": slice(1, 3),
    **dict.fromkeys(("Cast", "Ceil", "Floor", "Expand", "Flatten", "Gather"), slice(1)),
    **dict.fromkeys(("Identity", "Reshape", "Slice", "Split", "Squeeze"), slice(1)),
    **dict.fromkeys(("Tile", "Transpose", "Unsqueeze"), slice(1)),
}
#: How many values are traced back.
_LOOKED_AT = 24

_NEVER_BELOW_ZERO = UNSIGNED | {TensorProto.BOOL}


def never_negative(context: Context, name: str) -> bool:
    """Return whether the elements of a value are known to be never negative."""
    waiting, found = [name], set[str]()
    for _ in range(_LOOKED_AT):
        found.add(str(waiting[-1]))
        decisive = _sources_of_sign(context, waiting.pop())
        if decisive is None:
            return False
        waiting += decisive
        if not waiting:
            context.lookups.non_negative |= found
            return True
    return False


def _sources_of_sign(context: Context, name: str) -> Sequence[str] | None:
    """Return the values that must have no negative elements for a value to have none.

    Returns:
        None where it may have some in any case.
    """
    array = context.constant(name)
    if array is not None:
        return () if array.dtype.kind in "iubf" and bool((array >= 0).all()) else None
    if context.elem_type(name) in _NEVER_BELOW_ZERO:
        return ()
    maker = context.maker(name)
    if maker is None or not is_default(maker.domain):
        return None
    op_type, given = maker.op_type, maker.input[:]
    if op_type in _WITHOUT_NEGATIVES or (op_type == "TopK" and name == maker.output[1]):
        return ()
    if op_type == "Max":
        limits = [context.constant(item) for item in given]
        return () if any(limit is not None and (limit >= 0).all() for limit in limits) else None
    if op_type == "Mod":
        divisor, fmod = context.constant(given[1]), context.about(maker).known_value("fmod", 0)
        positive = divisor is not None and bool((divisor > 0).all())
        return () if positive and fmod == 0 else None
    if op_type == "Cast" and _may_wrap(context, given[0], name):
        return None
    read = _MOVING.get(op_type)
    return None if read is None else given[read]


def _may_wrap(context: Context, given: str, name: str) -> bool:
    """Return whether a Cast may make positive numbers negative, as they are out of range."""
    if context.elem_type(name) != TensorProto.INT64:
        return True
    return context.elem_type(given) in (None, TensorProto.UINT64)


def size_along(context: Context, name: str, axis: int, elem_type: int) -> str:
    """Return the size of a dimension as a scalar of dtype `elem_type`, that of the indices."""
    op = context.op
    known = context.type(name)
    if known is not None and known.dims is not None:
        rank = len(known.dims)
        if not -rank <= axis < rank:
            raise Blocked(
                f"its axis {axis} is out of range for rank {rank}",
                f"mend the model: give it an axis from {-rank} to {rank - 1}",
            )
        dim = known.dims[axis]
        if isinstance(dim, int):
            return context.scalar(dim, "size", elem_type)
        axis %= len(known.dims)
    shape = op.Shape(name)
    if axis < 0:  # Gather takes no negative index before opset 11.
        size = squeezed(context, sliced(context, shape, axis, axis + 1 or END), [0])
    else:
        size = op.Gather(shape, context.scalar(axis, "axis"), axis=0)
    return size if elem_type == TensorProto.INT64 else cast(context, size, elem_type)


def from_front(context: Context, indices: str, size: str, elem_type: int) -> Value:
    """Return indices of dtype `elem_type` with `size`, a scalar, added to negative ones.

    That is ``indices + Cast(indices < 0) * size``, compared in float, as every opset can do that
    and every integer keeps its sign.
    """
    op = context.op
    zero = context.scalar(0.0, "zero")
    compared = cast(context, indices, TensorProto.FLOAT)
    below = cast(context, op.Less(compared, zero), elem_type)
    added = op.Mul(below, size)
    return op.Add(indices, added)
