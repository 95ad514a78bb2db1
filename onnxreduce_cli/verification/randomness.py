"""Finding the random results of a model, which cannot be compared."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, numpy_helper

from onnxreduce_cli.model.domains import default_opset, is_default
from onnxreduce_cli.model.scope import subgraphs
from onnxreduce_cli.verification.source import Source

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
        opset: by which it is read: before 7 an attribute says whether a Dropout drops anything.
        off: the names of values known to be false, such as a training mode.
    """
    if not is_default(node.domain):
        return False
    if node.op_type != "Dropout":
        return node.op_type in _RANDOM
    if opset is not None and opset < 7:
        return not any(item.name == "is_test" and item.i for item in node.attribute)
    return len(node.input) > 2 and node.input[2] not in {"", *off}


def random_outputs(source: Source) -> set[str]:
    """The outputs that depend on a random operator."""
    model = source.skeleton
    off = {tensor.name for tensor in model.graph.initializer if not _is_set(tensor)}
    opset = default_opset(model)
    functions: set[tuple[str, str]] = set()
    # A function may call another, in any order.
    for _ in model.functions:
        functions |= {
            (f.domain, f.name)
            for f in model.functions
            if any(_random(node, default_opset(f), functions, set()) for node in f.node)
        }
    tainted: set[str] = set()
    for node in model.graph.node:
        if _random(node, opset, functions, off) or not tainted.isdisjoint(_names(node)):
            tainted.update(node.output)
    return tainted & set(source.outputs)


def _is_set(tensor: TensorProto) -> bool:
    """Return whether a tensor may be a training mode that is on."""
    return tensor.data_type != TensorProto.BOOL or bool(np.any(numpy_helper.to_array(tensor)))


def _random(
    node: NodeProto, opset: int | None, functions: set[tuple[str, str]], off: set[str]
) -> bool:
    """Return whether a node's results, or those of nodes in its subgraphs, may be random."""
    if (node.domain, node.op_type) in functions or is_random(node, opset, off):
        return True
    inner = (item for _, graph in subgraphs(node) for item in graph.node)
    return any(_random(item, opset, functions, off) for item in inner)


def _names(node: NodeProto) -> Iterable[str]:
    yield from node.input
    for _, graph in subgraphs(node):
        yield from _graph_names(graph)


def _graph_names(graph: GraphProto) -> Iterable[str]:
    for node in graph.node:
        yield from _names(node)
    yield from (value.name for value in graph.output)
