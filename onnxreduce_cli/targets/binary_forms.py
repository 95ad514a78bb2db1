"""Forms of arithmetic of two operands: constant, broadcast, and what is next to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from onnx import NodeProto

from onnxreduce_cli.emit.dtypes import INTEGERS
from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.model.graph.values import Dims
from onnxreduce_cli.targets.reduction_forms import reduction_axes

#: For each operator that divides by a norm, the chains of operators that compute the norm, the
#: last one first.
_NORMS = {
    "Div": (
        ("ReduceL2",),
        ("Expand", "Clip", "ReduceL2"),
        ("Add", "Sqrt", "ReduceSum", "Pow"),
    ),
    "Mul": (
        ("Reciprocal", "Sqrt", "Max", "ReduceSum", "Mul"),
        ("Div", "Sqrt", "Clip", "ReduceSum", "Mul"),
    ),
}


def computes_integers(node: NodeFacts) -> bool:
    """Return whether the node computes integers of rank 2 or more, one operand being constant.

    Integers of a lower rank are sizes, which runtimes compute before the model runs.
    """
    made = node.node.output[0]
    # Most nodes have no integers, and the dtype is the cheapest question.
    if node.elem_type(made) not in INTEGERS:
        return False
    rank = node.rank(made)
    if rank is not None and rank < 2:
        return False
    return [constant_shape(node, name) is None for name in node.node.input].count(False) == 1


def has_smaller_constant(node: NodeFacts) -> bool:
    """Return whether an operand is constant and broadcast along more than the other's channels.

    Scalars, and constants with one value for each channel, [1, C, 1, 1], are so common that every
    runtime takes them.
    """
    names = [node.input(index) for index in (0, 1)]
    for name, other in (names, reversed(names)):
        shape = constant_shape(node, name)
        if shape is None or math.prod(shape) == 1:
            continue
        found = node.type(other)
        dims = None if found is None else found.dims
        if dims is None or (shape != dims and not _per_channel(shape, len(dims))):
            return True
    return False


def is_broadcast(node: NodeFacts) -> bool:
    """Return whether no operand is constant and one is broadcast, other than per channel.

    The second operand may be [1, C, H, W], [1, C, H, 1] or [1, C, 1, 1], not [N, C, 1, 1] or
    [1, C, 1, W], and not the first.
    """
    axes = _broadcast_axes(node)
    if axes is None:
        return False
    found = (node.type(node.input(index)) for index in (0, 1))
    first, second = (() if known is None else known.dims or () for known in found)
    smaller_first = any(one == 1 != other for one, other in zip(first, second, strict=False))
    return smaller_first or "e" in axes[:1] or "b" in axes[1:2] or axes[2:] == "be"


def is_broadcast_before_image(node: NodeFacts) -> bool:
    """Return whether no operand is constant and one is broadcast, other than along a whole image.

    An operand may be [N, C, 1, 1], not [N, 1, H, W] or [N, C, H, 1].
    """
    axes = _broadcast_axes(node)
    return axes is not None and (len(axes) < 3 or "b" in axes[:2] or "e" in axes[2:])


def _broadcast_axes(node: NodeFacts) -> str | None:
    """Return how each axis of two operands is broadcast; None where none is, or for constants.

    A letter stands for each axis: ``e`` for equal sizes, ``b`` for one that is broadcast, and ``s``
    for sizes of 1. Unknown sizes are equal. If both operands are broadcast, all axes are ``b``.
    """
    names = [node.input(index) for index in (0, 1)]
    found = (node.type(name) for name in names)
    first, second = (None if known is None else known.dims for known in found)
    if first is None or second is None or first == second:
        return None
    # The second operand is constant more often, so it is the one to look at first.
    if any(constant_shape(node, name) is not None for name in reversed(names)):
        return None
    rank = max(len(first), len(second))
    sides = [(1,) * (rank - len(dims)) + tuple(dims) for dims in (first, second)]
    ones = [(one == 1, other == 1) for one, other in zip(*sides, strict=True)]
    if len(first) != len(second) or ((True, False) in ones and (False, True) in ones):
        return "b" * rank
    axes = "".join("s" if all(pair) else "b" if any(pair) else "e" for pair in ones)
    return axes if "b" in axes else None


def is_broadcast_within(node: NodeFacts) -> bool:
    """Return whether no operand is constant and one is broadcast along an axis between others."""
    shapes = _broadcast_shapes(node)
    if shapes is None:
        return False
    rank = max(map(len, shapes))
    first, second = ((1,) * (rank - len(dims)) + dims for dims in shapes)
    return _is_within(first, second) or _is_within(second, first)


def _is_within(smaller: Dims, larger: Dims) -> bool:
    own = [axis for axis, dim in enumerate(smaller) if dim != 1]
    inner = range(own[0], own[-1]) if own else range(0)
    return any(smaller[axis] == 1 != larger[axis] for axis in inner)


def is_smaller_first(node: NodeFacts) -> bool:
    """Return whether neither of two operands is constant and the first is broadcast."""
    shapes = _broadcast_shapes(node)
    found = node.type(node.input(0))
    return shapes is not None and found is not None and found.dims == shapes[0]


def _broadcast_shapes(node: NodeFacts) -> tuple[Dims, Dims] | None:
    """Return two operands' shapes, if they differ, the smaller first; None for matrices."""
    names = [node.input(index) for index in (0, 1)]
    found = (node.type(name) for name in names)
    first, second = (None if known is None else known.dims for known in found)
    if first is None or second is None or first == second or max(len(first), len(second)) < 3:
        return None
    # The second operand is constant more often, so it is the one to look at first.
    if any(constant_shape(node, name) is not None for name in reversed(names)):
        return None
    smaller, larger = sorted((first, second), key=lambda dims: sum(dim != 1 for dim in dims))
    return smaller, larger


def has_constant_operand(node: NodeFacts) -> bool:
    """Return whether an operand is constant."""
    return any(constant_shape(node, name) is not None for name in node.node.input)


def constant_shape(node: NodeFacts, name: str) -> tuple[int, ...] | None:
    """Return the shape of a constant, or of an initializer that is an input, too; else None.

    A runtime treats that as constant, although a caller may override it.
    """
    array = node.constant(name)
    if array is not None:
        return array.shape
    return node.initializer_dims(name)


def is_scaled_next(node: NodeFacts) -> bool:
    """Return whether the next node may multiply the output by one number, or add one to it."""
    readers = node.readers(node.node.output[0])
    return readers is None or any(_may_scale(node, reader) for reader in readers)


def _may_scale(node: NodeFacts, reader: NodeProto) -> bool:
    if reader.op_type in _ARITHMETIC:
        given = reader.input[1:] if reader.op_type == "Div" else reader.input
        return any(_is_one_number(node, name) for name in given)
    return not (reader.op_type in _NEVER_SCALE or reader.op_type.startswith("Reduce"))


def _is_one_number(node: NodeFacts, name: str) -> bool:
    shape = constant_shape(node, name)
    return shape is not None and math.prod(shape) == 1


#: Binary operators that scale or shift where one operand is a constant number.
_ARITHMETIC = {"Add", "Sub", "Mul", "Div"}

#: Operators that neither scale nor shift, and whose replacements do not begin by that either.
_NEVER_SCALE = {"Concat", "MatMul", "Pow", "Sqrt"}


def _per_channel(shape: tuple[int, ...], rank: int) -> bool:
    places = [index + rank - len(shape) for index, dim in enumerate(shape) if dim != 1]
    return places == [1]


def has_operand_of_rank_1(node: NodeFacts) -> bool:
    """Return whether an operand that is not constant is of rank 1 and another of a higher rank."""
    found = [(name, node.type(name)) for name in node.node.input]
    ranks = {name: None if known is None else known.rank for name, known in found}
    small = any(rank == 1 and constant_shape(node, name) is None for name, rank in ranks.items())
    return small and any(rank is not None and rank > 1 for rank in ranks.values())


def has_more_than_two(node: NodeFacts) -> bool:
    """Return whether there are more than two operands."""
    return len(node.node.input) > 2


def is_broadcast_of_rank_5(node: NodeFacts) -> bool:
    """Return whether an operand of rank 5 or more is broadcast, but not along its first axis."""
    shapes = _broadcast_shapes(node)
    if shapes is None:
        return False
    smaller, larger = shapes
    return 5 <= len(larger) == len(smaller) and smaller[0] != 1


def divides_by_norm(node: NodeFacts) -> bool:
    """Return whether the node divides by a norm over other axes than 1: ReduceL2<axes=[2]>(x)."""
    found = _division_by_norm(node)
    return found is not None and reduction_axes(found.reduction) != (1,)


def divides_by_norm_of_another(node: NodeFacts) -> bool:
    """Return whether the node divides by the norm of another value, over several axes or one that
    is not kept.
    """
    found = _division_by_norm(node)
    if found is None:
        return False
    axes = reduction_axes(found.reduction)
    return (
        axes is None
        or len(axes) != 1
        or found.data != found.divided
        or not found.reduction.value("keepdims", 1)
    )


class _DivisionByNorm(NamedTuple):
    """A division by a norm.

    Attributes:
        reduction: the node that reduces.
        data: the value whose norm it is.
        divided: the value that is divided.
    """

    reduction: NodeFacts
    data: str
    divided: str


def _division_by_norm(node: NodeFacts) -> _DivisionByNorm | None:
    divided, by = node.input(0), node.input(1)
    pairs = [(divided, by), (by, divided)] if node.node.op_type == "Mul" else [(divided, by)]
    for other, name in pairs:
        for chain in _NORMS.get(node.node.op_type, ()):
            made = _producer_chain(node, name, chain)
            if made:
                reduction = next(item for item in made if item.op_type.startswith("Reduce"))
                return _DivisionByNorm(node.about(reduction), made[-1].input[0], other)
    return None


def _producer_chain(node: NodeFacts, name: str, chain: Sequence[str]) -> list[NodeProto]:
    """Return the nodes of a chain of operators that computes a value, the last one first."""
    maker = node.maker(name)
    if maker is None or maker.op_type != chain[0]:
        return []
    if len(chain) == 1:
        return [maker]
    found = (_producer_chain(node, given, chain[1:]) for given in maker.input)
    rest = next((nodes for nodes in found if nodes), None)
    return [maker, *rest] if rest else []
