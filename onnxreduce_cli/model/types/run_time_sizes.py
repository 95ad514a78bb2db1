"""Shape inference by onnx, with the sizes that runtimes give where onnx counts otherwise."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, ModelProto, helper

from onnxreduce_cli.model.graph.domains import UNKNOWN_DOMAIN
from onnxreduce_cli.model.graph.miscounted_sizes import correct_sizes
from onnxreduce_cli.model.graph.scaled_sizes import (
    RESIZED_BY_SCALES,
    has_uneven_scales,
    scaled_dims,
    scales_in,
)
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, Scope, scopes, with_inner
from onnxreduce_cli.model.graph.values import ValueType
from onnxreduce_cli.model.types.safe_inference import infer_shapes
from onnxreduce_cli.model.types.shapes_by_values import infos_by_name

#: How many such sizes in a row are followed, each by one more inference; others are unknown.
_ROUNDS = 16


def infer_run_time_shapes(model: ModelProto, *, data_prop: bool) -> ModelProto | None:
    """Return the model with the types that onnx infers; None if it cannot.

    Args:
        model: a copy of a model, or of a part of it, in which nodes are replaced of which onnx
            infers other sizes.
        data_prop: whether lists of sizes are computed too.
    """
    correct_sizes(model)
    inferred = infer_shapes(model, data_prop=data_prop)
    relevant = RESIZED_BY_SCALES | GRAPH_OPERATORS
    nodes = with_inner(node for node in model.graph.node if node.op_type in relevant)
    if all(node.op_type not in RESIZED_BY_SCALES for node in nodes):
        return inferred
    rounds = 0
    while inferred is not None and _state_scaled(model, inferred, unknown=rounds == _ROUNDS):
        inferred = infer_shapes(model, data_prop=data_prop)
        rounds += 1
    return inferred


def _state_scaled(model: ModelProto, inferred: ModelProto, *, unknown: bool) -> bool:
    """State the sizes that runtimes give by scales in one graph; return whether any is another.

    Args:
        model: the copy of a model that is changed.
        inferred: the same with the types that onnx infers.
        unknown: whether to leave the sizes open instead, in all graphs.
    """
    graphs, twins = (
        [scope for scope in scopes(item) if scope.function is None] for item in (model, inferred)
    )
    types = {id(scope): twin.declared for scope, twin in zip(graphs, twins, strict=True)}
    found = False
    for scope in graphs:
        if has_uneven_scales(scope) and _state_in(scope, types, unknown=unknown):
            found = True
            if not unknown:
                break  # The sizes in graphs within may follow from these.
    if found and all(entry.domain != UNKNOWN_DOMAIN for entry in model.opset_import):
        model.opset_import.add(domain=UNKNOWN_DOMAIN, version=1)
    return found


def _state_in(scope: Scope, types: Mapping[int, dict[str, ValueType]], *, unknown: bool) -> bool:
    """State the sizes of the first such nodes of a graph, which do not follow from each other."""
    graph = scope.container
    assert isinstance(graph, GraphProto)
    infos = infos_by_name(graph)
    behind = set[str]()
    for node in scope.nodes:
        if behind and (node.op_type in GRAPH_OPERATORS or not behind.isdisjoint(node.input)):
            behind.update(node.output)
            continue
        scales = scales_in(scope, node)
        if scales is None:
            continue
        owner = scope.resolve(node.input[0])
        data = None if owner is None else types[id(owner)].get(node.input[0])
        name = node.output[0]
        known = types[id(scope)].get(name)
        if not unknown:
            if data is None or data.dims is None or known is None or known.dims is None:
                continue
            sizes = scaled_dims(node, data.dims, scales)
            dims = tuple(sizes.get(axis, dim) for axis, dim in enumerate(known.dims))
            if dims == known.dims:
                continue
            info = helper.make_value_info(name, known._replace(dims=dims).to_proto())
            for entry in infos[name]:
                entry.CopyFrom(info)
            if not infos[name]:
                graph.value_info.append(info)
        node.domain = UNKNOWN_DOMAIN
        behind.update(node.output)
    return bool(behind)
