"""The blockers of a model's conversion to many opsets and runtimes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

from onnx import ModelProto, TensorProto

from onnxreduce_cli.containers.operators import OPERATORS
from onnxreduce_cli.engine.avoidance import blocked_by_domain
from onnxreduce_cli.engine.conversion import check_source
from onnxreduce_cli.engine.conversion_request import ConversionInput, ConversionRequest
from onnxreduce_cli.engine.operator_coverage import operators_of_other_domains
from onnxreduce_cli.engine.pause import collector_paused
from onnxreduce_cli.engine.plan import SitePlan
from onnxreduce_cli.engine.planning import make_plan
from onnxreduce_cli.errors import Blocker
from onnxreduce_cli.model.graph.domains import default_opset
from onnxreduce_cli.model.types.facts import admit
from onnxreduce_cli.targets.requirement import Target

#: The dtypes of values that steps bring in.
_EMITTED = frozenset({"bool", "double", "float", "float16", "int32", "int64", "uint8"})


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
        operators = {name for scope in self.facts.scopes for name in scope.op_types}
        # Passes may help where functions, sequences or optional values block.
        self._is_plain = not model.functions and operators.isdisjoint(OPERATORS)
        self._of_other_domains = operators_of_other_domains(self.facts)
        self._planned: dict[int, list[tuple[dict[tuple[str, str, int], Hashable], bool]]] = {}

    @cached_property
    def dtypes(self) -> frozenset[str]:
        """The dtypes of the model's values, and those that steps bring in."""
        found = {
            self.facts.elem_type(scope, name)
            for scope in self.facts.scopes
            for node in scope.nodes
            for name in (*node.input, *node.output)
        }
        return _EMITTED | {TensorProto.DataType.Name(item).lower() for item in found if item}

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

        What was planned for one runtime holds for others of which the same is known of all
        operators that were asked for: of a plan that ended with a node, of that node alone.

        Raises:
            InvalidModelError: the model contradicts itself.
        """
        for keys, suits in self._planned.setdefault(opset, []):
            if all(self._key(runtime, *name) == key for name, key in keys.items()):
                return suits
        plan = self._plan(opset, runtime)
        asked = plan.converter.asked_of_site if plan.ended else plan.converter.asked
        names = [("", op_type, opset) for op_type in asked]
        keys = {name: self._key(runtime, *name) for name in (*names, *self._of_other_domains)}
        self._planned[opset].append((keys, not plan.blocked))
        return not plan.blocked

    def _key(self, runtime: Target, domain: str, op_type: str, opset: int) -> Hashable:
        """Return a key of what is known of an operator in a runtime."""
        if not domain:
            return runtime.key(domain, op_type, opset, self.dtypes)
        return blocked_by_domain(runtime, domain, op_type, opset) is None

    def _plan(self, opset: int, runtime: Target | None = None) -> SitePlan:
        """Plan the conversion to an opset, for a runtime or for any."""
        request = ConversionRequest(
            self.own, opset, runtime=runtime, first_refusal=runtime is not None and self._is_plain
        )
        with collector_paused():
            return make_plan(self._input, request)
