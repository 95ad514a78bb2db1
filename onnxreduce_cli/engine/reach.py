"""The blockers of a model's conversion to many opsets and runtimes."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import ModelProto

from onnxreduce_cli.engine.conversion import check_source
from onnxreduce_cli.engine.conversion_request import ConversionInput, ConversionRequest
from onnxreduce_cli.engine.pause import collector_paused
from onnxreduce_cli.engine.plan import SitePlan
from onnxreduce_cli.engine.planning import make_plan
from onnxreduce_cli.errors import Blocker
from onnxreduce_cli.model.graph.domains import default_opset
from onnxreduce_cli.model.types.facts import admit
from onnxreduce_cli.targets.requirement import Target


@dataclass(frozen=True, slots=True)
class PlanOutcome:
    """The outcome of planning the conversion to one opset.

    Attributes:
        blockers: the nodes that cannot be converted.
        operators: the operators of the nodes that replace others.
    """

    blockers: tuple[Blocker, ...]
    operators: frozenset[str]


class Reach:
    """A model whose conversion to several opsets and runtimes can be planned.

    Attributes:
        facts: the types and constants of its values.
        own: its opset; None where it imports no default domain.
    """

    def __init__(self, model: ModelProto, base_dir: str = "") -> None:
        """Check the model; nothing is planned yet.

        Raises:
            InvalidModelError: the model contradicts itself.
            ConversionError: the installed onnx does not know its opset.
        """
        self.facts = admit(model, base_dir)
        check_source(model, self.facts.scopes)
        self.own = default_opset(model)
        self._input = ConversionInput(model, self.facts.scopes, self.facts)

    def to(self, opset: int) -> PlanOutcome:
        """Plan the conversion to an opset.

        Raises:
            InvalidModelError: the model contradicts itself.
        """
        plan = self._plan(opset)
        made = frozenset(name for site in plan.sites for name in site.operators)
        return PlanOutcome(plan.blockers, made)

    def suits(self, runtime: Target, opset: int) -> bool:
        """Return whether the conversion for a runtime to an opset has no blockers.

        Raises:
            InvalidModelError: the model contradicts itself.
        """
        return not self._plan(opset, runtime).blocked

    def _plan(self, opset: int, runtime: Target | None = None) -> SitePlan:
        """Plan the conversion to an opset, for a runtime or for any."""
        request = ConversionRequest(self.own, opset, runtime=runtime)
        with collector_paused():
            return make_plan(self._input, request)
