"""What nodes have in common that differ in names alone.

Large models repeat a few nodes many times: what holds for one of them need not be asked of the
others. Reading the fields of a node takes several times as long as walking its serialised form.
"""

from __future__ import annotations

from collections.abc import Hashable

from onnx import NodeProto

#: The first byte of each field of a serialised node.
_INPUT, _OUTPUT, _NAME, _OP_TYPE, _ATTRIBUTE = (number << 3 | 2 for number in range(1, 6))

#: Nodes of more bytes hold tensors or graphs, which are hardly ever alike.
_LARGE = 512

#: As much as a field may seem to reach beyond the end, where its size takes more than a byte.
_PADDING = bytes(260)


def signature(node: NodeProto) -> Hashable:
    """Return a key that is equal for nodes that differ in names, texts and metadata alone.

    None where a name is not UTF-8, and where a node is too large to compare.
    """
    content: bytes = node.SerializeToString()
    end = len(content)
    if end > _LARGE or not end:
        return None
    # The fields come in the order of their numbers, each with the number of bytes it takes.
    content += _PADDING
    at, shape = 0, 1
    while content[at] == _INPUT:
        size = content[at + 1]
        shape = shape << 2 | (size > 0)
        at += size + 2
    while content[at] == _OUTPUT:
        size = content[at + 1]
        shape = shape << 2 | 2 | (size > 0)
        at += size + 2
    if content[at] == _NAME:
        at += content[at + 1] + 2
    start = at
    if content[at] == _OP_TYPE:
        at += content[at + 1] + 2
    if at > end or not content[:at].isascii():
        # Names of more than 127 bytes, or in other letters than those of ASCII.
        return _of_fields(node)
    while content[at] == _ATTRIBUTE:
        size = content[at + 1]
        at += size + 2 if size < 128 else (size & 127 | content[at + 2] << 7) + 3
    if at == end:
        return shape, content[start:at]
    return shape, content[start:at], node.domain, node.overload


def _of_fields(node: NodeProto) -> Hashable:
    """The same from the node's fields, which takes longer."""
    names = (node.name, node.op_type, *node.input, *node.output)
    if any(isinstance(name, bytes) for name in names):
        return None
    attributes = tuple(item.SerializeToString() for item in node.attribute)
    given, made = tuple(map(bool, node.input)), tuple(map(bool, node.output))
    return given, made, node.op_type, attributes, node.domain, node.overload
