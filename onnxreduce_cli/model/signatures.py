"""What nodes have in common that differ in names alone.

Large models repeat a few nodes many times: what holds for one of them need not be asked of the
others. Reading the fields of a node takes several times as long as serialising it and walking over
that, which is done for many nodes side by side.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
from onnx import NodeProto

#: The first byte of each field of a serialised node.
_INPUT, _OUTPUT, _NAME, _OP_TYPE, _ATTRIBUTE = (number << 3 | 2 for number in range(1, 6))

#: Nodes of more bytes hold tensors or graphs, which are hardly ever alike.
_LARGE = 512

#: For fewer nodes it takes longer to prepare a walk than to read their fields.
_FEW = 50

#: So many inputs, outputs and attributes are walked over; each of the former takes two bits.
_MOST = 15

#: What is equal of nodes that differ in names alone.
Signature = tuple[Hashable, ...]

_Ints = npt.NDArray[np.int64]


def signatures(nodes: Sequence[NodeProto]) -> list[Signature | None]:
    """For each node a key that is equal for nodes that differ in names, texts and metadata alone.

    None for nodes that have a name that is not UTF-8, and for those that are too large to compare.
    """
    contents = [node.SerializeToString() for node in nodes]
    if len(nodes) >= _FEW:
        return _walk(nodes, [item if len(item) <= _LARGE else b"" for item in contents])
    return [
        _of_fields(node) if 0 < len(content) <= _LARGE else None
        for node, content in zip(nodes, contents, strict=True)
    ]


def _walk(nodes: Sequence[NodeProto], contents: Sequence[bytes]) -> list[Signature | None]:
    """The same of many nodes by their serialised forms; an empty one is too large to compare."""
    joined = b"".join(contents)
    fields = _Fields(joined, np.array(list(map(len, contents))))
    first, shapes = fields.at.copy(), np.ones(len(nodes), np.int64)
    for here, sizes in fields.passed(_INPUT):
        shapes[here] = shapes[here] << 2 | (sizes > 0)
    for here, sizes in fields.passed(_OUTPUT):
        shapes[here] = shapes[here] << 2 | 2 | (sizes > 0)
    fields.skip(_NAME)
    start = fields.at.copy()
    fields.skip(_OP_TYPE)
    # Other letters than those of ASCII may be no UTF-8.
    known = fields.are_ascii(first)
    fields.skip(_ATTRIBUTE)
    known &= fields.at <= fields.ends
    rows = zip(shapes.tolist(), start.tolist(), fields.at.tolist(), strict=True)
    plain = [(shape, joined[begin:end]) for shape, begin, end in rows]
    keys: list[Signature | None] = [*plain]
    for index in np.flatnonzero(fields.at < fields.ends).tolist():
        where = (nodes[index].domain, nodes[index].overload)
        keys[index] = (*plain[index], *where) if any(where) else plain[index]
    for index in np.flatnonzero(~known).tolist():
        keys[index] = _of_fields(nodes[index])
    for index in np.flatnonzero(fields.ends == first).tolist():
        keys[index] = None
    return keys


class _Fields:
    """Serialised nodes one after the other, whose fields come in the order of their numbers.

    Attributes:
        at: how far each was walked over; beyond its end where the walk cannot go on.
        ends: where each ends.
    """

    def __init__(self, joined: bytes, sizes: _Ints) -> None:
        # What follows a field's first byte is read before it is known whether there is a field.
        self._bytes = np.frombuffer(joined + bytes(3), np.uint8)
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

    def are_ascii(self, first: _Ints) -> npt.NDArray[np.bool_]:
        """Return whether the bytes of each from `first` on, to where the walk is, are ASCII."""
        beyond = np.concatenate([[0], np.cumsum(self._bytes > 127)])
        found: npt.NDArray[np.bool_] = beyond[self.at] == beyond[first]
        return found


def _of_fields(node: NodeProto) -> Signature | None:
    """The same from the node's fields, which takes longer."""
    names = (node.name, node.op_type, *node.input, *node.output)
    if any(isinstance(name, bytes) for name in names):
        return None
    attributes = tuple(item.SerializeToString() for item in node.attribute)
    given, made = tuple(map(bool, node.input)), tuple(map(bool, node.output))
    return given, made, node.op_type, attributes, node.domain, node.overload
