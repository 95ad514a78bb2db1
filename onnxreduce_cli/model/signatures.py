"""What nodes have in common that differ in names alone.

Large models repeat a few nodes many times: what holds for one of them need not be asked of the
others. Reading the fields of a node takes several times as long as serialising it and walking over
that, which is done for many nodes side by side.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from onnx import NodeProto

from onnxreduce_cli.model.byte_parts import PADDING, ByteParts, Ints
from onnxreduce_cli.model.node_names import COLUMNS, NodeNames, Places

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

#: The largest size that takes one byte.
_SHORT = 127

#: What is equal of nodes that differ in names alone.
Signature = tuple[Hashable, ...]


class Walked(NamedTuple):
    """What a walk over nodes finds, for each of them.

    Attributes:
        signatures: a key that is equal for nodes that differ in names, texts and metadata alone,
            and nearly always one object then; None for nodes that have a name that is not UTF-8,
            and for those that are too large.
        op_types: the operator; None where the fields tell.
        names: what they read and make.
    """

    signatures: list[Hashable]
    op_types: list[str | None]
    names: NodeNames

    def among(self, places: Sequence[int], count: int) -> Walked:
        """The same for `count` nodes, of which these stand at some places; nothing of others."""
        found = Walked([None] * count, [None] * count, self.names.among(places, count))
        for place, signature, op_type in zip(places, self.signatures, self.op_types, strict=True):
            found.signatures[place], found.op_types[place] = signature, op_type
        return found


def domain_and_overload(signature: Hashable) -> tuple[str, str] | None:
    """Return what the signature of a node says of these; None if there is none."""
    if not isinstance(signature, tuple):
        return None
    return (signature[-2], signature[-1]) if len(signature) >= _OF_OTHERS else ("", "")


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


def walked(nodes: Sequence[NodeProto], unlike: Collection[str] = ()) -> Walked:
    """Look at all nodes, side by side where they are many.

    Args:
        nodes: the nodes.
        unlike: the operators of nodes that are not to be compared.
    """
    serialized = map(NodeProto.SerializeToString, nodes)  # Looked up once, not for each.
    contents = [item if len(item) <= LARGE else b"" for item in serialized]
    if len(nodes) >= _FEW:
        return _walk(nodes, contents, unlike)
    shared: dict[Hashable, Hashable] = {}
    found: list[Hashable] = []
    for node, content in zip(nodes, contents, strict=True):
        key = of_fields(node) if content and node.op_type not in unlike else None
        found.append(shared.setdefault(key, key))
    return Walked(found, [None] * len(nodes), NodeNames(len(nodes)))


def _walk(nodes: Sequence[NodeProto], contents: list[bytes], unlike: Collection[str]) -> Walked:
    """The same of many nodes by their serialised forms; an empty one is too large to compare."""
    fields = _Fields(contents)
    first, values = fields.at.copy(), fields.values()
    fields.skip(_NAME)
    start = fields.at.copy()
    fields.skip(_OP_TYPE)
    # Other letters than those of ASCII may be no UTF-8.
    known = fields.are_ascii(first)
    fields.skip(_ATTRIBUTE)
    known &= fields.at <= fields.ends
    kinds = fields.alike(start, values.shapes)
    alike, content = kinds.tolist(), fields.content
    plain = {
        place: (int(values.shapes[place]), content[start[place] : fields.at[place]])
        for place in {*alike}
    }
    operators = {place: _operator(key[1]) for place, key in plain.items()}
    apart = (fields.ends == first) | np.isin(
        kinds, [place for place, name in operators.items() if name in unlike]
    )
    keys: list[Hashable] = [plain[place] for place in alike]
    op_types: list[str | None] = [operators[place] for place in alike]
    shared: dict[Hashable, Hashable] = {}
    for index in np.flatnonzero(fields.at < fields.ends).tolist():
        where = (nodes[index].domain, nodes[index].overload)
        if any(where):
            key = (*plain[alike[index]], *where)
            keys[index] = shared.setdefault(key, key)
    for index in np.flatnonzero(~(known | apart)).tolist():
        told = None if nodes[index].op_type in unlike else of_fields(nodes[index])
        keys[index], op_types[index] = shared.setdefault(told, told), None
    for index in np.flatnonzero(apart).tolist():
        keys[index] = op_types[index] = None
    known &= ~apart
    are_told = known & ~values.many, known & (values.made == 1)
    return Walked(
        keys, op_types, NodeNames(len(nodes), content, values.inputs, values.output, are_told)
    )


def _operator(content: bytes) -> str | None:
    """The operator that a key begins with; None if it is none of usual size."""
    if content[:1] != bytes((_OP_TYPE,)) or content[1] > _SHORT:
        return None
    return content[_HEAD : _HEAD + content[1]].decode("latin-1")


class _Values(NamedTuple):
    """What nodes read and make.

    Attributes:
        shapes: a number for each that tells how many inputs and outputs it has, and which of those
            it lacks.
        inputs: for each place of an input, where names begin and end.
        many: the nodes that have more inputs.
        made: how many outputs each has.
        output: where the name of the last one begins and ends.
    """

    shapes: Ints
    inputs: list[Places]
    many: npt.NDArray[np.bool_]
    made: Ints
    output: Places


class _Fields:
    """Serialised nodes one after the other, whose fields come in the order of their numbers.

    Attributes:
        content: all of them, and some more bytes.
        at: how far each was walked over; beyond its end where the walk cannot go on.
        ends: where each ends.
    """

    def __init__(self, contents: Sequence[bytes]) -> None:
        # What follows a field's first byte is read before it is known whether there is a field.
        self.content = b"".join([*contents, PADDING])
        self._bytes = np.frombuffer(self.content, np.uint8)
        sizes = np.fromiter(map(len, contents), np.int64, len(contents))
        self.ends = np.cumsum(sizes)
        self.at = self.ends - sizes

    def values(self) -> _Values:
        """Walk over inputs and outputs."""
        count = len(self.at)
        shapes, made = np.ones(count, np.int64), np.zeros(count, np.int64)
        inputs = [np.zeros((2, count), np.int32) for _ in range(COLUMNS)]
        output, many = np.zeros((2, count), np.int32), np.zeros(count, np.bool_)
        for place, (here, sizes) in enumerate(self.passed(_INPUT)):
            shapes[here] = shapes[here] << 2 | (sizes > 0)
            if place < COLUMNS:
                inputs[place][:, here] = self.at[here] - sizes, self.at[here]
            else:
                many[here] = True
        for here, sizes in self.passed(_OUTPUT):
            shapes[here] = shapes[here] << 2 | 2 | (sizes > 0)
            made[here] += 1
            output[:, here] = self.at[here] - sizes, self.at[here]
        return _Values(shapes, inputs, many, made, output)

    def passed(self, tag: int) -> Iterator[tuple[Ints, Ints]]:
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

    def alike(self, begins: Ints, shapes: Ints) -> Ints:
        """For each node the place of one that has equal bytes, from `begins` to where the walk is.

        Args:
            begins: where in the text.
            shapes: a number for each, which must be equal too.
        """
        return ByteParts(self._bytes, begins, self.at - begins).equal(shapes)

    def are_ascii(self, first: Ints) -> npt.NDArray[np.bool_]:
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
