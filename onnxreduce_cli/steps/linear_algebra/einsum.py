"""Einsum below opset 12: transpositions, matrix products and sums.

The operands are joined two at a time. In a product of two, each label is one of

- batch: in both, and still needed;
- left or right: in one of them only, and still needed; the last of each kind is a row or column
  of the matrix product, the others are dimensions of 1 in the operand that lacks them;
- contracted: in both, and not needed any more.

No dimension's size needs to be known.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onnxreduce_cli.emit.axes import reduced, squeezed, unsqueezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT, Number, as_name
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.sizes import arange, dims_of, size_of, static_dims
from onnxreduce_cli.model.gate.equations import is_equation
from onnxreduce_cli.steps.registry import introduced
from onnxreduce_cli.text import quoted

#: Operands that are written out one after the other.
MOST_OPERANDS = 100


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor with a label for each of its dimensions."""

    name: str
    labels: tuple[str, ...]


@introduced(
    "Einsum",
    12,
    "Transpose, MatMul and ReduceSum",
    blocks="the rank of what has an ellipsis is not known, it has more than 100 operands, or "
    f"{NO_COUNTING}",
)
def einsum(context: Context) -> None:
    """``Einsum<equation="bij,bkj->bik">(x, y)`` becomes
    ``MatMul(x, Transpose<perm=[0, 2, 1]>(y))``.
    """
    count = len(context.node.input)
    if count > MOST_OPERANDS:
        raise Blocked(
            f"it has {count:,} operands, and no more than {MOST_OPERANDS} are written out",
            "write it as several nodes",
        )
    operands, output = _parsed(context, context.value("equation"))
    operands = [_without_diagonals(context, operand) for operand in operands]
    _check_sizes(context, operands)
    result = operands[0]
    if len(operands) == 1:
        result = _without_unneeded(context, result, set(output))
    later = Counter(label for item in operands[1:] for label in set(item.labels))
    for other in operands[1:]:
        later -= Counter(set(other.labels))
        result = _joined(context, result, other, {*output, *later})
    perm = [result.labels.index(label) for label in output]
    if perm == sorted(perm):
        context.replace("Identity", [result.name], keep=())
    else:
        context.replace("Transpose", [result.name], keep=(), perm=perm)


def _parsed(context: Context, equation: str) -> tuple[list[Operand], tuple[str, ...]]:
    """Return the operands with their labels, and the output's labels.

    Dimensions that an ellipsis stands for are labelled by numbers counted from the end.

    Args:
        context: the context of the node.
        equation: its equation, such as "bij,bjk->bik"; without an arrow the output has the labels
            that occur once, in alphabetical order.

    Raises:
        Blocked: it is no equation, or a rank is not known, or does not fit the labels.
    """
    terms, arrow, right = equation.replace(" ", "").partition("->")
    listed = terms.split(",")
    if len(listed) != len(context.node.input) or not is_equation(equation):
        raise Blocked(
            f"its equation {quoted(equation)} does not describe its inputs",
            "mend the model: give it an equation with a term for each input",
        )
    operands = []
    widest = 0
    for name, term in zip(context.node.input, listed, strict=True):
        before, dots, after = term.partition("...")
        rank = context.rank(name)
        if rank is None and dots:
            rank = context.need_rank(name, "an ellipsis stands for as many dimensions as are left")
        elif rank is None:
            rank = len(before)
        hidden = rank - len(before) - len(after)
        if hidden < 0 or (hidden and not dots):
            raise Blocked(
                f"{term!r} does not fit the rank {rank} of {name!r}",
                "mend the model: give it an equation with a letter for each dimension",
            )
        widest = max(widest, hidden)
        operands.append(Operand(name, (*before, *_dots(hidden), *after)))
    if arrow:
        before, dots, after = right.partition("...")
        output = (*before, *(_dots(widest) if dots else ()), *after)
    else:
        count = Counter(terms)
        single = sorted(label for label in count if label.isalpha() and count[label] == 1)
        output = (*_dots(widest), *single)
    return operands, output


def _dots(count: int) -> tuple[str, ...]:
    """Return labels for the `count` dimensions that an ellipsis stands for."""
    return tuple(str(number) for number in range(count, 0, -1))


def _check_sizes(context: Context, operands: Sequence[Operand]) -> None:
    """Raise `Blocked` where one label stands for a 1 and another size, which a product repeats."""
    sizes: dict[str, set[int]] = {}
    for operand in operands:
        for label, dim in zip(operand.labels, dims_of(context, operand.name) or (), strict=False):
            if isinstance(dim, int) and label.isalpha():
                sizes.setdefault(label, set()).add(dim)
    for label, label_sizes in sizes.items():
        if len(label_sizes) > 1:
            raise Blocked(
                f"its label {label!r} stands for dimensions of sizes {sorted(label_sizes)}",
                "give both operands the same size",
            )


def _without_diagonals(context: Context, operand: Operand) -> Operand:
    """Return the operand with the diagonal of each two dimensions that have the same label.

    The two are moved to the end and reshaped to one of size n * n, whose every (n + 1)th element
    is gathered.

    Raises:
        Blocked: the two dimensions have different sizes.
    """
    op = context.op
    while True:
        twice = [label for label, count in Counter(operand.labels).items() if count > 1]
        if not twice:
            return operand
        label = twice[0]
        axes = [index for index, item in enumerate(operand.labels) if item == label][:2]
        others = [index for index in range(len(operand.labels)) if index not in axes]
        dims = dims_of(context, operand.name)
        size = None if dims is None else static_dims(tuple(dims[index] for index in axes))
        if size is not None and size[0] != size[1]:
            raise Blocked(
                f"its label {label!r} stands for dimensions of sizes {sorted(size)}",
                "mend the model: give them letters of their own",
            )
        shape: str
        diagonal: str
        length: Number = size[0] if size else size_of(context, operand.name, axes[0])
        name = operand.name
        perm = [*others, *axes]
        if perm != sorted(perm):
            name = op.Transpose(name, perm=perm)
        if isinstance(length, int) and length <= LARGEST_CONSTANT:
            shape = context.array([0] * len(others) + [length**2], "flat")
            diagonal = context.array(np.arange(length) * (length + 1), "diagonal")
        else:
            shape, diagonal = diagonal_at_run_time(context, length, len(others))
        name = op.Reshape(name, shape)
        name = op.Gather(name, diagonal, axis=len(others))
        operand = Operand(name, (*(operand.labels[index] for index in others), label))


def _without_unneeded(context: Context, operand: Operand, needed: set[str]) -> Operand:
    """Return the operand summed over the dimensions whose labels are not in `needed`."""
    axes = [index for index, label in enumerate(operand.labels) if label not in needed]
    name = reduced(context, "ReduceSum", operand.name, axes, keep=False)
    return Operand(name, tuple(label for label in operand.labels if label in needed))


def _joined(context: Context, left: Operand, right: Operand, needed: set[str]) -> Operand:
    """Return the product of two operands, summed over the labels that both have and none needs.

    Args:
        context: the context of the node.
        left: the first operand.
        right: the second operand.
        needed: the labels of the output and of the operands that come after these.
    """
    op = context.op
    left = _without_unneeded(context, left, needed | set(right.labels))
    right = _without_unneeded(context, right, needed | set(left.labels))
    shared = [label for label in left.labels if label in right.labels]
    contracted = [label for label in shared if label not in needed]
    batch = [label for label in shared if label in needed]
    only_left = [label for label in left.labels if label not in shared]
    only_right = [label for label in right.labels if label not in shared]
    if not contracted:
        labels = (*batch, *only_left, *only_right)
        inputs = [_arranged(context, operand, labels) for operand in (left, right)]
        return Operand(op.Mul(*inputs), labels)
    # Labels that are no row or column of the matrices are dimensions before them.
    outer = (*batch, *only_left[:-1], *only_right[:-1])
    row, column = only_left[-1:], only_right[-1:]
    merged = _merged_size(context, left, contracted)
    summed = [] if merged is not None else contracted[:-1]
    inner = contracted if merged is not None else contracted[-1:]
    outer = (*outer, *summed)
    first = _arranged(context, left, (*outer, *(row or [""]), *inner))
    if len(inner) > 1:
        # The dimensions to contract come last in both, so all others keep their indices.
        shape = context.array([0] * (len(outer) + 1) + [merged or 0], "merged")
        first = op.Reshape(first, shape)
        second = _arranged(context, right, (*outer, *(column or [""]), *inner))
        second = op.Reshape(second, shape)
        perm = [*range(len(outer)), len(outer) + 1, len(outer)]
        second = op.Transpose(second, perm=perm)
    else:
        second = _arranged(context, right, (*outer, *inner, *(column or [""])))
    name: str = op.MatMul(first, second)
    missing = [len(outer) + index for index, own in enumerate((row, column)) if not own]
    name = squeezed(context, name, missing)
    return _without_unneeded(context, Operand(name, (*outer, *row, *column)), needed)


def _merged_size(context: Context, operand: Operand, labels: list[str]) -> int | None:
    """Return the product of the sizes of the dimensions that have the given labels.

    It is None where a size is not known or 0, and where there are fewer than two.
    """
    dims = dims_of(context, operand.name)
    if dims is None or len(labels) < 2:
        return None
    known = static_dims(tuple(dims[operand.labels.index(label)] for label in labels))
    return math.prod(known) or None if known is not None else None


def _arranged(context: Context, operand: Operand, labels: Sequence[str]) -> str:
    """Return an operand's tensor with its dimensions in the order of `labels`.

    It has a dimension of 1 for each label that the operand lacks.
    """
    own = [label for label in labels if label in operand.labels]
    perm = [operand.labels.index(label) for label in own]
    name = operand.name
    if perm != sorted(perm):
        name = context.op.Transpose(name, perm=perm)
    axes = [index for index, label in enumerate(labels) if label not in operand.labels]
    return unsqueezed(context, name, axes)


def diagonal_at_run_time(context: Context, length: Number, leading: int) -> tuple[str, str]:
    """Return the shape that merges the last two dimensions, and their diagonal's indices in that.

    Args:
        context: the context of the node.
        length: the size of each of the two dimensions.
        leading: how many dimensions come before them.

    Returns:
        the shape, int64 of shape [leading + 1], and the indices, int64 of shape [length].
    """
    op = context.op
    whole = as_name(context, length * length)
    copied = context.array([0] * leading, "copied")
    shape = op.Concat(copied, whole, axis=0)
    apart = as_name(context, length + 1)
    return shape, op.Mul(arange(context, length), apart)
