"""The kinds of tensors that represent a sequence, and conversion of one to another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.containers.emitter import Emitter, is_static
from onnxreduce_cli.containers.values import (
    Given,
    Listed,
    Packed,
    Sequence,
    Stacked,
    TensorType,
    UnwritableError,
    parts,
    shared,
    types,
)
from onnxreduce_cli.model.graph.values import Dims

#: What a Loop collects: what a round gives, and its type.
Collected = tuple[str, TensorType]

_STATE = "state the shapes of what it holds in the model's value_info"


class SequenceKinds:
    """Writes the conversion of a sequence from one kind to another.

    Args:
        op: writes nodes.
    """

    def __init__(self, op: Emitter) -> None:
        self._op = op

    def element_dims(self, sequence: Sequence) -> Dims | None:
        """Return the dimensions that all elements have in common; None where there is no element.

        Raises:
            UnwritableError: not even the rank is known, or it is not the same for all.
        """
        if isinstance(sequence, Packed):
            return (None,) * sequence.rank
        if isinstance(sequence, Stacked):
            return sequence.dims
        if isinstance(sequence, Listed):
            return _common(map(known_dims, sequence.items, sequence.dims))
        if sequence.dims is None:
            raise UnwritableError(f"the rank of what {sequence.name!r} holds is not known", _STATE)
        return sequence.dims

    def joined(self, first: Sequence, second: Sequence) -> Sequence:
        """The kind that either can be brought to, as a sequence whose parts mean nothing."""
        if (
            isinstance(first, Listed)
            and isinstance(second, Listed)
            and len(first.items) == len(second.items)
        ):
            dims = tuple(map(shared, first.dims, second.dims))
            return Listed(first.items, first.elem_type, dims)
        found = [self.element_dims(item) for item in (first, second)]
        return counted_kind(first.elem_type, [dims for dims in found if dims is not None])

    def alone(self, sequence: Sequence) -> Sequence:
        """The kind of a sequence, or the one that stands for it where it cannot stay as given."""
        if isinstance(sequence, Given):
            return self.joined(sequence, Listed((), sequence.elem_type, ()))
        return sequence

    def brought_to(self, sequence: Sequence, kind: Sequence) -> Sequence:
        """The sequence as one of a kind that it was joined to."""
        if isinstance(kind, Stacked):
            return self._stacked(sequence, kind.dims)
        if isinstance(kind, Packed):
            return self.packed(sequence, kind.rank)
        return sequence

    def counted(self, sequence: Sequence) -> Stacked | Packed:
        """The sequence as one whose length only counts at run time."""
        if isinstance(sequence, (Stacked, Packed)):
            return sequence
        dims = self.element_dims(sequence)
        kind = counted_kind(sequence.elem_type, [] if dims is None else [dims])
        counted = self.brought_to(sequence, kind)
        assert isinstance(counted, (Stacked, Packed))
        return counted

    def _stacked(self, sequence: Sequence, dims: Dims) -> Stacked:
        if isinstance(sequence, Stacked):
            return sequence
        op = self._op
        elem_type = sequence.elem_type
        if isinstance(sequence, Given):
            length = op.SequenceLength(sequence.name)

            def write(place: str, _: list[str]) -> tuple[list[str], list[Collected]]:
                item = op.SequenceAt(sequence.name, op.scalar(place))
                return [], [(item, (elem_type, dims))]

            return Stacked(op.loop(length, [], write)[0], elem_type, dims)
        assert isinstance(sequence, Listed)
        if not sequence.items:
            sizes = tuple(dim for dim in dims if isinstance(dim, int))
            return Stacked(op.filled((0, *sizes), elem_type), elem_type, dims)
        unsqueezed = [op.unsqueezed(item, 0) for item in sequence.items]
        return Stacked(op.Concat(*unsqueezed, axis=0), elem_type, dims)

    def packed(self, sequence: Sequence, rank: int) -> Packed:
        """The sequence, of tensors of this rank, as one of elements of any shape."""
        op, elem_type = self._op, sequence.elem_type
        if isinstance(sequence, Packed):
            return sequence
        if isinstance(sequence, Stacked):
            shape = op.Shape(sequence.stack)
            length = op.part(shape, op.ints(0), op.ints(1))
            dims = op.part(shape, op.ints(1))
            each = op.ReduceProd(dims, keepdims=1)
            more = op.Add(length, op.ints(1))
            limits = [op.constant(np.array(n), "limit") for n in (0, 1)]
            numbers = op.Range(limits[0], op.scalar(more), limits[1])
            ends = op.Mul(numbers, each)
            repeated = op.Concat(length, op.ints(rank), axis=0)
            shapes = op.Expand(dims, repeated)
            return Packed(op.flat(sequence.stack), ends, shapes, elem_type, rank)
        empty = Packed(
            op.filled((0,), elem_type),
            op.ints(0),
            op.filled((0, rank), TensorProto.INT64),
            elem_type,
            rank,
        )
        if isinstance(sequence, Listed):
            found = empty
            for item in sequence.items:
                found = self.appended(found, item)
            return found
        length = op.SequenceLength(sequence.name)

        def write(place: str, current: list[str]) -> tuple[tuple[str, ...], list[Collected]]:
            item = op.SequenceAt(sequence.name, op.scalar(place))
            return parts(self.appended(packed_of(empty, current), item)), []

        carried = list(zip(parts(empty), types(empty), strict=True))
        return packed_of(empty, op.loop(length, carried, write))

    def appended(self, sequence: Packed, item: str) -> Packed:
        """The sequence with one more element at its end."""
        op = self._op
        values = op.Concat(sequence.values, op.flat(item), axis=0)
        last = op.Gather(sequence.ends, op.ints(-1), axis=0)
        end = op.Add(last, op.size(item))
        shape = op.unsqueezed(op.Shape(item), 0)
        shapes = op.Concat(sequence.shapes, shape, axis=0)
        ends = op.Concat(sequence.ends, end, axis=0)
        return replace(sequence, values=values, ends=ends, shapes=shapes)


def counted_kind(elem_type: int, known: list[Dims]) -> Stacked | Packed:
    """Return the kind for a sequence whose elements have any of these dimensions."""
    dims = _common(known)
    if dims is None:
        return Packed("", "", "", elem_type, 1)
    return (
        Stacked("", elem_type, dims)
        if is_static(dims)
        else Packed("", "", "", elem_type, len(dims))
    )


def _common(found: Iterable[Dims]) -> Dims | None:
    """Return the dimensions that several shapes have in common; None where there are none.

    Raises:
        UnwritableError: they differ in number.
    """
    common: Dims | None = None
    for dims in found:
        if common is None:
            common = tuple(dim if isinstance(dim, int) else None for dim in dims)
            continue
        if len(dims) != len(common):
            raise UnwritableError(
                "the tensors of its sequence differ in rank, and how many there are is only known "
                "at run time",
                "choose an opset that has sequences there",
            )
        common = tuple(a if a == b else None for a, b in zip(common, dims, strict=True))
    return common


def packed_of(kind: Packed, names: list[str]) -> Packed:
    """A packed sequence of the three tensors named."""
    values, ends, shapes = names
    return replace(kind, values=values, ends=ends, shapes=shapes)


def known_dims(name: str, dims: Dims | None) -> Dims:
    """Return the known dimensions of a sequence's element.

    Raises:
        UnwritableError: not even the rank is known.
    """
    if dims is None:
        raise UnwritableError(f"the rank of {name!r} is not known, which it holds", _STATE)
    return dims
