"""What holds of every step that is taken, in whichever test; see `tests/conftest.py`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, TypeVar

from onnx import GraphProto, NodeProto

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.engine import avoidance, contraction, node_converter
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, subgraphs
from onnxreduce_cli.steps.dispatch import NextStep
from onnxreduce_cli.steps.registry import Alternative

T = TypeVar("T")


def watch() -> None:
    """Have everything that is asked to write nodes in a node's place checked after it did."""
    next_step, body_writer, alternatives = (
        node_converter.next_step,
        node_converter.body_writer,
        avoidance.alternatives,
    )
    emit, fit_types = contraction.Contraction.emit, node_converter.fit_types

    def watched_step(*asked: Any, **options: Any) -> NextStep | None:
        step = next_step(*asked, **options)
        return None if step is None else step._replace(take=_watched(step.take))

    def watched_alternatives(op_type: str, form: str) -> Iterator[Alternative]:
        for item in alternatives(op_type, form):
            yield item._replace(apply=_watched(item.apply))

    def watched_emit(self: contraction.Contraction, context: Context) -> None:
        emit(self, context)
        check(context)

    def watched_fit(context: Context, *rest: Any) -> None:
        fit_types(context, *rest)
        check(context)

    node_converter.next_step = watched_step
    node_converter.fit_types = watched_fit
    node_converter.body_writer = lambda op_type: _watched(body_writer(op_type))
    avoidance.alternatives = watched_alternatives
    contraction.Contraction.emit = watched_emit


def _watched(write: Callable[[Context], T]) -> Callable[[Context], T]:
    """Return what writes as another does, and is checked."""

    @wraps(write)
    def watched(context: Context) -> T:
        found = write(context)
        check(context)
        return found

    return watched


def check(context: Context) -> None:
    """Assert that what a step emitted is valid and read, and that it says what it did."""
    _check_description(context)
    for node, opset in context.emitted:
        _check_valid(context, node, opset)
    nodes = [node for node, _ in context.emitted]
    _check_read(context, nodes, context.node.output)


#: What a rule has, and no description of what was done to a node.
_ALTERNATIVES = re.compile(r"\b(where|else|if|or|unless)\b")


def _check_description(context: Context) -> None:
    words = context.description
    assert not _ALTERNATIVES.search(words), f"{_step(context)} says what may be done: {words}"


def _check_valid(context: Context, node: NodeProto, opset: int) -> None:
    if not is_default(node.domain):
        return
    assert schemas.defines(node.op_type, opset) or node.op_type == context.node.op_type, (
        f"{_step(context)} emits {node.op_type} at opset {opset}, which has none"
    )
    problem = schemas.invalid(node, opset)
    assert problem is None, f"{_step(context)} emits a {node.op_type} at opset {opset}: {problem}"
    for graph in _written(context, node):
        for inner in graph.node:
            _check_valid(context, inner, opset)


def _check_read(context: Context, nodes: Iterable[NodeProto], outputs: Iterable[str]) -> None:
    unread = list(unread_nodes(nodes, outputs))
    assert not unread, f"{_step(context)} emits what nobody reads: " + ", ".join(
        f"{node.op_type} {node.name!r}" for node in unread
    )
    for node in nodes:
        for graph in _written(context, node):
            _check_read(context, graph.node, [output.name for output in graph.output])


def _written(context: Context, node: NodeProto) -> Iterator[GraphProto]:
    """The graphs within an emitted node, if the step wrote them and did not take them over."""
    if context.node.op_type not in GRAPH_OPERATORS:
        yield from (graph for _, graph in subgraphs(node))


def unread_nodes(nodes: Iterable[NodeProto], outputs: Iterable[str]) -> Iterator[NodeProto]:
    """The nodes none of whose outputs another node, or a graph within one, reads, or is given."""
    nodes = list(nodes)
    read = set(outputs).union(*map(reads, nodes))
    return (node for node in nodes if read.isdisjoint(filter(None, node.output)))


def reads(node: NodeProto) -> set[str]:
    """What a node and the graphs within it read by name."""
    found = set(node.input)
    for _, graph in subgraphs(node):
        found.update(output.name for output in graph.output)
        found = found.union(*map(reads, graph.node))
    return found


def _step(context: Context) -> str:
    return (
        f"the step of {context.node.op_type} from opset {context.source_opset} to "
        f"{context.target_opset}, at {context.op.opset},"
    )
