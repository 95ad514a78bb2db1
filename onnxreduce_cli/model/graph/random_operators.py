"""Operators with random results."""

from __future__ import annotations

from collections.abc import Collection

from onnx import NodeProto

from onnxreduce_cli.model.graph.domains import is_default

#: Operators whose results are always random: nothing can be compared.
_RANDOM = frozenset(
    {
        "Bernoulli",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)


def is_random(node: NodeProto, opset: int | None, off: Collection[str]) -> bool:
    """Return whether a node's own results may be random.

    Args:
        node: the node.
        opset: the opset of the node: before 7 an attribute decides whether Dropout drops anything.
        off: the names of values known to be false, such as a training mode.
    """
    if not is_default(node.domain):
        return False
    if node.op_type != "Dropout":
        return node.op_type in _RANDOM
    if opset is not None and opset < 7:
        return not any(item.name == "is_test" and item.i for item in node.attribute)
    return len(node.input) > 2 and node.input[2] not in {"", *off}
