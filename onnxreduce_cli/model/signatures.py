"""What nodes have in common that differ in names alone.

Large models repeat a few nodes many times: what holds for one of them need not be asked of the
others. Reading the fields of a node takes several times as long as walking its serialised form.
"""

from __future__ import annotations

from collections.abc import Hashable

from onnx import NodeProto

#: The first byte of each field of a serialised node.
_INPUT, _OUTPUT, _NAME, _OP_TYPE, _ATTRIBUTE, _DOC, _DOMAIN, _OVERLOAD, _METADATA = (
    number << 3 | 2 for number in range(1, 10)
)

#: Nodes of more bytes hold tensors or graphs, which are hardly ever alike.
_LARGE = 512


def signature(node: NodeProto) -> Hashable:
    """Return a key that is equal for nodes that differ in names, texts and metadata alone.

    None where a value is read twice, as it is ambiguous which of the two is meant, where a name is
    not UTF-8, and where a node is too large to compare.
    """
    content: bytes = node.SerializeToString()
    end = len(content)
    if end > _LARGE:
        return None
    shape, at, named = 1, 0, 0
    inputs: list[bytes] = []
    kept = []
    while at < end:
        tag, size = content[at], content[at + 1]
        start, at = at, at + 2
        if size > 127:
            size, at = (size & 127) | content[at] << 7, at + 1
        at += size
        if tag == _INPUT:
            inputs.append(content[start:at])
            shape = shape << 2 | (size > 0)
        elif tag == _OUTPUT:
            shape = shape << 2 | 2 | (size > 0)
        elif tag == _OP_TYPE:
            named = at
            kept.append(content[start:at])
        elif tag in (_ATTRIBUTE, _DOMAIN, _OVERLOAD):
            kept.append(content[start:at])
        elif tag not in (_NAME, _DOC, _METADATA):
            return None
    if len(inputs) > 1 and len(set(inputs)) < len(inputs):
        return None
    if not content[:named].isascii() and not _is_text(node):
        return None
    return shape, *kept


def _is_text(node: NodeProto) -> bool:
    names = (node.name, node.op_type, *node.input, *node.output)
    return all(isinstance(name, str) for name in names)
