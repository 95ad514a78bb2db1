"""The names of what nodes read and make, equal ones by one number.

To make the text of a name takes longer than all else that is done with most of them: of values
that nobody asks for it is never made.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from onnx import NodeProto

from onnxreduce_cli.model.byte_parts import PADDING, ByteParts, Ints

#: Where names begin and end.
Places = npt.NDArray[np.int32]

_Bools = npt.NDArray[np.bool_]
_T = TypeVar("_T", bound=np.generic)

#: So many inputs of a node are told by their places; few nodes have more.
COLUMNS = 3

#: The names of a node's inputs, of which those that it lacks are empty; None if it has more.
Inputs = tuple[str, str, str]

#: The number of what only the fields of a node tell, and that of the empty name.
UNTOLD, EMPTY = -1, 0

#: So many names are looked for before all are made.
_FEW = 32


class NodeNames:
    """The names that nodes which were walked over read and make.

    Attributes:
        size: how many nodes there are.
    """

    def __init__(
        self,
        size: int,
        content: bytes = PADDING,
        inputs: Sequence[Places] = (),
        output: Places | None = None,
        told: tuple[_Bools, _Bools] | None = None,
    ) -> None:
        """Prepare; nothing is compared yet.

        Args:
            size: how many nodes there are.
            content: the nodes, and `byte_parts.PADDING`.
            inputs: for each of `COLUMNS` places of an input, where names begin and end.
            output: the same of the only output.
            told: of which nodes that is so of the inputs, and of the output; of others the fields
                tell.
        """
        self.size = size
        self._is_told = told is not None
        nowhere = np.zeros((2, size), np.int32)
        none: _Bools = np.zeros(size, np.bool_)
        self._content = content
        self._inputs = [*inputs] or [nowhere] * COLUMNS
        self._output = nowhere if output is None else output
        self._told_inputs, self._told_output = told or (none, none)
        #: What was asked for, as long as that is little.
        self._known: dict[str, int | None] = {"": EMPTY}
        self._makers: dict[str, Sequence[int]] = {}

    def among(self, places: Sequence[int], size: int) -> NodeNames:
        """The same where the nodes stand at some places among others, of which nothing is told."""
        if not self._is_told:
            return NodeNames(size)

        def spread(own: npt.NDArray[_T]) -> npt.NDArray[_T]:
            found = np.zeros((*own.shape[:-1], size), own.dtype)
            found[..., places] = own
            return found

        inputs, output = [spread(own) for own in self._inputs], spread(self._output)
        told = spread(self._told_inputs), spread(self._told_output)
        return NodeNames(size, self._content, inputs, output, told)

    # As text

    @cached_property
    def _text(self) -> str:
        return self._content.decode("latin-1")  # Names that are told are ASCII.

    @cached_property
    def inputs(self) -> list[Inputs | None]:
        """For each node the names of its inputs; None where the fields tell."""
        text = self._text
        columns = [
            [text[begin:end] for begin, end in zip(*places.tolist(), strict=True)]
            if places.any()
            else [""] * self.size
            for places in self._inputs
        ]
        found: list[Inputs | None] = [*zip(*columns, strict=True)]
        for index in np.flatnonzero(~self._told_inputs).tolist():
            found[index] = None
        return found

    @cached_property
    def outputs(self) -> list[str | None]:
        """For each node the name of its only output; None for others, and where the fields tell."""
        text = self._text
        rows = zip(self._told_output.tolist(), *self._output.tolist(), strict=True)
        return [text[begin:end] if told else None for told, begin, end in rows]

    # As numbers

    @cached_property
    def input_numbers(self) -> list[array[int]]:
        """For each of `COLUMNS` places of an input the number of what each node reads there."""
        return self._numbers[:COLUMNS]

    @cached_property
    def output_numbers(self) -> array[int]:
        """The number of each node's only output; `UNTOLD` for others."""
        return self._numbers[COLUMNS]

    @property
    def count(self) -> int:
        """More than any of the numbers."""
        return (COLUMNS + 1) * self.size + 1

    def input(self, node: NodeProto, at: int, place: int) -> str:
        """The name of what a node reads.

        Args:
            node: the node.
            at: its place among the nodes.
            place: the place of the input.
        """
        number = self.input_numbers[place][at] if place < COLUMNS else UNTOLD
        return node.input[place] if number == UNTOLD else self._names[number]

    def makers(self, name: str, nodes: Sequence[NodeProto]) -> Sequence[int] | None:
        """The places of the nodes that make a value; None where it is sooner asked of all values.

        Args:
            name: its name.
            nodes: the nodes.
        """
        known = self._makers
        if name not in known:
            if max(len(known), len(self._several)) > _FEW:
                return None
            found = [place for place in self._several if name and name in nodes[place].output]
            number = self.number(name)
            if number:
                outputs = np.frombuffer(self.output_numbers, np.int32)
                found += [int(place) for place in np.flatnonzero(outputs == number)]
            known[name] = sorted(found)
        return known[name]

    @cached_property
    def _several(self) -> list[int]:
        """The places of the nodes of which the fields tell what they make."""
        return [int(place) for place in np.flatnonzero(~self._told_output)]

    def count_reads(self, names: Iterable[str], counts: Counter[str]) -> None:
        """Add how often nodes read each of some names, left out what only their fields tell."""
        if not self._is_told:
            return
        read = np.concatenate([np.frombuffer(own, np.int32) for own in self.input_numbers])
        times = np.bincount(read[read > EMPTY], minlength=self.count)
        for name in names:
            number = self.number(name)
            if number:
                counts[name] += int(times[number])

    @cached_property
    def untold(self) -> list[int]:
        """The places of the nodes of which the fields tell what they read."""
        return [int(place) for place in np.flatnonzero(~self._told_inputs)]

    @cached_property
    def _names(self) -> _ByNumber:
        return _ByNumber(self._content, [*self._inputs, self._output])

    def number(self, name: str) -> int | None:
        """The number of a name; None if no node that is told reads or makes it."""
        known = self._known
        if name not in known:
            if len(known) > _FEW:
                self.__dict__["number"] = self._by_name.get
                return self._by_name.get(name)
            here, parts, same = self._parts
            places = parts.places(name.encode(errors="surrogatepass"))
            known[name] = int(here[same[places[0]]]) + 1 if len(places) else None
        return known[name]

    @cached_property
    def _by_name(self) -> dict[str, int]:
        text, (here, parts, same) = self._text, self._parts
        own = np.flatnonzero(same == np.arange(len(same)))
        begins, ends = parts.begins[own], parts.begins[own] + parts.sizes[own]
        rows = zip(begins.tolist(), ends.tolist(), (here[own] + 1).tolist(), strict=True)
        return {"": EMPTY, **{text[begin:end]: number for begin, end, number in rows}}

    @cached_property
    def _parts(self) -> tuple[Ints, ByteParts, Ints]:
        """The places of all names that are there, the names, and for each one that is equal."""
        begins, ends = np.concatenate([*self._inputs, self._output], axis=1)
        told = np.concatenate([self._told_inputs] * COLUMNS + [self._told_output])
        here = np.flatnonzero((begins < ends) & told).astype(np.int32)
        content = np.frombuffer(self._content, np.uint8)
        parts = ByteParts(content, begins[here], (ends - begins)[here])
        return here, parts, parts.equal()

    @cached_property
    def _numbers(self) -> list[array[int]]:
        if not self._is_told:
            return [array("i", [UNTOLD]) * self.size] * (COLUMNS + 1)
        told = [self._told_inputs] * COLUMNS + [self._told_output]
        numbers = np.where(np.concatenate(told), np.int32(EMPTY), np.int32(UNTOLD))
        here, _, same = self._parts
        numbers[here] = here[same] + 1
        found = [array("i") for _ in told]
        for column, own in zip(found, numbers.reshape(len(told), self.size), strict=True):
            column.frombytes(own.tobytes())
        return found


class _ByNumber(dict[int, str]):
    """Names by their numbers, each made once."""

    def __init__(self, content: bytes, places: Sequence[Places]) -> None:
        super().__init__({EMPTY: ""})
        self._content, self._places = content, places

    def __missing__(self, number: int) -> str:
        column, place = divmod(number - 1, self._places[0].shape[1])
        begin, end = self._places[column][:, place].tolist()
        found = self[number] = self._content[begin:end].decode()
        return found
