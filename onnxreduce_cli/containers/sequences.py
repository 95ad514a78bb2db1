"""The operators on sequences as nodes on the tensors that represent them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from onnx import NodeProto, TensorProto

from onnxreduce_cli.containers.emitter import is_static
from onnxreduce_cli.containers.sequence_representations import (
    Collected,
    SequenceUnifier,
    counted_representation,
    packed_from_tensors,
    require_element_dims,
)
from onnxreduce_cli.containers.values import (
    ListedSequence,
    PackedSequence,
    SequenceValue,
    StackedSequence,
    UnchangedContainer,
    UnwritableError,
    tensor_names,
    tensor_types,
)
from onnxreduce_cli.model.graph.values import Dims


class SequenceWriter(SequenceUnifier):
    """Emits the operators on sequences as nodes on tensors.

    Args:
        op: emits nodes.
    """

    def length(
        self, sequence: StackedSequence | PackedSequence, node: NodeProto | None = None
    ) -> str:
        """Return the number of elements, an int64 scalar, in place of `node` if given."""
        op = self._op
        first = op.constant(np.array(0), "first")
        if isinstance(sequence, StackedSequence):
            return op.replace(node, "Gather", op.Shape(sequence.stack), first, axis=0)
        more = op.Gather(op.Shape(sequence.ends), first, axis=0)
        one = op.constant(np.array(1), "one")
        return op.replace(node, "Sub", more, one)

    def position_from_front(
        self, sequence: StackedSequence | PackedSequence, position: int | str
    ) -> str:
        """Return a position counted from the front, int64 of shape [1].

        Args:
            sequence: the sequence.
            position: a number, or the name of a tensor of one integer; may be negative.
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
        sequence: StackedSequence | PackedSequence,
        place: str,
        node: NodeProto | None = None,
    ) -> str:
        """Return the element at a position, in place of `node` if given.

        The position is int64 of shape [1], and not negative.
        """
        op = self._op
        elem_type = sequence.elem_type
        if isinstance(sequence, StackedSequence):
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

    def _in_shape(
        self, values: str, shape: str, sequence: PackedSequence, node: NodeProto | None
    ) -> str:
        """Return flat values in a shape that may have dimensions of 0.

        Reshape would take a 0 as "the same as before". So such dimensions become 1, padded with
        zeros, and are sliced to size 0 again.
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
        self, sequence: SequenceValue, item: str, dims: Dims | None, place: int | str | None
    ) -> SequenceValue:
        """Return the sequence with an element inserted, as SequenceInsert does.

        Args:
            sequence: the sequence.
            item: the element.
            dims: its known dimensions.
            place: the position, a number or the name of a tensor of one; None for the end.
        """
        if isinstance(sequence, ListedSequence) and not isinstance(place, str):
            pairs = list(zip(sequence.items, sequence.dims, strict=True))
            pairs.insert(len(pairs) if place is None else place, (item, dims))
            return _listed(pairs, sequence.elem_type)
        known = [self.element_dims(sequence), require_element_dims(item, dims)]
        kind = counted_representation(
            sequence.elem_type, [dims for dims in known if dims is not None]
        )
        counted = self.converted(sequence, kind)
        assert isinstance(counted, (StackedSequence, PackedSequence))
        if place is None:
            return self._at_end(counted, item)
        op = self._op
        before = self.position_from_front(counted, place)
        if isinstance(counted, PackedSequence):
            return self._packed_with(counted, item, before)
        stack = op.Concat(
            op.part(counted.stack, op.ints(0), before),
            op.unsqueezed(item, 0),
            op.part(counted.stack, before),
            axis=0,
        )
        return replace(counted, stack=stack)

    def _packed_with(self, counted: PackedSequence, item: str, before: str) -> PackedSequence:
        """Return a packed sequence with an element inserted before a position."""
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

    def _at_end(self, sequence: StackedSequence | PackedSequence, item: str) -> SequenceValue:
        if isinstance(sequence, PackedSequence):
            return self.appended(sequence, item)
        op = self._op
        stack = op.Concat(sequence.stack, op.unsqueezed(item, 0), axis=0)
        return replace(sequence, stack=stack)

    def erased(self, sequence: SequenceValue, place: int | str | None) -> SequenceValue:
        """Return the sequence without an element, by default the last, as SequenceErase does."""
        if isinstance(sequence, ListedSequence) and not isinstance(place, str):
            pairs = list(zip(sequence.items, sequence.dims, strict=True))
            del pairs[-1 if place is None else place]
            return _listed(pairs, sequence.elem_type)
        counted, op = self.counted(sequence), self._op
        before = self.position_from_front(counted, -1 if place is None else place)
        behind = op.Add(before, op.ints(1))
        if isinstance(counted, StackedSequence):
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

    def concatenate(
        self, sequence: SequenceValue, axis: int, new_axis: bool, node: NodeProto
    ) -> None:
        """Emit the concatenation of the elements in place of a ConcatFromSequence."""
        op = self._op
        if isinstance(sequence, ListedSequence) and not sequence.items:
            raise UnwritableError(
                "it puts no tensors together",
                "mend the model: put a tensor into the sequence first",
            )
        if axis < 0:
            dims = self.element_dims(sequence)
            assert dims is not None
            axis += len(dims) + new_axis
        if isinstance(sequence, ListedSequence):
            items = [op.unsqueezed(n, axis) if new_axis else n for n in sequence.items]
            op.replace(node, "Concat", *items, axis=axis)
            return
        counted = self.counted(sequence)
        if isinstance(counted, StackedSequence):
            self._concatenate_stack(counted, axis, new_axis, node)
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

    def _concatenate_stack(
        self, sequence: StackedSequence, axis: int, new_axis: bool, node: NodeProto
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
        self.concatenate(packed, axis, new_axis, node)

    def split(
        self, data: str, kind: PackedSequence, axis: int, length: str, count: str
    ) -> PackedSequence:
        """Return the result of a SplitToSequence with lengths that are known at run time only.

        Args:
            data: the tensor to split.
            kind: the representation of the result.
            axis: the axis, not negative.
            length: the length of each part, or one for all parts but a shorter last one.
            count: the number of parts, int64 of shape [1]; empty if `length` has one for each.
        """
        op = self._op
        empty = self.packed(ListedSequence((), kind.elem_type, ()), kind.rank)
        each = bool(count)
        rounds = count or op.Shape(length)
        whole = op.Gather(op.Shape(data), op.ints(axis), axis=0)

        def write(place: str, current: list[str]) -> tuple[tuple[str, ...], list[Collected]]:
            size = length if each else op.Gather(length, place, axis=0)
            end = op.Add(current[0], size)
            item = op.part(data, current[0], op.at_most(end, whole), axis)
            return (
                end,
                *tensor_names(self.appended(packed_from_tensors(empty, current[1:]), item)),
            ), []

        start = (op.ints(0), (TensorProto.INT64, (1,)))
        carried = [start, *zip(tensor_names(empty), tensor_types(empty), strict=True)]
        return packed_from_tensors(empty, op.loop(rounds, carried, write)[1:])

    def emit_sequence(self, sequence: SequenceValue, output: str) -> None:
        """Emit the sequence itself from the tensors that represent it, as an output of the model.

        Raises:
            UnwritableError: it has tensors of different shapes, and its length is known at run time
                only.
        """
        op = self._op
        if isinstance(sequence, UnchangedContainer):
            item = op.filled((), sequence.elem_type)
            longer = op.SequenceInsert(sequence.name, item)
            op.SequenceErase(longer, outputs=[output])
        elif isinstance(sequence, ListedSequence) and sequence.items:
            op.SequenceConstruct(*sequence.items, outputs=[output])
        elif isinstance(sequence, ListedSequence):
            op.SequenceEmpty(outputs=[output], dtype=sequence.elem_type)
        elif isinstance(sequence, StackedSequence):
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


def _listed(pairs: list[tuple[str, Dims | None]], elem_type: int) -> ListedSequence:
    items, dims = tuple(item for item, _ in pairs), tuple(dims for _, dims in pairs)
    return ListedSequence(items, elem_type, dims)
