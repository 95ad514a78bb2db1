"""What is in the way of a model, asked for many opsets and runtimes."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import ModelProto

from onnxreduce_cli.engine.conversion import check_source
from onnxreduce_cli.engine.conversion_request import ConversionInput, ConversionRequest
from onnxreduce_cli.engine.pause import collector_paused
from onnxreduce_cli.engine.plan import SitePlan
from onnxreduce_cli.engine.planning import make_plan
from onnxreduce_cli.errors import Blocker
from onnxreduce_cli.model.domains import default_opset
from onnxreduce_cli.model.gate import admit
from onnxreduce_cli.targets.requirement import Target


@dataclass(frozen=True, slots=True)
class PlanOutcome:
    """What a plan comes to.

    Attributes:
        blockers: every node that cannot be converted.
        operators: those of the nodes that take the place of others.
    """

    blockers: tuple[Blocker, ...]
    operators: frozenset[str]


class Reach:
    """A model, and what is in its way.

    Attributes:
        facts: what is known of its values.
        own: its opset; None where it imports no default domain.
    """

    def __init__(self, model: ModelProto, base_dir: str = "") -> None:
        """Take in a model; nothing is planned yet.

        Raises:
            InvalidModelError: the model contradicts itself.
            ConversionError: it is of an opset that the installed onnx does not know.
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
        """Return whether nothing is in the way of a conversion for a runtime to an opset.

        Raises:
            InvalidModelError: the model contradicts itself.
        """
        return not self._plan(opset, runtime).blocked

    def _plan(self, opset: int, runtime: Target | None = None) -> SitePlan:
        """Plan a conversion; `runtime` is where the model is to run, None for anywhere."""
        request = ConversionRequest(self.own, opset, runtime=runtime)
        with collector_paused():
            return make_plan(self._input, request)
