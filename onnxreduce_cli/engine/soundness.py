"""Models that contradict themselves: steps trust what they look up, so nothing is made of these."""

from __future__ import annotations

from onnx import NodeProto

from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.errors import Blocker, InvalidModelError
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.types.facts import Facts


class Soundness:
    """Whether the nodes of a model can be there with what is known around them."""

    def __init__(self, facts: Facts) -> None:
        """Take the facts of the model; nothing is asked yet."""
        self._facts = facts

    def refuse_contradictions(self, site: Site) -> None:
        """Refuse a node that cannot be there with what its steps looked up.

        Args:
            site: the node's.

        Raises:
            InvalidModelError: the model is invalid there.
        """
        scope, node, known = site.scope, site.node, site.lookups
        if known.types or site.blocked is not None:
            problem = self._facts.contradiction(scope, node)
        elif known.constants:
            problem = self._facts.contradiction_of_constants(scope, node, known.constants)
        else:
            return
        if problem is not None:
            raise _invalid(scope, node, problem)
        if known.types and known.more:
            self.refuse_false_shapes(scope, node)

    def refuse_false_shapes(self, scope: Scope, node: NodeProto) -> None:
        """Refuse what a model states of a value that a node reads, if what makes it gives another.

        No step may look at what makes it, and who trusts the shape would be wrong without a word.

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
    return InvalidModelError(str(Blocker(*where, problem, "mend the model")))
