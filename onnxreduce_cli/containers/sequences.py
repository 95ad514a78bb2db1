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
from onnxreduce_cli.model.values import Dims


class Sequences(SequenceKinds):
    """Writes the operators on sequences as nodes on tensors.

    Args:
        emitter: writes nodes.
    """

    def length(
        self, sequence: Stacked | Packed, output: str = "", like: NodeProto | None = None
    ) -> str:
        """SequenceLength: the number of elements, without dimensions."""
        emitter = self._emitter
        first = emitter.constant(np.array(0), "first")
        if isinstance(sequence, Stacked):
            shape = emitter.shape(sequence.stack)
            inputs = [shape, first]
            return emitter.emit("Gather", inputs, "length", output=output, like=like, axis=0)
        more = emitter.at(emitter.shape(sequence.ends), first, "more")
        one = emitter.constant(np.array(1), "one")
        return emitter.emit("Sub", [more, one], "length", output=output, like=like)

    def place(self, sequence: Stacked | Packed, position: int | str) -> str:
        """A position counted from the front, as a list of one int64.

        Args:
            sequence: in which.
            position: a number, or the name of an integer of one element; negative from the back.
        """
        emitter = self._emitter
        if isinstance(position, int) and position >= 0:
            return emitter.ints(position)
        length = emitter.shaped(self.length(sequence), emitter.ints(1), "length")
        if isinstance(position, int):
            return emitter.sum(length, emitter.ints(position))
        whole = emitter.emit("Cast", [position], "position", to=TensorProto.INT64)
        place = emitter.shaped(whole, emitter.ints(1), "position")
        negative = emitter.emit("Less", [place, emitter.ints(0)], "negative")
        return emitter.emit("Where", [negative, emitter.sum(place, length), place], "place")

    def element(
        self,
        sequence: Stacked | Packed,
        place: str,
        output: str = "",
        like: NodeProto | None = None,
    ) -> str:
        """The element at a place that is a list of one int64, not negative."""
        emitter = self._emitter
        elem_type = sequence.elem_type
        if isinstance(sequence, Stacked):
            inputs = [sequence.stack, emitter.scalar(place, "place")]
            name = emitter.emit("Gather", inputs, "element", output=output, like=like, axis=0)
            emitter.types.setdefault(name, (elem_type, sequence.dims))
            return name
        start = emitter.at(sequence.ends, place, "start")
        end = emitter.at(sequence.ends, emitter.sum(place, emitter.ints(1)), "end")
        values = emitter.part(sequence.values, start, end)
        shape = emitter.flat(emitter.at(sequence.shapes, place, "shape"))
        if sequence.rank == 1:
            name = emitter.emit("Identity", [values], "element", output=output, like=like)
        else:
            name = self._in_shape(values, shape, sequence, output, like)
        emitter.types.setdefault(name, (elem_type, (None,) * sequence.rank))
        return name

    def _in_shape(
        self, values: str, shape: str, sequence: Packed, output: str, like: NodeProto | None
    ) -> str:
        """Values in one dimension, in a shape in which there may be zeros.

        To Reshape these would stand for what was there, so that each is 1 there, with zeros for
        values, which are cut off again.
        """
        emitter = self._emitter
        if sequence.elem_type == TensorProto.STRING:
            return emitter.emit("Reshape", [values, shape], "element", output=output, like=like)
        none = emitter.emit("Equal", [shape, emitter.ints(0)], "none")
        safe = emitter.emit("Where", [none, emitter.ints(1), shape], "safe")
        wanted = emitter.emit("ReduceProd", [safe], "wanted", keepdims=1)
        missing = emitter.difference(wanted, emitter.size(values))
        zero = emitter.zero(sequence.elem_type)
        zeros = emitter.emit("ConstantOfShape", [missing], "zeros", value=zero)
        whole = emitter.shaped(emitter.concat([values, zeros], "filled_up"), safe)
        for axis in range(sequence.rank):
            size = emitter.at(shape, emitter.ints(axis), "size")
            whole = emitter.part(whole, emitter.ints(0), size, axis)
        return emitter.emit("Identity", [whole], "element", output=output, like=like)

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
        emitter = self._emitter
        before = self.place(counted, place)
        if isinstance(counted, Packed):
            return self._packed_with(counted, item, before)
        stacked = [
            emitter.part(counted.stack, emitter.ints(0), before),
            emitter.unsqueezed(item, 0),
            emitter.part(counted.stack, before),
        ]
        return replace(counted, stack=emitter.concat(stacked, "stack"))

    def _packed_with(self, counted: Packed, item: str, before: str) -> Packed:
        """A packed sequence with one more element before a place."""
        emitter = self._emitter
        start = emitter.at(counted.ends, before, "start")
        values = [
            emitter.part(counted.values, emitter.ints(0), start),
            emitter.flat(item),
            emitter.part(counted.values, start),
        ]
        through = emitter.sum(before, emitter.ints(1))
        ends = [
            emitter.part(counted.ends, emitter.ints(0), through),
            emitter.sum(emitter.part(counted.ends, before), emitter.size(item)),
        ]
        shapes = [
            emitter.part(counted.shapes, emitter.ints(0), before),
            emitter.unsqueezed(emitter.shape(item), 0),
            emitter.part(counted.shapes, before),
        ]
        return replace(
            counted,
            values=emitter.concat(values, "values"),
            ends=emitter.concat(ends, "ends"),
            shapes=emitter.concat(shapes, "shapes"),
        )

    def _at_end(self, sequence: Stacked | Packed, item: str) -> Sequence:
        if isinstance(sequence, Packed):
            return self.appended(sequence, item)
        stacked = [sequence.stack, self._emitter.unsqueezed(item, 0)]
        return replace(sequence, stack=self._emitter.concat(stacked, "stack"))

    def erased(self, sequence: Sequence, place: int | str | None) -> Sequence:
        """SequenceErase: the sequence without an element, the last by default."""
        if isinstance(sequence, Listed) and not isinstance(place, str):
            pairs = list(zip(sequence.items, sequence.dims, strict=True))
            del pairs[-1 if place is None else place]
            return _listed(pairs, sequence.elem_type)
        counted, emitter = self.counted(sequence), self._emitter
        before = self.place(counted, -1 if place is None else place)
        behind = emitter.sum(before, emitter.ints(1))
        if isinstance(counted, Stacked):
            return replace(counted, stack=self._without(counted.stack, before, behind))
        start = emitter.at(counted.ends, before, "start")
        end = emitter.at(counted.ends, behind, "end")
        after = emitter.part(counted.ends, emitter.sum(before, emitter.ints(2)))
        ends = [
            emitter.part(counted.ends, emitter.ints(0), behind),
            emitter.difference(after, emitter.difference(end, start)),
        ]
        return replace(
            counted,
            values=self._without(counted.values, start, end),
            ends=emitter.concat(ends, "ends"),
            shapes=self._without(counted.shapes, before, behind),
        )

    def _without(self, name: str, start: str, end: str) -> str:
        emitter = self._emitter
        rest = [emitter.part(name, emitter.ints(0), start), emitter.part(name, end)]
        return emitter.concat(rest, "rest")

    def put_together(
        self, sequence: Sequence, axis: int, new_axis: bool, output: str, like: NodeProto
    ) -> None:
        """ConcatFromSequence."""
        emitter = self._emitter
        if isinstance(sequence, Listed) and not sequence.items:
            raise UnwritableError("it puts no tensors together", "mend the model")
        if axis < 0:
            dims = self.element_dims(sequence)
            assert dims is not None
            axis += len(dims) + new_axis
        if isinstance(sequence, Listed):
            items = [emitter.unsqueezed(n, axis) if new_axis else n for n in sequence.items]
            emitter.emit("Concat", items, "", output=output, like=like, axis=axis)
            return
        counted = self.counted(sequence)
        if isinstance(counted, Stacked):
            self._stack_together(counted, axis, new_axis, output, like)
            return
        if counted.rank == 1 and not new_axis:
            emitter.emit("Identity", [counted.values], "", output=output, like=like)
            return
        length = emitter.shaped(self.length(counted), emitter.ints(1), "length")
        known = (counted.elem_type, (None,) * (counted.rank + new_axis))

        def part_at(place: str) -> str:
            item = self.element(counted, place)
            return emitter.unsqueezed(item, axis) if new_axis else item

        def write(place: str, current: list[str]) -> tuple[list[str], list[Collected]]:
            next_place = emitter.sum(place, emitter.ints(1))
            return [emitter.concat([current[0], part_at(next_place)], "longer", axis)], []

        rounds = emitter.difference(length, emitter.ints(1))
        (whole,) = emitter.loop(rounds, [(part_at(emitter.ints(0)), known)], write)
        emitter.emit("Identity", [whole], "", output=output, like=like)

    def _stack_together(
        self, sequence: Stacked, axis: int, new_axis: bool, output: str, like: NodeProto
    ) -> None:
        emitter = self._emitter
        rank = len(sequence.dims)
        perm = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
        if new_axis:
            emitter.emit("Transpose", [sequence.stack], "", output=output, like=like, perm=perm)
            return
        turned = emitter.emit("Transpose", [sequence.stack], "turned", perm=perm)
        if is_static(sequence.dims) and 0 not in sequence.dims:
            sizes = [dim if isinstance(dim, int) else 0 for dim in sequence.dims]
            shape = emitter.ints(*sizes[:axis], -1, *sizes[axis + 1 :])
            emitter.emit("Reshape", [turned, shape], "", output=output, like=like)
            return
        packed = self.packed(sequence, rank)
        self.put_together(packed, axis, new_axis, output, like)

    def split(self, data: str, kind: Packed, axis: int, length: str, count: str) -> Packed:
        """SplitToSequence in lengths that are only known at run time.

        Args:
            data: what is split.
            kind: what becomes of it.
            axis: along which axis, not negative.
            length: the lengths, or one for all, but the last may be less.
            count: how many there are, a list of one; empty for as many as there are lengths.
        """
        emitter = self._emitter
        empty = self.packed(Listed((), kind.elem_type, ()), kind.rank)
        each = bool(count)
        rounds = count or emitter.shape(length)

        def write(place: str, current: list[str]) -> tuple[tuple[str, ...], list[Collected]]:
            size = length if each else emitter.at(length, place, "size")
            end = emitter.sum(current[0], size)
            # The last may be cut off.
            bounds = [current[0], end, emitter.ints(axis)]
            item = emitter.emit("Slice", [data, *bounds], "item")
            return (end, *parts(self.appended(packed_of(empty, current[1:]), item))), []

        start = (emitter.ints(0), (TensorProto.INT64, (1,)))
        carried = [start, *zip(parts(empty), types(empty), strict=True)]
        return packed_of(empty, emitter.loop(rounds, carried, write)[1:])

    def as_given(self, sequence: Sequence, output: str) -> None:
        """Make a sequence of what stands for it, under a name: what the model gives.

        Raises:
            UnwritableError: it holds tensors of different shapes, counted at run time.
        """
        emitter = self._emitter
        if isinstance(sequence, Given):
            item = emitter.filled((), sequence.elem_type)
            longer = emitter.emit("SequenceInsert", [sequence.name, item], "longer")
            emitter.emit("SequenceErase", [longer], "", output=output)
        elif isinstance(sequence, Listed) and sequence.items:
            emitter.emit("SequenceConstruct", sequence.items, "", output=output)
        elif isinstance(sequence, Listed):
            emitter.emit("SequenceEmpty", [], "", output=output, dtype=sequence.elem_type)
        elif isinstance(sequence, Stacked):
            inputs = [sequence.stack]
            emitter.emit("SplitToSequence", inputs, "", output=output, axis=0, keepdims=0)
        elif sequence.rank == 1:
            last = emitter.shape(sequence.shapes)
            last = emitter.part(last, emitter.ints(0), emitter.ints(1))
            start = emitter.part(sequence.ends, emitter.ints(0), last)
            sizes = emitter.difference(emitter.part(sequence.ends, emitter.ints(1)), start)
            emitter.emit("SplitToSequence", [sequence.values, sizes], "", output=output, axis=0)
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
