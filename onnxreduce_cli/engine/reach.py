"""The opsets and runtimes that a model can be converted for."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property

from onnx import ModelProto, TensorProto

from onnxreduce_cli.containers.operators import OPERATORS
from onnxreduce_cli.emit.node_facts import Lookups, NodeFacts
from onnxreduce_cli.engine.avoidance import Avoidance, blocked_by_domain
from onnxreduce_cli.engine.conversion import check_source
from onnxreduce_cli.engine.conversion_request import ConversionInput, ConversionRequest
from onnxreduce_cli.engine.operator_coverage import operators_of_other_domains
from onnxreduce_cli.engine.pause import collector_paused
from onnxreduce_cli.engine.plan import SitePlan
from onnxreduce_cli.engine.planning import make_plan
from onnxreduce_cli.model.graph.dead_values import REMOVABLE
from onnxreduce_cli.model.graph.domains import LEARNING, default_opset, imported_version, is_default
from onnxreduce_cli.model.types.facts import admit
from onnxreduce_cli.targets.requirement import Target
from onnxreduce_cli.targets.verdict import target_problems

#: The dtypes of values that steps bring in.
_EMITTED = frozenset({"bool", "double", "float", "float16", "int32", "int64", "uint8"})


#: A node of a converted model, behind the identity of the model's own that it is made of.
_Converted = tuple[int, NodeFacts]


class Reach:
    """A model whose conversion to several opsets and runtimes can be planned.

    Attributes:
        facts: the types and constants of its values.
        own: its opset; None where it imports no default domain.
        input: the model.
        is_plain: whether no pass over the whole model would help where a node blocks.
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
        self.input = ConversionInput(model, self.facts.scopes, self.facts)
        operators = {name for scope in self.facts.scopes for name in scope.op_types}
        # Passes may help where functions, sequences or optional values block.
        self.is_plain = not model.functions and operators.isdisjoint(OPERATORS)

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

    def to(self, opset: int) -> OpsetReach:
        """Plan the conversion to an opset.

        Raises:
            InvalidModelError: the model contradicts itself.
        """
        return OpsetReach(self, opset)


class OpsetReach:
    """The conversion of a model to one opset, and whether runtimes take its result.

    Attributes:
        blockers: the nodes that cannot be converted, whatever the runtime.
    """

    def __init__(self, reach: Reach, opset: int) -> None:
        """Plan the conversion.

        Raises:
            InvalidModelError: the model contradicts itself.
        """
        self._reach = reach
        self._opset = opset
        self._plan = self._make_plan(ConversionRequest(reach.own, opset))
        self.blockers = self._plan.blockers
        self._refused: dict[Hashable, list[_Converted]] = {}
        self._planned: dict[Hashable, list[tuple[dict[str, Hashable], bool]]] = {}

    def suits(self, runtime: Target) -> bool:
        """Return whether the conversion for a runtime has no blockers.

        Only the nodes are planned for the runtime of which it does not take what they become.

        Raises:
            InvalidModelError: the model contradicts itself.
        """
        if self.blockers:
            return False
        model_input, plan = self._reach.input, self._plan
        whole = ConversionRequest(self._reach.own, self._opset, runtime=runtime)
        own = imported_version(model_input.model, LEARNING)
        learned = own and whole.learning_target(own)
        if plan.input is model_input and plan.ml_opset == learned:
            blocked = False
            for key, nodes in self._refused_by(runtime):
                request = whole._replace(only=frozenset(origin for origin, _ in nodes))
                if not self._has_no_blockers(request, key):
                    blocked = True
                    if self._reach.is_plain and not any(_may_die(node) for _, node in nodes):
                        return False
            if not blocked:
                return True
        taken = (
            blocked_by_domain(runtime, *item) is None
            for item in operators_of_other_domains(self._reach.facts)
        )
        return self._has_no_blockers(whole, (learned, *taken))

    def _refused_by(self, runtime: Target) -> Iterator[tuple[Hashable, Sequence[_Converted]]]:
        """Yield the converted nodes that a runtime does not take.

        Those of one operator come together, behind a key of what the runtime takes of it.
        """
        affected = Avoidance(runtime, self._opset).affects
        for (domain, op_type), nodes in self._converted.items():
            if domain:
                version = self._imports.get(domain, 0)
                if blocked_by_domain(runtime, domain, op_type, version) is not None:
                    yield (domain, op_type), nodes
            elif affected(op_type):
                key = op_type, self._key(runtime, op_type)
                if key not in self._refused:
                    self._refused[key] = [
                        (origin, node)
                        for origin, node in nodes
                        if any(target_problems(runtime, node, self._opset))
                    ]
                if self._refused[key]:
                    yield key, self._refused[key]

    def _has_no_blockers(self, request: ConversionRequest, key: Hashable) -> bool:
        """Return whether a conversion for a runtime has no blockers; equal keys are equal nodes.

        What was found for one runtime holds for others of which the same is known of all operators
        that were asked for.
        """
        runtime = request.runtime
        assert runtime is not None
        planned = self._planned.setdefault(key, [])
        for known, found in planned:
            if all(self._key(runtime, op_type) == item for op_type, item in known.items()):
                return found
        plan = self._make_plan(request)
        asked = {op_type: self._key(runtime, op_type) for op_type in plan.converter.asked}
        planned.append((asked, not plan.blocked))
        return not plan.blocked

    def _key(self, runtime: Target, op_type: str) -> Hashable:
        """Return a key of what is known of an operator in a runtime."""
        return runtime.key("", op_type, self._opset, self._reach.dtypes)

    @cached_property
    def _imports(self) -> dict[str, int]:
        """The versions of the domains that the converted model imports."""
        found = {entry.domain: entry.version for entry in self._reach.input.model.opset_import}
        return found | ({} if self._plan.ml_opset is None else {LEARNING: self._plan.ml_opset})

    @cached_property
    def _converted(self) -> dict[tuple[str, str], list[_Converted]]:
        """The nodes of the converted model by domain and operator."""
        found: dict[tuple[str, str], list[_Converted]] = {}
        for origin, scope, node in self._plan.nodes_after():
            domain = "" if is_default(node.domain) else node.domain
            workspace = self._plan.converter.workspace(scope)
            facts = NodeFacts(node, scope, self._opset, workspace, Lookups())
            found.setdefault((domain, node.op_type), []).append((id(origin), facts))
        return found

    def _make_plan(self, request: ConversionRequest) -> SitePlan:
        model_input = self._reach.input
        with collector_paused():
            if request.only is not None:
                return SitePlan(model_input, request)
            return make_plan(model_input, request)


def _may_die(node: NodeFacts) -> bool:
    """Return whether a node computes sizes or constants, which rewrites of others may not read."""
    made = node.node.output
    return node.node.op_type in REMOVABLE and any(
        node.rank(name) in (0, 1) or node.constant(name) is not None for name in made
    )
