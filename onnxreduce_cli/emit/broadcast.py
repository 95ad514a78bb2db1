"""Broadcasting by Tile, at opsets whose operators do not broadcast and that have no Expand.

The nodes emitted here are read at opset 6 or 7, where Tile takes a count for each dimension. Binary
operators get inputs of equal shapes, which mean the same with and without broadcasting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT, Number, as_name, sizes
from onnxreduce_cli.emit.refusals import OR_STATE_SHAPES
from onnxreduce_cli.emit.sizes import dims_of, static_dims
from onnxreduce_cli.model.graph.values import MOST_DIMS, Dims, numpy_dtype, tensor_type

_MEND = "mend the model: give it inputs that broadcast, or state their true shapes in value_info"

#: One dimension: a number, a name, or nothing known.
Dim = int | str | None


def may_need_broadcast(dims: Dims, other: Dims) -> bool:
    """Return whether a tensor of shape `dims` may need broadcasting to the shape `other`."""
    rank = max(len(dims), len(other))
    return any(map(_may_grow, padded(dims, rank), padded(other, rank)))


def _may_grow(dim: Dim, other: Dim) -> bool:
    """Return whether a dimension may be 1 where another may be larger."""
    if other == 1 or (isinstance(dim, int) and dim != 1):
        return False
    return dim is None or dim != other


def padded(dims: Dims, rank: int) -> Dims:
    """Return a shape with dimensions of 1 before it, to have rank `rank`."""
    return (1,) * (rank - len(dims)) + dims


def broadcast_dims(shapes: Sequence[Dims]) -> Dims:
    """Return the shape that tensors are broadcast to together, as far as it is known."""
    rank = max(map(len, shapes))
    return tuple(map(_common, zip(*(padded(dims, rank) for dims in shapes), strict=True)))


def _common(dims: tuple[Dim, ...]) -> Dim:
    """Return the dimension that several are broadcast to; None where it is not known."""
    others = {dim for dim in dims if dim != 1}
    numbers = [dim for dim in others if isinstance(dim, int)]
    if numbers:
        return numbers[0]
    return others.pop() if len(others) == 1 else None if others else 1


def broadcast_together(context: Context, names: Sequence[str]) -> list[str]:
    """Return the values, each broadcast to their common shape.

    They may have any dtypes, and keep them, like all values in this module.
    """
    if any(context.specialised_rank(name) is None for name in names):
        longest = reduce(partial(aligned, context), names)
        names = [longest, *(aligned(context, name, longest) for name in names[1:])]
    return [broadcast_with(context, name, [n for n in names if n != name]) for name in names]


def broadcast_with(context: Context, name: str, others: Sequence[str]) -> str:
    """Return the value broadcast to the common shape of it and the others.

    Which of its dimensions are 1 may be known at run time only. If a rank is not known, all must
    have the same rank.
    """
    shapes = [dims_of(context, value) for value in (name, *others)]
    ranked = [dims for dims in shapes if dims is not None]
    if len(ranked) < len(shapes):
        for other in others:
            name = _tiled(context, name, context.op.Shape(other), None)
        return name
    wanted = broadcast_dims(ranked)
    found = _by_known_counts(context, name, wanted)
    if found is not None:
        return found
    name, own = _lengthened(context, name, len(wanted)), ranked[0]
    for other, dims in zip(others, ranked[1:], strict=True):
        if may_need_broadcast(own, dims):
            own = broadcast_dims([own, dims])
            name = _tiled(context, name, _sizes(context, other, len(wanted)), own)
    return name


def broadcast_to(context: Context, name: str, wanted: Dims, sizes: Callable[[], str]) -> str:
    """Return the value broadcast to a shape of its own rank.

    Args:
        context: the node.
        name: the value.
        wanted: the shape, as far as it is known.
        sizes: emits the shape at run time, int64 of shape [rank].
    """
    found = _by_known_counts(context, name, wanted) if context.rank(name) is not None else None
    return found or _tiled(context, name, sizes(), wanted)


def _by_known_counts(context: Context, name: str, wanted: Dims) -> str | None:
    """Return the value broadcast to a shape; None where the counts are not known.

    Raises:
        Blocked: the value has more dimensions, or is a constant that does not fit.
    """
    rank = len(dims_of(context, name) or ())
    if rank > len(wanted):
        raise Blocked(f"{name!r} of rank {rank} does not broadcast to {list(wanted)}", _MEND)
    sizes = static_dims(wanted)
    constant = context.constant(name) if sizes is not None else None
    small = sizes is not None and np.prod(sizes, dtype=float) <= LARGEST_CONSTANT
    if constant is not None and sizes is not None and small:
        try:
            expanded = np.broadcast_to(constant, sizes)
        except ValueError as error:
            raise Blocked(f"{name!r} does not broadcast to {list(sizes)}", _MEND) from error
        return context.array(np.array(expanded, order="C"), "expanded")
    own = padded(dims_of(context, name) or (), len(wanted))
    counts = [
        size if dim == 1 else 1 if not _may_grow(dim, size) else None
        for dim, size in zip(own, wanted, strict=True)
    ]
    known = static_dims(tuple(counts))
    if known is None:
        return None
    name = _lengthened(context, name, len(wanted))
    if all(count == 1 for count in known):
        return name
    return context.op.Tile(name, context.array(known, "repeats"))


def _lengthened(context: Context, name: str, rank: int) -> str:
    """Return the value with dimensions of 1 before its own, to have rank `rank`."""
    missing = rank - len(dims_of(context, name) or ())
    return _unsqueezed(context, name, list(range(missing)))


def _unsqueezed(context: Context, name: str, axes: list[int]) -> str:
    """Return the value with dimensions of 1 inserted at `axes` of the result.

    A constant stays one.
    """
    constant = context.constant(name) if axes else None
    if constant is not None and constant.ndim + len(axes) <= MOST_DIMS:
        return context.array(np.expand_dims(constant, axes), "aligned")
    return context.op.Unsqueeze(name, axes=axes) if axes else name


def _sizes(context: Context, name: str, rank: int) -> Value:
    """Return a tensor's shape with 1 for each dimension that it lacks, int64 of shape [rank]."""
    op = context.op
    sizes = op.Shape(name)
    missing = rank - len(dims_of(context, name) or ())
    if not missing:
        return sizes
    return op.Concat(context.array([1] * missing, "ones"), sizes, axis=0)


def _tiled(context: Context, name: str, sizes: str, wanted: Dims | None) -> Value:
    """Return the value with each dimension of 1 repeated to its size in `sizes`.

    The sizes are int64 of shape [rank]; `wanted` is the shape of the result, as far as it is known.
    """
    context.require_specialised(f"how often {name!r} is repeated")
    own = dims_of(context, name)
    if own is not None and all(dim == 1 for dim in own):
        repeats = sizes
    else:
        repeats = _repeats(context, name, sizes)
    elem_type = context.elem_type(name)
    like = None if elem_type is None else tensor_type(elem_type, wanted)
    return context.op.Tile(name, repeats, like=like)


def _repeats(context: Context, name: str, sizes: str) -> Value:
    """Return ``single * (sizes - 1) + 1``, with `single` 1 where the dimension is 1, and else 0.

    Sizes and result are int64 of shape [rank].
    """
    op = context.op
    own = dims_of(context, name)
    one = context.array([1] * (1 if own is None else len(own)), "ones")
    numbers = static_dims(own)
    if numbers is None:
        same = op.Equal(op.Shape(name), one)
        single = cast(context, same, TensorProto.INT64)
    else:
        single = context.array([int(number == 1) for number in numbers], "is_one")
    more = op.Sub(sizes, one)
    extra = op.Mul(single, more)
    return op.Add(extra, one)


# Where a rank is only known at run time


def placed_within(context: Context, name: str, outer: str) -> str:
    """Return a node's input with dimensions of 1 after its own, so that it broadcasts to `outer`.

    The attribute ``axis`` says where its dimensions belong; by default at the end of `outer`.
    """
    axis = context.value("axis")
    if axis is None:
        return name
    rank, inner = context.specialised_rank(outer), context.specialised_rank(name)
    if inner is None or (rank is None and axis >= 0):
        return trailing_ones(context, name, _behind(context, axis, name, outer))
    behind = (-axis if rank is None else rank - (axis % rank if rank else 0)) - inner
    if behind <= 0 or not inner:
        return name
    return _unsqueezed(context, name, list(range(inner, inner + behind)))


def _behind(context: Context, axis: int, name: str, outer: str) -> Value:
    """Return how many dimensions `outer` has after those of a value that belongs at `axis`.

    The result is int64 of shape [1].
    """
    op = context.op
    if axis < 0:
        from_axis = context.array([-axis], "from_axis")
    else:
        from_axis = op.Sub(rank_of(context, outer), context.array([axis], "axis"))
    return op.Sub(from_axis, rank_of(context, name))


def trailing_ones(context: Context, name: str, count: str) -> Value:
    """Return the value with `count` dimensions of 1 after its own.

    The count is int64 of shape [1].
    """
    op = context.op
    shape = op.Concat(op.Shape(name), ones(context, sizes(context, count)), axis=0)
    return op.Reshape(name, shape)


def ones(context: Context, count: Number) -> Value:
    """Return `count` ones, int64 of shape [count]."""
    if isinstance(count, int):
        return context.array([1] * count, "ones")
    return context.op.Tile(context.array([1], "one"), as_name(context, count))


def rank_of(context: Context, name: str, elem_type: int = TensorProto.INT64) -> Value:
    """Return the rank of a tensor, of shape [1] in the dtype `elem_type`."""
    op = context.op
    rank = context.rank(name)
    if rank is not None:
        return context.array(np.array([rank], numpy_dtype(elem_type)), "rank")
    found = op.Shape(op.Shape(name))
    return found if elem_type == TensorProto.INT64 else cast(context, found, elem_type)


def aligned(context: Context, name: str, other: str) -> str:
    """Return the value with dimensions of 1 before its own, to have the rank of the other one.

    It keeps its rank if that is higher.

    Raises:
        Blocked: a rank is not known.
    """
    own, wanted = context.specialised_rank(name), context.specialised_rank(other)
    if own is None or wanted is None:
        unknown = name if own is None else other
        raise Blocked(
            f"the rank of {unknown!r} is not known, and before opset 8 nothing gives values of "
            "unknown ranks one rank",
            f"choose opset 8 or later{OR_STATE_SHAPES}",
            rank_of=unknown,
        )
    return _lengthened(context, name, max(own, wanted))
