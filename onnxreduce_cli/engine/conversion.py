"""The interface of the engine: one model, converted to one opset.

Two phases. `Conversion` reads the model and works out, for each scope, the nodes that replace a
node; nothing of it is edited, so blockers over the whole model can be reported together. `apply`
then makes the edits in place: what no boundary touches is not touched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import onnx
from onnx import ModelProto

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.engine.apply import apply_plan
from onnxreduce_cli.engine.conversion_request import ConversionInput, ConversionRequest
from onnxreduce_cli.engine.converted_nodes import converted_nodes
from onnxreduce_cli.engine.description import Plan, describe
from onnxreduce_cli.engine.pause import collector_paused
from onnxreduce_cli.engine.planning import make_plan
from onnxreduce_cli.engine.preparation import Prepared
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.errors import Blocker, ConversionError, UsageError
from onnxreduce_cli.model.domains import default_opset, is_default
from onnxreduce_cli.model.edit import Constants
from onnxreduce_cli.model.gate import admit
from onnxreduce_cli.model.ir_version import Wanted
from onnxreduce_cli.model.scope import Scope
from onnxreduce_cli.model.stated_shapes import FalseShape, mend_shapes, reveals
from onnxreduce_cli.model.types.conversion_facts import ConversionFacts
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.steps.dispatch import body
from onnxreduce_cli.targets.elsewhere import Wrong, wrong_elsewhere

if TYPE_CHECKING:
    from onnxreduce_cli.engine.contraction import NearMiss
    from onnxreduce_cli.targets.requirement import Target


class Conversion:
    """Everything that moving one model to one opset takes, worked out without editing it.

    Attributes:
        model: the model.
        target: the opset to reach.
        source: the model's own; None where it imports no default domain.
        given_scopes: the scopes of the model as it is.
        given_facts: what is known of its values.
        false_shapes: what the model stated falsely, known when the conversion is applied.
        choice: for which runtime the target was chosen, and why; may be empty.
        prepared: what was done to the model before, which counts as changed then.
    """

    def __init__(
        self,
        model: ModelProto,
        target: int,
        *,
        expand: Collection[str] = (),
        contract: Collection[str] = (),
        target_ir_version: Wanted = "auto",
        base_dir: str = "",
        facts: Facts | None = None,
        types: tuple[str, ...] = (),
        emulate: bool = False,
        runtime: Target | None = None,
    ) -> None:
        """Plan the conversion.

        Args:
            model: the model; it must not change before `apply`.
            target: the opset to reach.
            expand: operators to replace by their function bodies.
            contract: operators, or groups of them, to put in place of nodes that stand for them.
            target_ir_version: the IR version to give the model; see `ir_version.choose`.
            base_dir: the folder that external data is relative to.
            facts: the model's facts, where another conversion of it has begun to compute them.
            types: what the user stated of types, which `model` states by now.
            emulate: whether emulations are wanted; see `onnxreduce_cli.engine.emulation`.
            runtime: where the model is to run: what that gets wrong blocks, or is written anew.

        Raises:
            UsageError: no such opset, or an operator to expand has no function body.
            InvalidModelError: the model contradicts itself.
            ConversionError: the requested IR version is not possible, or the model's opset is newer
                than the installed onnx.
        """
        check_request(target, expand)
        wanted = (target_ir_version, types, emulate, contracted(contract), runtime)
        self.model = model
        self.target = target
        self.false_shapes: tuple[FalseShape, ...] = ()
        self.choice = ""
        self.prepared = Prepared()
        with collector_paused():
            self.given_facts = facts or admit(model, base_dir)
            self.given_scopes = self.given_facts.scopes
            check_source(model, self.given_scopes)
            self.source = default_opset(model)
            self._plan = make_plan(
                ConversionInput(model, self.given_scopes, self.given_facts),
                ConversionRequest(self.source, target, frozenset(expand), *wanted),
            )

    # What was planned: for the model, or for a copy of it that passes have edited

    @property
    def scopes(self) -> Sequence[Scope]:
        """The scopes that were planned for."""
        return self._plan.input.scopes

    @property
    def facts(self) -> ConversionFacts:
        """The types and constants of the values in them, and of those that steps generated."""
        return self._plan.facts

    @property
    def sites(self) -> Sequence[Site]:
        """The nodes that change, and those that are blocked."""
        return self._plan.sites

    @property
    def expand(self) -> Collection[str]:
        """The operators that are replaced by their function bodies."""
        return self._plan.request.expand

    @property
    def near_misses(self) -> Sequence[NearMiss]:
        """What looks like an operator to contract to, and is not."""
        return self._plan.converter.near_misses

    @property
    def swept(self) -> int:
        """The number of generated nodes removed again, as a later step stopped reading them."""
        return self._plan.converter.swept

    @property
    def avoided(self) -> Counter[str]:
        """What the runtime would get wrong or refuse, each with how many nodes that is."""
        return Counter(what for site in self.sites for what in site.avoided[:1])

    def constants(self, scope: Scope) -> Constants:
        """The constants that steps add to a scope; what replaces its nodes reads them by name."""
        return self._plan.converter.constants(scope)

    @property
    def ir_version(self) -> int:
        """The IR version that the model gets."""
        return self._plan.ir_version

    @property
    def blockers(self) -> tuple[Blocker, ...]:
        """Every node that cannot reach the target."""
        return self.prepared.explained(self._plan.blockers)

    @property
    def rewrites_nodes(self) -> bool:
        """True if there is anything to check: a node that steps rewrite."""
        return any(site.description is not None for site in self.sites if site.blocked is None)

    @property
    def changes_nothing(self) -> bool:
        """True if the converted model equals the given one, byte for byte."""
        return self._plan.changes_nothing and self.prepared.nodes is None

    def plan(self) -> Plan:
        """The conversion as data."""
        found = describe(self.model, self.given_scopes, self._plan)
        return self.prepared.told_in(replace(found, choice=self.choice))

    @cached_property
    def wrong_elsewhere(self) -> Wrong | None:
        """What some runtime computes wrong of the model as it will be; None if nothing."""
        if self.source is None:
            return None
        return wrong_elsewhere(self.target, self.nodes_after)

    def nodes_after(self, op_types: Collection[str] | None = None) -> Iterable[NodeFacts]:
        """The nodes of the default domain of the model as it will be, of some operators or all."""
        return converted_nodes(self._plan, op_types)

    def apply(self) -> None:
        """Edit the model in place.

        Raises:
            ConversionError: there are blockers; nothing was edited.
        """
        if self.blockers:
            raise ConversionError(f"cannot be converted to opset {self.target}", self.blockers)
        with collector_paused():
            revealing = reveals(self.given_scopes, self.source or self.target, self.target)
            apply_plan(self._plan, self.model)
            if revealing:
                self.false_shapes = mend_shapes(self.model)


def check_source(model: ModelProto, scopes: Sequence[Scope]) -> None:
    """Refuse a model of an opset that the installed onnx does not know.

    Raises:
        ConversionError: it is of one.
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
    """The operators of the default domain that the installed onnx knows at no opset."""
    functions = {function.name for function in model.functions}
    return {
        op_type
        for scope in scopes
        for op_type, node in zip(scope.op_types, scope.nodes, strict=True)
        if is_default(node.domain) and not schemas.versions(op_type)
    } - functions


def check_request(target: int, expand: Collection[str]) -> None:
    """Refuse what no model can be converted to.

    Raises:
        UsageError: there is no such opset, or an operator to expand has no function body.
    """
    newest = schemas.newest_opset()
    if not 1 <= target <= newest:
        raise UsageError(f"there is no opset {target}; the installed onnx knows 1 to {newest}")
    for op_type in expand:
        body(op_type)


def contracted(contract: Collection[str]) -> frozenset[str]:
    """Return the operators to put in place of nodes, of which groups may be named.

    Raises:
        UsageError: there is no such operator or group.
    """
    if not contract:
        return frozenset()
    from onnxreduce_cli.idioms.registry import operators

    return operators(contract)
