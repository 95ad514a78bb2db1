"""Types to state in value_info, as shape inference at the target opset cannot infer them.

The oldest definitions of some operators came without inference: their outputs have no type unless
the graph states it in its value_info.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from onnx import GraphProto, NodeProto, ValueInfoProto, helper

from onnxreduce_cli import schemas
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.types.facts import Facts

#: Before this opset Reshape's inference gives no rank if the shape is computed.
_RESHAPE_INFERS = 14

#: From this opset on every operator that steps up emit has inference.
_CAST_INFERS = 6


def lacks_inference(node: NodeProto, target: int) -> bool:
    """Return whether shape inference at opset `target` cannot infer a node's output types."""
    return is_default(node.domain) and not schemas.infers_types(node.op_type, target)


def uninferred_types(
    facts: Facts,
    target: int,
    scope: Scope,
    nodes: Sequence[NodeProto],
    stated: Collection[str],
) -> list[ValueInfoProto]:
    """Return the value infos of outputs that cannot be inferred and are not stated."""
    found = []
    for node in nodes:
        for name in node.output if lacks_inference(node, target) else ():
            known = facts.type(scope, name) if name not in stated else None
            if known is not None and known.elem_type:
                found.append(helper.make_value_info(name, known.to_proto()))
    return found


def state_types(graph: GraphProto, infos: Sequence[ValueInfoProto]) -> None:
    """Add value infos to a graph; those of its outputs replace the outputs' own."""
    outputs = {output.name: output for output in graph.output}
    for info in infos:
        if info.name in outputs:
            outputs[info.name].CopyFrom(info)
        else:
            graph.value_info.append(info)


def types_to_state(
    facts: Facts,
    target: int,
    scopes: Sequence[Scope],
    sites: Iterable[Site],
) -> Iterator[tuple[GraphProto, list[ValueInfoProto]]]:
    """Find the types that shape inference infers at the source opset but not at the target.

    On the way up only new nodes can lack inference, such as a Cast, which has it from opset 6 on.

    Args:
        facts: the types and constants of the values.
        target: the opset to reach.
        scopes: every scope.
        sites: the nodes that are replaced.

    Yields:
        a graph, and the types that it must state as value_info or output.
    """
    concerned = [
        scope
        for scope in scopes
        if isinstance(scope.container, GraphProto)
        and scope.opset
        and (target < scope.opset or target < _CAST_INFERS)
    ]
    lacking, results = _uninferred(target, concerned, sites) if concerned else (set(), {})
    scans = target < _RESHAPE_INFERS and any("Scan" in scope.op_types for scope in scopes)
    for scope in concerned:
        graph, down = scope.container, target < (scope.opset or 0)
        assert isinstance(graph, GraphProto)
        stated = {*scope.declared}
        nodes = [
            node
            for op_type, source in zip(scope.op_types, scope.nodes if lacking else (), strict=False)
            for node in results.get(id(source), [source] if down and op_type in lacking else [])
        ]
        found = uninferred_types(facts, target, scope, nodes, stated)
        if scans and down:
            stated |= {info.name for info in found}
            found += _scanned_types(facts, scope, stated)
        yield graph, found


def _uninferred(
    target: int, scopes: Iterable[Scope], sites: Iterable[Site]
) -> tuple[set[str], dict[int, Sequence[NodeProto]]]:
    """Return the operators, of nodes before and after, whose types the target does not infer.

    The second item has, by the identity of each replaced node, the replacement that has such an
    operator; else it is empty.
    """
    changed = [site for site in sites if site.blocked is None]
    op_types = {name for scope in scopes for name in scope.op_types}
    op_types.update(name for site in changed for name in site.operators)
    lacking = {name for name in op_types if not schemas.infers_types(name, target)}
    return lacking, {
        id(site.node): () if lacking.isdisjoint(site.operators) else site.result
        for site in (changed if lacking else ())
    }


def _scanned_types(facts: Facts, scope: Scope, stated: set[str]) -> list[ValueInfoProto]:
    """Return the types of Scan inputs, and of Reshape outputs in bodies, that are not stated.

    ONNX Runtime must know the ranks of a Scan body's outputs, which follow from these.
    """
    read = [name for node in scope.nodes if node.op_type == "Scan" for name in node.input]
    if scope.subgraph:
        read += [node.output[0] for node in scope.nodes if node.op_type == "Reshape"]
    found = []
    for name in dict.fromkeys(read):
        known = facts.type(scope, name) if name in scope.producers else None
        if name not in stated and known is not None and known.elem_type and known.dims:
            dims = [dim if isinstance(dim, int) else None for dim in known.dims]
            found.append(helper.make_tensor_value_info(name, known.elem_type, dims))
    return found


def uninferred_in_function(
    target: int, scope: Scope, results: Mapping[int, Sequence[NodeProto]]
) -> Iterator[tuple[NodeProto, str]]:
    """Find the nodes of a function's body whose types can no longer be inferred at the target.

    A graph states such types in its value_info; that of a function is not read.

    Args:
        target: the opset to reach.
        scope: the scope of the function's body.
        results: the replacements, by the identity of each replaced node.

    Yields:
        a node of the body, and the operator in its replacement that lacks inference.
    """
    own = {id(node): results.get(id(node), (node,)) for node in scope.nodes}
    if not any(lacks_inference(node, target) for result in own.values() for node in result):
        return
    read = {name for result in own.values() for node in result for name in node.input}
    for source in scope.nodes:
        uninferred = [node for node in own[id(source)] if lacks_inference(node, target)]
        if not uninferred or not scope.opset:
            continue
        # If its own opset infers none, its outputs had no type before either.
        known = schemas.exists(source.op_type, scope.opset)
        untyped = known and not schemas.infers_types(source.op_type, scope.opset)
        needed = read.difference(source.output) if untyped else read
        op_types = [node.op_type for node in uninferred if not needed.isdisjoint(node.output)]
        if op_types:
            yield source, op_types[0]
