"""The nodes of a model that a target gets wrong or refuses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from onnx import GraphProto, NodeProto

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.node_facts import Lookups, NodeFacts, Workspace
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.edit import Constants
from onnxreduce_cli.model.graph.names import Names
from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.targets.forms import may_have_form
from onnxreduce_cli.targets.operators import Answer
from onnxreduce_cli.targets.requirement import Target
from onnxreduce_cli.targets.rows import Effect, Quirk, Source


@dataclass(frozen=True, slots=True)
class TargetProblem:
    """One thing that a target gets wrong, or refuses, about a node.

    Attributes:
        op_type: the node's operator.
        effect: whether the target computes something else, or refuses the model.
        what: what the target does, as users read it.
        source: the source of this; None where the user says so.
        quirk: the quirk; None where the target does not take the operator, or no such node of it.
    """

    op_type: str
    effect: Effect
    what: str
    source: Source | None
    quirk: Quirk | None = None

    def __str__(self) -> str:
        """``ReduceMax: reduces all axes``."""
        return f"{self.op_type}: {self.what}"

    @property
    def form(self) -> str:
        """The form of nodes that it concerns, a name of `forms.FORMS`."""
        return "any" if self.quirk is None else self.quirk.form

    def is_at_every_opset(self, target: Target, opsets: Collection[int]) -> bool:
        """Return whether no other opset, of those that have the operator, would avoid this."""
        since = schemas.versions(self.op_type)[:1]
        having = [opset for opset in opsets if since and opset >= since[0]]
        if self.quirk is not None:
            # Another definition may have the node in another form.
            definitions = {schemas.schema(self.op_type, opset).since_version for opset in having}
            return len(definitions) < 2 and all(self.quirk.at(opset) for opset in having)
        return all(target.answer("", self.op_type, opset).value == "not taken" for opset in having)


def target_problems(target: Target, node: NodeFacts, opset: int) -> Iterator[TargetProblem]:
    """Yield what a target gets wrong, or refuses, about a node of the default domain.

    Args:
        target: the target.
        node: the facts of the node.
        opset: the opset of its model.
    """
    op_type = node.node.op_type
    found = [
        TargetProblem(op_type, quirk.effect, quirk.what, quirk.source, quirk)
        for quirk in target.quirks
        if op_type in quirk.operators and quirk.at(opset) and may_have_form(node, quirk.form)
    ]
    # There may be an alternative to the form that a quirk names.
    yield from (problem for problem in found if problem.form != "any")
    answer = target.answer("", op_type, opset, node)
    if answer.value == "not taken":
        yield TargetProblem(op_type, "refused", refusal_text(answer), answer.source)
    yield from (problem for problem in found if problem.form == "any")


def refusal_text(answer: Answer) -> str:
    """Return what a target does with an operator that it does not take, or with such a node."""
    if not answer.conditions:
        return "does not take it"
    return f"takes it only if {' and '.join(answer.conditions)}"


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
            workspace = Workspace(facts, Names([scope]), Constants(), GraphProto())
            workspaces[id(scope)] = workspace
        return NodeFacts(node, scope, scope.opset or 0, workspace, Lookups())

    return ask
