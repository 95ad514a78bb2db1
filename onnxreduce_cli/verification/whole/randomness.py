"""The random outputs of a model, which cannot be compared."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from onnxreduce_cli.model.graph.dead_values import names_read
from onnxreduce_cli.model.graph.domains import default_opset
from onnxreduce_cli.model.graph.random_operators import is_random
from onnxreduce_cli.model.graph.scope import with_inner
from onnxreduce_cli.verification.running.source import ModelSource


def random_outputs(source: ModelSource) -> set[str]:
    """Return the outputs that depend on a random operator."""
    model = source.skeleton
    off = {tensor.name for tensor in model.graph.initializer if not _is_set(tensor)}
    opset = default_opset(model)
    functions = _random_functions(model)
    tainted: set[str] = set()
    for node in model.graph.node:
        if _random(node, opset, functions, off) or not tainted.isdisjoint(names_read(node)):
            tainted.update(filter(None, node.output))
    return tainted & set(source.outputs)


def _random_functions(model: ModelProto) -> set[tuple[str, str]]:
    """Return the functions, by domain and name, whose outputs may be random."""
    callers: defaultdict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    found: set[tuple[str, str]] = set()
    for function in model.functions:
        key, opset = (function.domain, function.name), default_opset(function)
        for node in with_inner(function.node):
            callers[node.domain, node.op_type].append(key)
            if is_random(node, opset, ()):
                found.add(key)
    waiting = list(found)
    while waiting:
        new = set(callers[waiting.pop()]) - found
        found |= new
        waiting += new
    return found


def _is_set(tensor: TensorProto) -> bool:
    """Return whether a tensor may be a training mode that is on."""
    return tensor.data_type != TensorProto.BOOL or bool(np.any(numpy_helper.to_array(tensor)))


def _random(
    node: NodeProto, opset: int | None, functions: set[tuple[str, str]], off: set[str]
) -> bool:
    """Return whether a node, or one in its subgraphs, may be random."""
    return any(
        (item.domain, item.op_type) in functions or is_random(item, opset, off)
        for item in with_inner([node])
    )
