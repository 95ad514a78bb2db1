"""The nodes of a model that a target gets wrong or refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from onnx import GraphProto, NodeProto

from onnxreduce_cli.emit.node_facts import Lookups, NodeFacts, Workspace
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.edit import Constants
from onnxreduce_cli.model.graph.names import Names
from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.targets.forms import may_have_form
from onnxreduce_cli.targets.requirement import Target
from onnxreduce_cli.targets.rows import Effect, Quirk, Source


@dataclass(frozen=True, slots=True)
class TargetProblem:
    """One thing that a target gets wrong, or refuses, about a node.

    Attributes:
        effect: whether the target computes something else, or refuses the model.
        what: what the target does, as users read it.
        source: the source of this; None where the user says so.
        quirk: the quirk; None where the target's list of operators lacks this one.
    """

    effect: Effect
    what: str
    source: Source | None
    quirk: Quirk | None = None


def target_problems(target: Target, node: NodeFacts, opset: int) -> Iterator[TargetProblem]:
    """Yield what a target gets wrong, or refuses, about a node of the default domain.

    Args:
        target: the target.
        node: the facts of the node.
        opset: the opset of its model.
    """
    op_type = node.node.op_type
    lacking = target.lacks(op_type, opset)
    if lacking is not None:
        yield TargetProblem("refused", "has no such operator", lacking.source)
    for quirk in target.quirks:
        if op_type in quirk.operators and quirk.at(opset) and may_have_form(node, quirk.form):
            yield TargetProblem(quirk.effect, quirk.what, quirk.source, quirk)


def default_domain_nodes(facts: Facts) -> Iterator[NodeFacts]:
    """Yield the facts of each node of a model that is of the default domain."""
    ask = node_facts_function(facts)
    for scope in facts.scopes:
        for node in scope.nodes:
            if is_default(node.domain) and facts.calls.function_of(node) is None:
                yield ask(scope, node)


def node_facts_function(facts: Facts) -> Callable[[Scope, NodeProto], NodeFacts]:
    """Return a function that gives the facts of a node of a model, by its scope and the node."""
    workspaces: dict[int, Workspace] = {}

    def ask(scope: Scope, node: NodeProto) -> NodeFacts:
        workspace = workspaces.get(id(scope))
        if workspace is None:
            workspace = Workspace(
                facts, Names([scope]), Constants(), facts.model.ir_version, GraphProto()
            )
            workspaces[id(scope)] = workspace
        return NodeFacts(node, scope, scope.opset or 0, workspace, Lookups())

    return ask
