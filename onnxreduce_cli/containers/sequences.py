"""The operators on sequences, written as nodes on the tensors that represent them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from onnx import NodeProto, TensorProto

from onnxreduce_cli.containers.emitter import is_static
from onnxreduce_cli.containers.sequence_kinds import (
    Collected,
    SequenceKinds,
    counted_kind,
    known_dims,
    packed_of,
)
from onnxreduce_cli.containers.values import (
    Given,
    Listed,
    Packed,
    Sequence,
    Stacked,
    UnwritableError,
    parts,
    types,
)
from onnxreduce_cli.model.graph.values import Dims


class Sequences(SequenceKinds):
    """Writes the operators on sequences as nodes on tensors.

    Args:
        op: writes nodes.
    """

    def length(self, sequence: Stacked | Packed, node: NodeProto | None = None) -> str:
        """SequenceLength: the number of elements, an int64 scalar; it replaces `node` if any."""
        op = self._op
        first = op.constant(np.array(0), "first")
        if isinstance(sequence, Stacked):
            return op.replace(node, "Gather", op.Shape(sequence.stack), first, axis=0)
        more = op.Gather(op.Shape(sequence.ends), first, axis=0)
        one = op.constant(np.array(1), "one")
        return op.replace(node, "Sub", more, one)

    def place(self, sequence: Stacked | Packed, position: int | str) -> str:
        """A position counted from the front, as a list of one int64.

        Args:
            sequence: in which.
            position: a number, or the name of an integer of one element; negative from the back.
        """
        op = self._op
        if isinstance(position, int) and position >= 0:
            return op.ints(position)
        length = op.Reshape(self.length(sequence), op.ints(1))
        if isinstance(position, int):
            return op.Add(length, op.ints(position))
        whole = op.Cast(position, to=TensorProto.INT64)
        place = op.Reshape(whole, op.ints(1))
        negative = op.Less(place, op.ints(0))
        return op.Where(negative, op.Add(place, length), place)

    def element(
        self,
        sequence: Stacked | Packed,
        place: str,
        node: NodeProto | None = None,
    ) -> str:
        """The element at a place that is a list of one int64, not negative.

        It comes in the place of `node`, if any.
        """
        op = self._op
        elem_type = sequence.elem_type
        if isinstance(sequence, Stacked):
            name: str = op.replace(node, "Gather", sequence.stack, op.scalar(place), axis=0)
            op.types.setdefault(name, (elem_type, sequence.dims))
            return name
        start = op.Gather(sequence.ends, place, axis=0)
        end = op.Gather(sequence.ends, op.Add(place, op.ints(1)), axis=0)
        values = op.part(sequence.values, start, end)
        shape = op.flat(op.Gather(sequence.shapes, place, axis=0))
        if sequence.rank == 1:
            name = op.replace(node, "Identity", values)
        else:
            name = self._in_shape(values, shape, sequence, node)
        op.types.setdefault(name, (elem_type, (None,) * sequence.rank))
        return name

    def _in_shape(self, values: str, shape: str, sequence: Packed, node: NodeProto | None) -> str:
        """Values in one dimension, in a shape in which there may be zeros.

        To Reshape these would stand for what was there, so that each is 1 there, with zeros for
        values, which are cut off again.
        """
        op = self._op
        if sequence.elem_type == TensorProto.STRING:
            return op.replace(node, "Reshape", values, shape)
        none = op.Equal(shape, op.ints(0))
        safe = op.Where(none, op.ints(1), shape)
        wanted = op.ReduceProd(safe, keepdims=1)
        missing = op.Sub(wanted, op.size(values))
        zero = op.zero(sequence.elem_type)
        zeros = op.ConstantOfShape(missing, value=zero)
        whole = op.Reshape(op.Concat(values, zeros, axis=0), safe)
        for axis in range(sequence.rank):
            size = op.Gather(shape, op.ints(axis), axis=0)
            whole = op.part(whole, op.ints(0), size, axis)
        return op.replace(node, "Identity", whole)

    def inserted(
        self, sequence: Sequence, item: str, dims: Dims | None, place: int | str | None
    ) -> Sequence:
        """SequenceInsert: the sequence with one more element.

        Args:
            sequence: the sequence.
            item: what comes in.
            dims: its known dimensions.
            place: where, as a number or the name of a tensor of one; None at the end.
        """
        if isinstance(sequence, Listed) and not isinstance(place, str):
            pairs = list(zip(sequence.items, sequence.dims, strict=True))
            pairs.insert(len(pairs) if place is None else place, (item, dims))
            return _listed(pairs, sequence.elem_type)
        known = [self.element_dims(sequence), known_dims(item, dims)]
        kind = counted_kind(sequence.elem_type, [dims for dims in known if dims is not None])
        counted = self.brought_to(sequence, kind)
        assert isinstance(counted, (Stacked, Packed))
        if place is None:
            return self._at_end(counted, item)
        op = self._op
        before = self.place(counted, place)
        if isinstance(counted, Packed):
            return self._packed_with(counted, item, before)
        stack = op.Concat(
            op.part(counted.stack, op.ints(0), before),
            op.unsqueezed(item, 0),
            op.part(counted.stack, before),
            axis=0,
        )
        return replace(counted, stack=stack)

    def _packed_with(self, counted: Packed, item: str, before: str) -> Packed:
        """A packed sequence with one more element before a place."""
        op = self._op
        start = op.Gather(counted.ends, before, axis=0)
        values = [
            op.part(counted.values, op.ints(0), start),
            op.flat(item),
            op.part(counted.values, start),
        ]
        through = op.Add(before, op.ints(1))
        ends = [
            op.part(counted.ends, op.ints(0), through),
            op.Add(op.part(counted.ends, before), op.size(item)),
        ]
        shapes = [
            op.part(counted.shapes, op.ints(0), before),
            op.unsqueezed(op.Shape(item), 0),
            op.part(counted.shapes, before),
        ]
        return replace(
            counted,
            values=op.Concat(*values, axis=0),
            ends=op.Concat(*ends, axis=0),
            shapes=op.Concat(*shapes, axis=0),
        )

    def _at_end(self, sequence: Stacked | Packed, item: str) -> Sequence:
        if isinstance(sequence, Packed):
            return self.appended(sequence, item)
        op = self._op
        stack = op.Concat(sequence.stack, op.unsqueezed(item, 0), axis=0)
        return replace(sequence, stack=stack)

    def erased(self, sequence: Sequence, place: int | str | None) -> Sequence:
        """SequenceErase: the sequence without an element, the last by default."""
        if isinstance(sequence, Listed) and not isinstance(place, str):
            pairs = list(zip(sequence.items, sequence.dims, strict=True))
            del pairs[-1 if place is None else place]
            return _listed(pairs, sequence.elem_type)
        counted, op = self.counted(sequence), self._op
        before = self.place(counted, -1 if place is None else place)
        behind = op.Add(before, op.ints(1))
        if isinstance(counted, Stacked):
            return replace(counted, stack=self._without(counted.stack, before, behind))
        start = op.Gather(counted.ends, before, axis=0)
        end = op.Gather(counted.ends, behind, axis=0)
        after = op.part(counted.ends, op.Add(before, op.ints(2)))
        ends = [
            op.part(counted.ends, op.ints(0), behind),
            op.Sub(after, op.Sub(end, start)),
        ]
        return replace(
            counted,
            values=self._without(counted.values, start, end),
            ends=op.Concat(*ends, axis=0),
            shapes=self._without(counted.shapes, before, behind),
        )

    def _without(self, name: str, start: str, end: str) -> str:
        op = self._op
        return op.Concat(op.part(name, op.ints(0), start), op.part(name, end), axis=0)

    def put_together(self, sequence: Sequence, axis: int, new_axis: bool, node: NodeProto) -> None:
        """ConcatFromSequence."""
        op = self._op
        if isinstance(sequence, Listed) and not sequence.items:
            raise UnwritableError("it puts no tensors together", "mend the model")
        if axis < 0:
            dims = self.element_dims(sequence)
            assert dims is not None
            axis += len(dims) + new_axis
        if isinstance(sequence, Listed):
            items = [op.unsqueezed(n, axis) if new_axis else n for n in sequence.items]
            op.replace(node, "Concat", *items, axis=axis)
            return
        counted = self.counted(sequence)
        if isinstance(counted, Stacked):
            self._stack_together(counted, axis, new_axis, node)
            return
        if counted.rank == 1 and not new_axis:
            op.replace(node, "Identity", counted.values)
            return
        length = op.Reshape(self.length(counted), op.ints(1))
        known = (counted.elem_type, (None,) * (counted.rank + new_axis))

        def part_at(place: str) -> str:
            item = self.element(counted, place)
            return op.unsqueezed(item, axis) if new_axis else item

        def write(place: str, current: list[str]) -> tuple[list[str], list[Collected]]:
            next_place = op.Add(place, op.ints(1))
            return [op.Concat(current[0], part_at(next_place), axis=axis)], []

        rounds = op.Sub(length, op.ints(1))
        (whole,) = op.loop(rounds, [(part_at(op.ints(0)), known)], write)
        op.replace(node, "Identity", whole)

    def _stack_together(
        self, sequence: Stacked, axis: int, new_axis: bool, node: NodeProto
    ) -> None:
        op = self._op
        rank = len(sequence.dims)
        perm = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
        if new_axis:
            op.replace(node, "Transpose", sequence.stack, perm=perm)
            return
        turned = op.Transpose(sequence.stack, perm=perm)
        if is_static(sequence.dims) and 0 not in sequence.dims:
            sizes = [dim if isinstance(dim, int) else 0 for dim in sequence.dims]
            shape = op.ints(*sizes[:axis], -1, *sizes[axis + 1 :])
            op.replace(node, "Reshape", turned, shape)
            return
        packed = self.packed(sequence, rank)
        self.put_together(packed, axis, new_axis, node)

    def split(self, data: str, kind: Packed, axis: int, length: str, count: str) -> Packed:
        """SplitToSequence in lengths that are only known at run time.

        Args:
            data: what is split.
            kind: what becomes of it.
            axis: along which axis, not negative.
            length: the lengths, or one for all, but the last may be less.
            count: how many there are, a list of one; empty for as many as there are lengths.
        """
        op = self._op
        empty = self.packed(Listed((), kind.elem_type, ()), kind.rank)
        each = bool(count)
        rounds = count or op.Shape(length)

        def write(place: str, current: list[str]) -> tuple[tuple[str, ...], list[Collected]]:
            size = length if each else op.Gather(length, place, axis=0)
            end = op.Add(current[0], size)
            item = op.Slice(data, current[0], end, op.ints(axis))  # The last may be cut off.
            return (end, *parts(self.appended(packed_of(empty, current[1:]), item))), []

        start = (op.ints(0), (TensorProto.INT64, (1,)))
        carried = [start, *zip(parts(empty), types(empty), strict=True)]
        return packed_of(empty, op.loop(rounds, carried, write)[1:])

    def as_given(self, sequence: Sequence, output: str) -> None:
        """Make a sequence of what stands for it, under a name: what the model gives.

        Raises:
            UnwritableError: it holds tensors of different shapes, counted at run time.
        """
        op = self._op
        if isinstance(sequence, Given):
            item = op.filled((), sequence.elem_type)
            longer = op.SequenceInsert(sequence.name, item)
            op.SequenceErase(longer, outputs=[output])
        elif isinstance(sequence, Listed) and sequence.items:
            op.SequenceConstruct(*sequence.items, outputs=[output])
        elif isinstance(sequence, Listed):
            op.SequenceEmpty(outputs=[output], dtype=sequence.elem_type)
        elif isinstance(sequence, Stacked):
            op.SplitToSequence(sequence.stack, outputs=[output], axis=0, keepdims=0)
        elif sequence.rank == 1:
            last = op.part(op.Shape(sequence.shapes), op.ints(0), op.ints(1))
            start = op.part(sequence.ends, op.ints(0), last)
            sizes = op.Sub(op.part(sequence.ends, op.ints(1)), start)
            op.SplitToSequence(sequence.values, sizes, outputs=[output], axis=0)
        else:
            raise UnwritableError(
                f"{output!r}, which the model gives, is a sequence of tensors of different shapes, "
                "counted at run time, which a Loop before opset 13 cannot carry and no other "
                "operator makes",
                "choose opset 13 or later",
            )


def _listed(pairs: list[tuple[str, Dims | None]], elem_type: int) -> Listed:
    items, dims = tuple(item for item, _ in pairs), tuple(dims for _, dims in pairs)
    return Listed(items, elem_type, dims)
