"""Indices: known not to be negative, or counted from the front."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.axes import squeezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import UNSIGNED
from onnxreduce_cli.emit.sizes import END, sliced

#: Operators of which no output is negative.
_WITHOUT_NEGATIVES = frozenset({"ArgMax", "ArgMin", "NonZero", "Shape", "Size"})
#: Operators that only move the elements of their first input.
_MOVING = frozenset(
    {
        "Expand",
        "Flatten",
        "Gather",
        "Identity",
        "Reshape",
        "Slice",
        "Split",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
    }
)
#: How many nodes that move elements are looked through.
_DEPTH = 16


def never_negative(context: Context, name: str) -> bool:
    """Return whether no element of an integer value is ever negative, as far as is known."""
    for _ in range(_DEPTH):
        array = context.constant(name)
        if array is not None:
            return bool((array >= 0).all())
        if context.elem_type(name) in UNSIGNED:
            return True
        producer = context.producer(name)
        if producer is None or producer.domain not in ("", "ai.onnx"):
            return False
        if producer.op_type in _WITHOUT_NEGATIVES:
            return True
        if producer.op_type == "TopK":
            return name == producer.output[1]
        if producer.op_type not in _MOVING:
            return False
        name = producer.input[0]
    return False


def size_along(context: Context, name: str, axis: int, elem_type: int) -> str:
    """Return the size of a dimension of a tensor of any dtype, of rank 0 in `elem_type`, the dtype
    of the indices into it.
    """
    op = context.op
    known = context.type(name)
    if known is not None and known.dims is not None:
        rank = len(known.dims)
        if not -rank <= axis < rank:
            raise Blocked(f"its axis {axis} is out of range for rank {rank}", "mend the model")
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
    """Return indices of dtype `elem_type`, in their shape, with `size` (of rank 0) added to
    negative ones.

    ``indices + Cast(indices < 0) * size``; compared in float, which every opset does and which
    keeps the sign of every integer.
    """
    op = context.op
    zero = context.scalar(0.0, "zero")
    compared = cast(context, indices, TensorProto.FLOAT)
    below = cast(context, op.Less(compared, zero), elem_type)
    added = op.Mul(below, size)
    return op.Add(indices, added)
