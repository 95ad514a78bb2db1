"""What nodes have in common that differ in names alone.

Large models repeat a few nodes many times: what holds for one of them need not be asked of the
others. Reading the fields of a node takes several times as long as serialising it and walking over
that, which is done for many nodes side by side.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
from onnx import NodeProto

#: The first byte of each field of a serialised node.
_INPUT, _OUTPUT, _NAME, _OP_TYPE, _ATTRIBUTE = (number << 3 | 2 for number in range(1, 6))

#: Nodes of more bytes hold tensors or graphs, which are hardly ever alike.
LARGE = 512

#: For fewer nodes it takes longer to prepare a walk than to read their fields.
_FEW = 50

#: So many inputs, outputs and attributes are walked over; each of the former takes two bits.
_MOST = 15

#: The bytes before an operator's name, and the parts of signatures that tell the domain too.
_HEAD, _OF_OTHERS = 2, 4

#: Bytes that are compared at a time, the bits of fewer of them, and what they are mixed by.
_WORD = 8
_MASKS = np.array([(1 << 8 * count) - 1 for count in range(_WORD + 1)], np.uint64)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)

#: What is equal of nodes that differ in names alone.
Signature = tuple[Hashable, ...]

_Ints = npt.NDArray[np.int64]
_Places = npt.NDArray[np.int32]

#: So many inputs of a node are told by their places; few nodes have more.
COLUMNS = 3

#: The names of a node's inputs, of which those that it lacks are empty; None if it has more.
Inputs = tuple[str, str, str]


@dataclass
class Walked:
    """What a walk over nodes finds, for each of them.

    Attributes:
        signatures: a key that is equal for nodes that differ in names, texts and metadata alone,
            and nearly always one object then; None for nodes that have a name that is not UTF-8,
            and for those that are too large.
        outputs: the name of the one output; None where there are several or none, or where the
            fields tell.
    """

    signatures: list[Hashable]
    outputs: list[str | None]
    _text: str = ""
    #: For each place of an input, where in the text the nodes' names begin and end.
    _places: list[_Places] = field(default_factory=list)
    #: The nodes of which only the fields tell.
    _untold: Sequence[int] = ()

    @cached_property
    def inputs(self) -> list[Inputs | None]:
        """For each node the names of its inputs; None where the fields tell."""
        if not self._places:
            return [None] * len(self.signatures)
        text = self._text
        columns = [
            [text[begin:end] for begin, end in zip(*places.tolist(), strict=True)]
            if places.any()
            else [""] * len(self.signatures)
            for places in self._places
        ]
        found: list[Inputs | None] = [*zip(*columns, strict=True)]
        for index in self._untold:
            found[index] = None
        return found

    def among(self, places: Sequence[int], count: int) -> Walked:
        """The same for `count` nodes, of which these stand at some places; nothing of others."""
        found = Walked([None] * count, [None] * count, self._text)
        for place, signature, output in zip(places, self.signatures, self.outputs, strict=True):
            found.signatures[place], found.outputs[place] = signature, output
        for own in self._places:
            found._places.append(np.zeros((2, count), np.int32))
            found._places[-1][:, places] = own
        told = set(places) - {places[index] for index in self._untold}
        found._untold = [place for place in range(count) if place not in told]
        return found


def call_parts(signature: Hashable, op_type: str) -> tuple[str, str, Hashable] | None:
    """Return what the signature of a node says that may call a function.

    Returns:
        the domain and the overload of its operator, and what is equal for nodes that differ in
        operator and names alone; None if it is of the default domain, or has no signature.
    """
    if not isinstance(signature, tuple) or len(signature) < _OF_OTHERS:
        return None
    if len(signature) == _OF_OTHERS:
        shape, content, domain, overload = signature
        return domain, overload, (shape, content[_HEAD + len(op_type) :])
    given, made, _, attributes, domain, overload = signature
    return domain, overload, (given, made, attributes)


def walked(nodes: Sequence[NodeProto]) -> Walked:
    """Look at all nodes, side by side where they are many."""
    contents = [*map(NodeProto.SerializeToString, nodes)]  # Looked up once, not for each.
    if len(nodes) >= _FEW:
        return _walk(nodes, [item if len(item) <= LARGE else b"" for item in contents])
    shared: dict[Hashable, Hashable] = {}
    found: list[Hashable] = []
    for node, content in zip(nodes, contents, strict=True):
        key = of_fields(node) if 0 < len(content) <= LARGE else None
        found.append(shared.setdefault(key, key))
    return Walked(found, [None] * len(nodes))


def _walk(nodes: Sequence[NodeProto], contents: Sequence[bytes]) -> Walked:
    """The same of many nodes by their serialised forms; an empty one is too large to compare."""
    joined = b"".join(contents)
    fields = _Fields(joined, np.array(list(map(len, contents))))
    first, shapes = fields.at.copy(), np.ones(len(nodes), np.int64)
    made, begins, ends = np.zeros((3, len(nodes)), np.int64)
    places = [np.zeros((2, len(nodes)), np.int32) for _ in range(COLUMNS)]
    many = np.zeros(len(nodes), np.bool_)
    for place, (here, sizes) in enumerate(fields.passed(_INPUT)):
        shapes[here] = shapes[here] << 2 | (sizes > 0)
        if place < COLUMNS:
            places[place][:, here] = fields.at[here] - sizes, fields.at[here]
        else:
            many[here] = True
    for here, sizes in fields.passed(_OUTPUT):
        shapes[here] = shapes[here] << 2 | 2 | (sizes > 0)
        made[here] += 1
        begins[here], ends[here] = fields.at[here] - sizes, fields.at[here]
    fields.skip(_NAME)
    start = fields.at.copy()
    fields.skip(_OP_TYPE)
    # Other letters than those of ASCII may be no UTF-8.
    known = fields.are_ascii(first)
    fields.skip(_ATTRIBUTE)
    known &= fields.at <= fields.ends
    alike = fields.alike(start, shapes).tolist()
    plain = {
        place: (int(shapes[place]), joined[start[place] : fields.at[place]]) for place in {*alike}
    }
    keys: list[Hashable] = [plain[place] for place in alike]
    shared: dict[Hashable, Hashable] = {}
    for index in np.flatnonzero(fields.at < fields.ends).tolist():
        where = (nodes[index].domain, nodes[index].overload)
        if any(where):
            key = (*plain[alike[index]], *where)
            keys[index] = shared.setdefault(key, key)
    for index in np.flatnonzero(~known).tolist():
        told = of_fields(nodes[index])
        keys[index] = shared.setdefault(told, told)
    for index in np.flatnonzero(fields.ends == first).tolist():
        keys[index] = None
    text = joined.decode("latin-1")  # Where the bytes are ASCII it is these letters.
    names = zip((known & (made == 1)).tolist(), begins.tolist(), ends.tolist(), strict=True)
    outputs = [text[begin:end] if alone else None for alone, begin, end in names]
    untold = np.flatnonzero(many | ~known | (fields.ends == first)).tolist()
    return Walked(keys, outputs, text, places, untold)


class _Fields:
    """Serialised nodes one after the other, whose fields come in the order of their numbers.

    Attributes:
        at: how far each was walked over; beyond its end where the walk cannot go on.
        ends: where each ends.
    """

    def __init__(self, joined: bytes, sizes: _Ints) -> None:
        # What follows a field's first byte is read before it is known whether there is a field.
        self._bytes = np.frombuffer(joined + bytes(_WORD), np.uint8)
        self.ends = np.cumsum(sizes)
        self.at = self.ends - sizes

    def passed(self, tag: int) -> Iterator[tuple[_Ints, _Ints]]:
        """Walk over the fields of one number; for each the nodes that have it, and its size."""
        here = np.arange(len(self.at))
        for count in range(_MOST + 1):
            at = self.at[here]
            found = (at < self.ends[here]) & (self._bytes[at] == tag)
            here, at = here[found], at[found]
            if not here.size:
                return
            if count == _MOST:
                self.at[here] = self.ends[here] + 1
                return
            # Of nodes that are this small a size takes two bytes at most.
            low, high = (self._bytes[at + offset].astype(np.int64) for offset in (1, 2))
            is_long = low > 127
            sizes = np.where(is_long, low & 127 | high << 7, low)
            self.at[here] = np.minimum(at + 2 + is_long + sizes, self.ends[here] + 1)
            yield here, sizes

    def skip(self, tag: int) -> None:
        """Walk over the fields of one number."""
        for _ in self.passed(tag):
            pass

    def alike(self, begins: _Ints, shapes: _Ints) -> _Ints:
        """For each node the place of one that has equal bytes, from `begins` to where the walk is.

        Args:
            begins: where in the text.
            shapes: a number for each, which must be equal too.
        """
        words = np.ndarray(len(self._bytes) - _WORD + 1, "<u8", self._bytes, strides=(1,))
        sizes, here = self.at - begins, np.arange(len(begins))
        mixed = shapes.astype(np.uint64) * _FACTOR + sizes.astype(np.uint64)
        columns = []
        for offset in range(0, int(sizes.max(initial=0)), _WORD):
            here = here[sizes[here] > offset]
            own = words[begins[here] + offset] & _MASKS[np.minimum(sizes[here] - offset, _WORD)]
            mixed[here] = (mixed[here] ^ own) * _FACTOR
            mixed ^= mixed >> np.uint64(29)
            columns.append((here, own))
        _, first, numbers = np.unique(mixed, return_index=True, return_inverse=True)
        found = first[numbers]
        # Different bytes may give one number, however seldom: those nodes stand for themselves.
        equal = (sizes == sizes[found]) & (shapes == shapes[found])
        whole = np.zeros(len(begins), np.uint64)
        for here, own in columns:
            whole[here] = own
            equal[here] &= own == whole[found[here]]
        return np.where(equal, found, np.arange(len(begins)))

    def are_ascii(self, first: _Ints) -> npt.NDArray[np.bool_]:
        """Return whether the bytes of each from `first` on, to where the walk is, are ASCII."""
        bounds = np.stack([first, self.at], axis=1).ravel()
        found: npt.NDArray[np.bool_] = np.maximum.reduceat(self._bytes, bounds)[::2] < 128
        return found


def of_fields(node: NodeProto) -> Signature | None:
    """The signature of one node from its fields; None where it has a name that is not UTF-8."""
    names = (node.name, node.op_type, *node.input, *node.output)
    if any(isinstance(name, bytes) for name in names):
        return None
    attributes = tuple(item.SerializeToString() for item in node.attribute)
    given, made = tuple(map(bool, node.input)), tuple(map(bool, node.output))
    return given, made, node.op_type, attributes, node.domain, node.overload
