"""The interface of the engine: the conversion of one model to one opset.

There are two phases. `Conversion` plans the nodes that replace each node and edits nothing, so all
blockers of the model are reported together. `apply` then edits the model in place; a node that no
boundary affects is left as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import onnx
from onnx import ModelProto, NodeProto

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.node_facts import Lookups, NodeFacts
from onnxreduce_cli.engine.apply import apply_plan
from onnxreduce_cli.engine.conversion_request import ConversionInput, ConversionRequest
from onnxreduce_cli.engine.description import OperatorCoverage, Plan, aim_text, describe
from onnxreduce_cli.engine.options import DEFAULTS, Options, check_opset
from onnxreduce_cli.engine.pause import collector_paused
from onnxreduce_cli.engine.planning import make_plan
from onnxreduce_cli.engine.preparation import Preparation
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.errors import Blocker, ConversionError
from onnxreduce_cli.model.graph.domains import default_opset, is_default
from onnxreduce_cli.model.graph.edit import Constants
from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.types.facts import Facts, admit
from onnxreduce_cli.model.types.stated_shapes import FalseShape, mend_shapes, reveals

if TYPE_CHECKING:
    from onnxreduce_cli.engine.catalogue import Pass
    from onnxreduce_cli.engine.changes import ContractionKey
    from onnxreduce_cli.engine.contraction import NearMiss
    from onnxreduce_cli.targets.requirement import Target
    from onnxreduce_cli.targets.verdict import TargetProblem


class Conversion:
    """The planned conversion of one model to one opset; the model is edited by `apply` alone.

    Attributes:
        model: the model.
        target: the opset to reach.
        source: the model's own opset; None where it imports no default domain.
        source_scopes: the scopes of the model before the conversion.
        source_facts: the types and constants of its values.
        false_shapes: the false shapes that the model stated, known once `apply` has run.
        choice: for which runtime the target was chosen, and why; may be empty.
        coverage: what is known of the operators that the runtime gets; None without a runtime.
        runtime: the full name and version of the runtime; empty without one.
        prepared: the changes of the whole model that were made before planning.
    """

    def __init__(
        self,
        model: ModelProto,
        target: int,
        options: Options = DEFAULTS,
        *,
        base_dir: str = "",
        facts: Facts | None = None,
        runtime: Target | None = None,
    ) -> None:
        """Plan the conversion.

        Args:
            model: the model, with the types that the options state in its value infos; it must not
                change before `apply`.
            target: the opset to reach.
            options: the options of the conversion.
            base_dir: the folder that external data is relative to.
            facts: the model's facts, where another conversion of it has begun to compute them.
            runtime: the runtime for which nodes are rewritten; by default that of the options.

        Raises:
            UsageError: no such opset, or an operator to expand has no function body.
            InvalidModelError: the model contradicts itself.
            ConversionError: the requested IR version is not possible, or the model's opset is newer
                than the installed onnx knows.
        """
        check_opset(target)
        options.check_expanded()
        contract, runtime = options.contracted(), runtime or options.target()
        self.model = model
        self.target = target
        self.false_shapes: tuple[FalseShape, ...] = ()
        self.choice = ""
        self.coverage: OperatorCoverage | None = None
        self.runtime = ""
        self.prepared = Preparation()
        with collector_paused():
            self.source_facts = facts or admit(model, base_dir)
            self.source_scopes = self.source_facts.scopes
            check_source(model, self.source_scopes)
            self.source = default_opset(model)
            self._plan = make_plan(
                ConversionInput(model, self.source_scopes, self.source_facts),
                ConversionRequest(self.source, target, options, contract, runtime),
            )

    # The plan, of the model or of a copy that passes have edited

    @property
    def scopes(self) -> Sequence[Scope]:
        """The scopes that were planned for."""
        return self._plan.input.scopes

    @property
    def facts(self) -> Facts:
        """The types and constants of the values in these scopes and of generated values."""
        return self._plan.facts

    @property
    def sites(self) -> Sequence[Site]:
        """The nodes that change, and those that are blocked."""
        return self._plan.sites

    def learning_target(self, own: int) -> int:
        """Return the version of ai.onnx.ml to reach from the model's own."""
        return self._plan.request.learning_target(own)

    @property
    def options(self) -> Options:
        """The options of the conversion."""
        return self._plan.request.options

    @property
    def near_misses(self) -> Sequence[NearMiss]:
        """The nodes that look like an operator to contract to, but are not."""
        return self._plan.converter.near_misses

    @property
    def passes(self) -> tuple[Pass, ...]:
        """The passes that change the model, beside the steps across boundaries."""
        return (*self.prepared.passes, *self._plan.passes)

    @property
    def swept(self) -> int:
        """The number of generated nodes that were removed again, as nothing reads them."""
        return self._plan.converter.swept

    @property
    def avoided(self) -> Counter[TargetProblem]:
        """What the runtime would compute wrong or refuse, each with the number of nodes."""
        return Counter(problem for site in self.sites for problem in site.avoided[:1])

    def constants(self, scope: Scope) -> Constants:
        """Return the constants that steps add to a scope, which new nodes read by name."""
        return self._plan.converter.constants(scope)

    @property
    def ir_version(self) -> int:
        """The IR version that the model gets."""
        return self._plan.ir_version

    @property
    def blockers(self) -> tuple[Blocker, ...]:
        """Every node that cannot reach the target."""
        return self.prepared.with_advice(self._plan.blockers)

    @property
    def rewrites_nodes(self) -> bool:
        """True if steps rewrite any node, so that there is something to check."""
        return any(site.description is not None for site in self.sites if site.blocked is None)

    @property
    def changes_nothing(self) -> bool:
        """True if the converted model equals the source, byte for byte."""
        return self._plan.changes_nothing and self.prepared.nodes is None

    def leave_uncontracted(self, reasons: Mapping[ContractionKey, str]) -> None:
        """Plan again without some contractions.

        Args:
            reasons: the contractions, each with the reason.
        """
        request = self._plan.request
        uncontracted = {**request.uncontracted, **reasons}
        with collector_paused():
            self._plan = make_plan(
                ConversionInput(self.model, self.source_scopes, self.source_facts),
                request._replace(uncontracted=uncontracted),
            )

    def plan(self) -> Plan:
        """The conversion as data."""
        found = describe(self.model, self.source_scopes, self._plan)
        return self.prepared.added_to(
            replace(found, choice=self.choice, coverage=self.coverage, runtime=self.runtime)
        )

    def nodes_after(self) -> Iterator[NodeFacts]:
        """Yield the nodes of the default domain that the converted model will have, with facts."""
        for scope, node in self.all_nodes_after():
            if is_default(node.domain):
                workspace = self._plan.converter.workspace(scope)
                yield NodeFacts(node, scope, self.target, workspace, Lookups())

    def all_nodes_after(self) -> Iterator[tuple[Scope, NodeProto]]:
        """Yield the nodes that the converted model will have, but for calls of its functions."""
        return ((scope, node) for _, scope, node in self._plan.nodes_after())

    def apply(self) -> None:
        """Edit the model in place.

        Raises:
            ConversionError: there are blockers; nothing was edited.
        """
        if self.blockers:
            aim = aim_text(self.source, self.target, self.runtime)
            raise ConversionError(f"cannot be converted {aim}", self.blockers)
        with collector_paused():
            revealing = reveals(self.source_scopes, self.source or self.target, self.target)
            apply_plan(self._plan, self.model)
            if revealing:
                self.false_shapes = mend_shapes(self.model)


def check_source(model: ModelProto, scopes: Sequence[Scope]) -> None:
    """Refuse a model of an opset that the installed onnx does not know.

    Raises:
        ConversionError: the model's opset is newer.
    """
    own = max(scope.opset or 0 for scope in scopes)
    if own > schemas.newest_opset():
        later = ", ".join(sorted(_unknown_operators(model, scopes))[:3])
        raise ConversionError(
            f"the model is of opset {own}{f' (it has {later})' if later else ''}, and onnx "
            f"{onnx.__version__}, which is installed, knows none after "
            f"{schemas.newest_opset()}: pip install -U onnx"
        )


def _unknown_operators(model: ModelProto, scopes: Sequence[Scope]) -> set[str]:
    """Return the operators of the default domain that the installed onnx knows at no opset."""
    functions = {function.name for function in model.functions}
    return {
        op_type
        for scope in scopes
        for op_type, node in zip(scope.op_types, scope.nodes, strict=True)
        if is_default(node.domain) and not schemas.versions(op_type)
    } - functions
