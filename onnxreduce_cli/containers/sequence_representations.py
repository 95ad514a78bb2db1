"""Common representations of sequences, and conversion of one to another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from onnx import TensorProto

from onnxreduce_cli.containers.emitter import Emitter, is_static
from onnxreduce_cli.containers.values import (
    ListedSequence,
    PackedSequence,
    SequenceValue,
    StackedSequence,
    TensorType,
    UnchangedContainer,
    UnwritableError,
    shared,
    tensor_names,
    tensor_types,
)
from onnxreduce_cli.model.graph.values import Dims

#: A scan output of a Loop's body: its name and type in one round.
Collected = tuple[str, TensorType]

_STATE = "state the shapes of what it holds in the model's value_info"


class SequenceUnifier:
    """Converts sequences from one representation to another.

    Args:
        op: emits nodes.
    """

    def __init__(self, op: Emitter) -> None:
        self._op = op

    def element_dims(self, sequence: SequenceValue) -> Dims | None:
        """Return the dimensions that all elements have in common; None if there are no elements.

        Raises:
            UnwritableError: the rank is not known, or not the same for all.
        """
        if isinstance(sequence, PackedSequence):
            return (None,) * sequence.rank
        if isinstance(sequence, StackedSequence):
            return sequence.dims
        if isinstance(sequence, ListedSequence):
            return _common(map(require_element_dims, sequence.items, sequence.dims))
        if sequence.dims is None:
            raise UnwritableError(f"the rank of what {sequence.name!r} holds is not known", _STATE)
        return sequence.dims

    def common(self, first: SequenceValue, second: SequenceValue) -> SequenceValue:
        """Return a representation that both can be converted to; its tensors mean nothing."""
        if (
            isinstance(first, ListedSequence)
            and isinstance(second, ListedSequence)
            and len(first.items) == len(second.items)
        ):
            dims = tuple(map(shared, first.dims, second.dims))
            return ListedSequence(first.items, first.elem_type, dims)
        found = [self.element_dims(item) for item in (first, second)]
        return counted_representation(first.elem_type, [dims for dims in found if dims is not None])

    def without_unchanged(self, sequence: SequenceValue) -> SequenceValue:
        """Return the representation of a sequence as tensors, also if it is unchanged so far."""
        if isinstance(sequence, UnchangedContainer):
            return self.common(sequence, ListedSequence((), sequence.elem_type, ()))
        return sequence

    def converted(self, sequence: SequenceValue, kind: SequenceValue) -> SequenceValue:
        """Return the sequence in a common representation."""
        if isinstance(kind, StackedSequence):
            return self._stacked(sequence, kind.dims)
        if isinstance(kind, PackedSequence):
            return self.packed(sequence, kind.rank)
        return sequence

    def counted(self, sequence: SequenceValue) -> StackedSequence | PackedSequence:
        """Return the sequence in a representation whose length is only known at run time."""
        if isinstance(sequence, (StackedSequence, PackedSequence)):
            return sequence
        dims = self.element_dims(sequence)
        kind = counted_representation(sequence.elem_type, [] if dims is None else [dims])
        counted = self.converted(sequence, kind)
        assert isinstance(counted, (StackedSequence, PackedSequence))
        return counted

    def _stacked(self, sequence: SequenceValue, dims: Dims) -> StackedSequence:
        if isinstance(sequence, StackedSequence):
            return sequence
        op = self._op
        elem_type = sequence.elem_type
        if isinstance(sequence, UnchangedContainer):
            length = op.SequenceLength(sequence.name)

            def write(place: str, _: list[str]) -> tuple[list[str], list[Collected]]:
                item = op.SequenceAt(sequence.name, op.scalar(place))
                return [], [(item, (elem_type, dims))]

            return StackedSequence(op.loop(length, [], write)[0], elem_type, dims)
        assert isinstance(sequence, ListedSequence)
        if not sequence.items:
            sizes = tuple(dim for dim in dims if isinstance(dim, int))
            return StackedSequence(op.filled((0, *sizes), elem_type), elem_type, dims)
        unsqueezed = [op.unsqueezed(item, 0) for item in sequence.items]
        return StackedSequence(op.Concat(*unsqueezed, axis=0), elem_type, dims)

    def packed(self, sequence: SequenceValue, rank: int) -> PackedSequence:
        """Return a sequence of tensors of rank `rank` as packed."""
        op, elem_type = self._op, sequence.elem_type
        if isinstance(sequence, PackedSequence):
            return sequence
        if isinstance(sequence, StackedSequence):
            shape = op.Shape(sequence.stack)
            length = op.Gather(shape, op.ints(0), axis=0)
            dims = op.part(shape, op.ints(1))
            each = op.ReduceProd(dims, keepdims=1)
            ends = op.Mul(op.counted(op.Add(length, op.ints(1))), each)
            repeated = op.Concat(length, op.ints(rank), axis=0)
            shapes = op.Expand(dims, repeated)
            return PackedSequence(op.flat(sequence.stack), ends, shapes, elem_type, rank)
        empty = PackedSequence(
            op.filled((0,), elem_type),
            op.ints(0),
            op.filled((0, rank), TensorProto.INT64),
            elem_type,
            rank,
        )
        if isinstance(sequence, ListedSequence):
            found = empty
            for item in sequence.items:
                found = self.appended(found, item)
            return found
        length = op.SequenceLength(sequence.name)

        def write(place: str, current: list[str]) -> tuple[tuple[str, ...], list[Collected]]:
            item = op.SequenceAt(sequence.name, op.scalar(place))
            return tensor_names(self.appended(packed_from_tensors(empty, current), item)), []

        carried = list(zip(tensor_names(empty), tensor_types(empty), strict=True))
        return packed_from_tensors(empty, op.loop(length, carried, write))

    def appended(self, sequence: PackedSequence, item: str) -> PackedSequence:
        """Return the sequence with an element appended."""
        op = self._op
        values = op.Concat(sequence.values, op.flat(item), axis=0)
        last = op.Gather(sequence.ends, op.ints(-1), axis=0)
        end = op.Add(last, op.size(item))
        shape = op.unsqueezed(op.Shape(item), 0)
        shapes = op.Concat(sequence.shapes, shape, axis=0)
        ends = op.Concat(sequence.ends, end, axis=0)
        return replace(sequence, values=values, ends=ends, shapes=shapes)


def counted_representation(elem_type: int, known: list[Dims]) -> StackedSequence | PackedSequence:
    """Return the representation of sequences of run-time length for elements of these shapes."""
    dims = _common(known)
    if dims is None:
        return PackedSequence("", "", "", elem_type, 1)
    return (
        StackedSequence("", elem_type, dims)
        if is_static(dims)
        else PackedSequence("", "", "", elem_type, len(dims))
    )


def _common(found: Iterable[Dims]) -> Dims | None:
    """Return the dimensions that several shapes have in common; None for no shapes.

    Raises:
        UnwritableError: their ranks differ.
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


def packed_from_tensors(kind: PackedSequence, names: list[str]) -> PackedSequence:
    """Return a packed sequence with the tensors named."""
    values, ends, shapes = names
    return replace(kind, values=values, ends=ends, shapes=shapes)


def require_element_dims(name: str, dims: Dims | None) -> Dims:
    """Return the dimensions of a sequence's element.

    Raises:
        UnwritableError: the rank is not known.
    """
    if dims is None:
        raise UnwritableError(f"the rank of {name!r} is not known, which it holds", _STATE)
    return dims
