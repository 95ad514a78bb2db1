"""Values whose sizes shape inference of one opset gives otherwise than that of another.

A pool with ceil_mode has a last window that may begin in the padding behind the data. From opset 22
on inference leaves it out, as ONNX Runtime does at every opset; before that it is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import NodeProto

from onnxreduce_cli.model import attributes
from onnxreduce_cli.model.calls import UNKNOWN
from onnxreduce_cli.model.dead_values import reads
from onnxreduce_cli.model.domains import is_default
from onnxreduce_cli.model.scope import Scope, subgraphs
from onnxreduce_cli.model.types.facts import Facts

_POOLS = frozenset({"AveragePool", "LpPool", "MaxPool"})

#: A value: the identity of the scope that makes it, and its name.
ScopedName = tuple[int, str]


def doubtful_values(scopes: Sequence[Scope], facts: Facts) -> frozenset[ScopedName]:
    """Return the values made by pools of doubtful sizes, and all that is made of such values."""
    found = {
        (id(scope), name)
        for scope in scopes
        for node in scope.nodes
        if node.op_type in _POOLS and is_default(node.domain) and _is_doubtful(scope, node, facts)
        for name in node.output
    }
    bodies = {id(scope.container): scope for scope in scopes}
    size = 0
    while size < len(found):
        size = len(found)
        for scope in scopes:
            for node in scope.nodes:
                _follow(scope, node, facts, bodies, found)
    return frozenset(found)


def _follow(
    scope: Scope,
    node: NodeProto,
    facts: Facts,
    bodies: dict[int, Scope],
    found: set[ScopedName],
) -> None:
    """Add what a node makes of such values, and what its graphs or its function are given of them.

    Args:
        scope: where the node is.
        node: the node.
        facts: those of the model.
        bodies: the scopes of the model, by the identities of their graphs and functions.
        found: the values; more are added.
    """
    function = facts.calls.function_of(node)
    containers = [function] if function is not None else [graph for _, graph in subgraphs(node)]
    inner = [bodies[id(item)] for item in containers if id(item) in bodies]
    read = any((id(scope.resolve(name)), name) in found for name in reads(node) if name)
    if read:
        found.update((id(body), name) for body in inner for name in body.inputs)
    if read or any((id(body), name) in found for body in inner for name in body.outputs):
        found.update((id(scope), name) for name in node.output)


def _is_doubtful(scope: Scope, node: NodeProto, facts: Facts) -> bool:
    """Return whether the last window of a pool, which inference may count, is in the padding."""

    def value(name: str, default: Any) -> Any:
        return facts.calls.resolve_attribute(scope, attributes.find(node, name), default)

    known = facts.type(scope, node.input[0])
    if known is None or known.dims is None or not value("ceil_mode", 0):
        return False
    rank = len(known.dims) - 2
    ones, zeros = (1,) * rank, (0,) * 2 * rank
    kernel, mode = value("kernel_shape", ones), value("auto_pad", "NOTSET")
    strides, dilations = value("strides", ones), value("dilations", ones)
    pads = value("pads", zeros) if mode == "NOTSET" else zeros
    if UNKNOWN in (kernel, mode, strides, dilations, pads):
        return True
    if str(mode).startswith("SAME"):
        return False
    for axis, dim in enumerate(known.dims[2:]):
        if isinstance(dim, int):
            begin, stride = pads[axis], strides[axis]
            free = dim + begin + pads[rank + axis] - (kernel[axis] - 1) * dilations[axis] - 1
            last = -(-free // stride) * stride
            if last >= dim + begin:
                return True
    return False
