"""Refusal of models that contradict themselves, as steps trust the facts that they look up."""

from __future__ import annotations

from onnx import NodeProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.errors import Blocker, InvalidModelError
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.types.dead_branches import is_dead
from onnxreduce_cli.model.types.facts import Facts

#: What to do where a node cannot be there with the types around it.
_MEND = "mend the model: change this node, or the types that the model states around it"


class Soundness:
    """Checks that the nodes of a model agree with the facts of their values."""

    def __init__(self, facts: Facts) -> None:
        """Prepare; nothing is checked yet."""
        self._facts = facts

    def refuse_contradictions(self, site: Site) -> None:
        """Refuse a node that contradicts the facts that its steps looked up.

        In a branch that is never taken such a node is blocked: the model is right without it.

        Args:
            site: the site of the node.

        Raises:
            InvalidModelError: the model is invalid there.
        """
        scope, node, known = site.scope, site.node, site.lookups
        problem = None if site.is_sound else self.problem(site)
        if problem is not None and is_dead(self._facts, scope):
            reason = f"its branch is never taken, and cannot run: {problem}"
            site.blocked = Blocked(reason, "fold the model first: add --fold")
        elif problem is not None:
            raise _invalid(scope, node, problem)
        elif known.types and known.more:
            self.refuse_false_shapes(scope, node)

    def problem(self, site: Site) -> str | None:
        """Return how a node contradicts the facts that its steps looked up; None if it does not.

        Args:
            site: the site of the node.
        """
        known = site.lookups
        if known.types or site.blocked is not None:
            return self._facts.contradiction(site.scope, site.node)
        if known.constants:
            return self._facts.contradiction_of_constants(site.scope, site.node, known.constants)
        return None

    def refuse_false_shapes(self, scope: Scope, node: NodeProto) -> None:
        """Refuse a node if the stated shape of an input is not what its producer gives.

        Steps do not look at the producer: who trusts the shape would silently be wrong.

        Raises:
            InvalidModelError: the model is invalid there.
        """
        for name in node.input[:]:
            owner = scope.resolve(name) if name else None
            maker = None if owner is None else owner.producer(name)
            if owner is None or not owner.opset or maker is None:
                continue
            called = not is_default(maker.domain) or self._facts.calls.function_of(maker)
            if name in owner.declared and not called:
                problem = self._facts.contradiction(owner, maker)
                if problem is not None:
                    raise _invalid(owner, maker, problem)


def _invalid(scope: Scope, node: NodeProto, problem: str) -> InvalidModelError:
    where = (scope.describe(node), node.op_type, scope.opset or 0, scope.label)
    return InvalidModelError(str(Blocker(*where, problem, _MEND)))
