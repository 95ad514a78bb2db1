"""The opsets and runtimes that a model can be converted for."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from onnx import ModelProto, NodeProto, TensorProto

from onnxreduce_cli.containers.operators import OPERATORS
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.engine.avoidance import blocked_by_domain
from onnxreduce_cli.engine.conversion import check_source
from onnxreduce_cli.engine.conversion_request import ConversionInput, ConversionRequest
from onnxreduce_cli.engine.converted_nodes import AskedRuntime, ConvertedNode, UndecidedError
from onnxreduce_cli.engine.emulation import may_loop, refuse_emulation
from onnxreduce_cli.engine.node_converter import Drafts
from onnxreduce_cli.engine.operator_coverage import operators_of_other_domains
from onnxreduce_cli.engine.pause import collector_paused
from onnxreduce_cli.engine.planning import make_plan
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.engine.stated_types import lacks_inference
from onnxreduce_cli.model.graph.dead_values import dead_values
from onnxreduce_cli.model.graph.domains import (
    LEARNING,
    default_opset,
    imported_version,
    is_default,
    operator_name,
)
from onnxreduce_cli.model.types.facts import admit
from onnxreduce_cli.targets.requirement import Target

#: The dtypes of values that steps bring in.
_EMITTED = frozenset({"bool", "double", "float", "float16", "int32", "int64", "uint8"})


class Reach:
    """A model whose conversion to several opsets and runtimes can be planned.

    Attributes:
        facts: the types and constants of its values.
        own: its opset; None where it imports no default domain.
        input: the model.
        drafts: what was written for its nodes, whatever the runtime; None once a step stated
            another type for one of its values, which holds in one plan alone.
        forms: the forms of its nodes that runtimes must not get, by the identity of the node; see
            `ConvertedNode`.
        blocking: the operators of the nodes that blocked for a runtime at an opset, the latest
            last.
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
        self.drafts: Drafts | None = Drafts(self.facts.extended(), {})
        self.forms: dict[int, dict[Hashable, str | None]] = {}
        self.blocking: dict[str, None] = {}
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

    def note_blocking(self, name: str) -> None:
        """Note that a node of an operator blocked for a runtime, as the latest."""
        self.blocking.pop(name, None)
        self.blocking[name] = None

    def to(self, opset: int) -> OpsetReach:
        """Plan the conversion to an opset.

        Raises:
            InvalidModelError: the model contradicts itself.
        """
        found = OpsetReach(self, opset)
        if self.drafts is not None and self.drafts.facts.generated.restated:
            self.drafts = None
        return found


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
        with collector_paused():
            request = ConversionRequest(reach.own, opset)
            self._plan = make_plan(reach.input, request, drafts=reach.drafts)
        self.blockers = self._plan.blockers
        self._refused: dict[Hashable, tuple[list[ConvertedNode], Iterator[ConvertedNode]]] = {}
        self._planned: dict[Hashable, list[tuple[dict[str, Hashable], bool]]] = {}

    def suits(self, target: Target) -> bool:
        """Return whether the conversion for a runtime has no blockers.

        Raises:
            InvalidModelError: the model contradicts itself.
        """
        if self.blockers:
            return False
        request = ConversionRequest(self._reach.own, self._opset, runtime=target)
        own = imported_version(self._reach.input.model, LEARNING)
        learned = own and request.learning_target(own)
        runtime = AskedRuntime(target, self._opset, self._reach.dtypes)
        if self._plan.input is self._reach.input and self._plan.ml_opset == learned:
            try:
                with collector_paused():
                    found = self._is_taken(runtime)
            except UndecidedError:
                pass
            else:
                if found or self._reach.is_plain:
                    return found
        taken = (
            blocked_by_domain(target, *item) is None
            for item in operators_of_other_domains(self._reach.facts)
        )
        return self._has_no_blockers(runtime, request, (learned, *taken))

    def _is_taken(self, runtime: AskedRuntime) -> bool:
        """Return whether a runtime takes each node, something in its place, or needs none.

        Raises:
            UndecidedError: only a plan of the whole model tells.
            InvalidModelError: the model contradicts itself.
        """
        instead: dict[int, Sequence[NodeProto]] = {}
        blocked: dict[int, Site] = {}
        sites: dict[int, Site] = {}
        for node in self._refused_by(runtime):
            taken, sites[id(node.site)] = node.taken_as(runtime), node.site
            if taken is not None:
                instead[id(node.node)] = taken
            elif node.may_die:
                blocked[id(node.site)] = node.site
            else:
                self._reach.note_blocking(operator_name(node.node))
                return False
        written = [
            self._rewritten(site, instead) for key, site in sites.items() if key not in blocked
        ]
        if blocked and not self._are_dead(blocked.values(), written):
            return False
        self._ask_for_constants(runtime, written)
        return True

    def _rewritten(self, site: Site, instead: Mapping[int, Sequence[NodeProto]]) -> Site:
        """Return a site with nodes written in place of some that a runtime does not take.

        Raises:
            UndecidedError: the nodes cannot be there for reasons of their own.
        """
        planned, node = self._changed.get(id(site.node), site), site.node
        result = [new for made in planned.result for new in instead.get(id(made), [made])]
        found = Site(site.scope, node, result=result)
        try:
            refuse_emulation(found, self._opset, emulate=False, emulated=may_loop(node.op_type))
        except Blocked as error:
            raise UndecidedError from error
        if site.scope.function is not None and any(
            lacks_inference(item, self._opset) for item in result
        ):
            raise UndecidedError
        return found

    def _ask_for_constants(self, runtime: AskedRuntime, written: Iterable[Site]) -> None:
        """Ask whether a runtime takes the nodes that make constants, where no initializers may.

        Raises:
            UndecidedError: it may not take one, or there is none that makes a constant.
        """
        maker = self._plan.maker
        new = [*self._plan.constants.values()]
        try:
            new += [
                maker.read_in(site.scope, [site.result])
                for site in written
                if maker.as_nodes(site.scope)
            ]
        except Blocked as error:
            raise UndecidedError from error
        if any(runtime.affects(node.op_type) for made in new for node in made.nodes):
            raise UndecidedError

    def _are_dead(self, blocked: Iterable[Site], written: Sequence[Site]) -> bool:
        """Return whether nothing reads the nodes of blocked sites once others are written."""
        nodes = {id(site.node) for site in blocked}
        replaced = nodes.union(id(site.node) for site in written)
        rest = (site for key, site in self._changed.items() if key not in replaced)
        model_input = self._reach.input
        dead = dead_values(model_input.scopes, [*rest, *written], model_input.bound())
        return nodes <= {*dead.nodes}

    def _refused_by(self, runtime: AskedRuntime) -> Iterator[ConvertedNode]:
        """Yield the converted nodes that a runtime does not take.

        First come those that blocked the last time: they do at most opsets, and in most versions.
        """
        latest = (name for name in reversed(self._reach.blocking) if name in self._converted)
        for name in dict.fromkeys((*latest, *self._converted)):
            nodes = self._converted[name]
            if not is_default(nodes[0].node.domain):
                yield from (node for node in nodes if not node.is_taken(runtime))
                continue
            key = name, runtime.key(name)
            if key not in self._refused:
                self._refused[key] = [], iter(nodes if runtime.affects(name) else ())
            # Who asks stops at the first node that blocks: the rest are looked at when needed.
            refused, rest = self._refused[key]
            yield from refused
            for node in rest:
                if not node.is_taken(runtime):
                    refused.append(node)
                    yield node

    def _has_no_blockers(
        self, runtime: AskedRuntime, request: ConversionRequest, key: Hashable
    ) -> bool:
        """Return whether a conversion of the whole model for a runtime has no blockers.

        What was found for one runtime holds for others of which the same is known of all operators
        that were asked for; equal keys say the same of other domains.
        """
        planned = self._planned.setdefault(key, [])
        for known, found in planned:
            if all(runtime.key(op_type) == item for op_type, item in known.items()):
                return found
        with collector_paused():
            plan = make_plan(self._reach.input, request)
        asked = {op_type: runtime.key(op_type) for op_type in plan.converter.asked}
        planned.append((asked, not plan.blocked))
        return not plan.blocked

    @cached_property
    def _changed(self) -> dict[int, Site]:
        """The sites by the identity of their nodes."""
        return {id(site.node): site for site in self._plan.sites}

    @cached_property
    def _converted(self) -> dict[str, list[ConvertedNode]]:
        """The nodes of the converted model by operator."""
        plan, changed = self._plan, self._changed
        imports = {entry.domain: entry.version for entry in self._reach.input.model.opset_import}
        imports |= {} if plan.ml_opset is None else {LEARNING: plan.ml_opset}
        # What is known of the model's values may be another thing in a plan of its own.
        forms = {} if self._reach.drafts is None else self._reach.forms
        found: dict[str, list[ConvertedNode]] = {}
        sites: dict[int, Site] = {}
        for origin, scope, node in plan.nodes_after():
            planned = changed.get(id(origin))
            own = planned.scope if planned is not None else scope
            site = sites.setdefault(id(origin), Site(own, origin, result=[origin]))
            domain = "" if is_default(node.domain) else node.domain
            converted = ConvertedNode(
                plan.converter,
                site,
                scope,
                node,
                beside=planned.result if planned is not None and node is not origin else (),
                imported=imports.get(domain, 0),
                forms=forms.setdefault(id(node), {}) if node is origin else None,
            )
            found.setdefault(operator_name(node), []).append(converted)
        return found
