"""The description of a conversion as data: its changes and its blockers."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import ModelProto

from onnxreduce_cli.engine.plan import SitePlan
from onnxreduce_cli.errors import Blocker
from onnxreduce_cli.model.inlining import function_key
from onnxreduce_cli.model.scope import function_label
from onnxreduce_cli.model.specialisation import Specialisation

#: What is done to nodes whose sequences and optional values become tensors, all of them together.
WRITTEN_OUT = "its sequence or optional value is written out as tensors"


@dataclass(frozen=True)
class Change:
    """One node that the conversion rewrites.

    Attributes:
        node: the node's name, or a description by its first output where it has none.
        op_type: its operator.
        scope: where it is: empty for the main graph, else the path of subgraphs or the function.
        steps: descriptions of the steps that it takes, in order.
        result: the operators of the nodes that take its place.
        warnings: remarks that a user should read.
    """

    node: str
    op_type: str
    scope: str
    steps: tuple[str, ...]
    result: tuple[str, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Specialised:
    """A model-local function that several copies replace, as no one body serves all its calls.

    Attributes:
        function: the function.
        copies: for each copy its name, and the nodes that call it.
    """

    function: str
    copies: tuple[tuple[str, tuple[str, ...]], ...]

    def __str__(self) -> str:
        """One line: the function, its copies, and who calls each."""
        parts = [f"{name} for {', '.join(calls)}" for name, calls in self.copies]
        return f"function {self.function}: specialised as {'; '.join(parts)}"


@dataclass(frozen=True)
class Inlined:
    """A model-local function that is gone, as it cannot be expressed as one.

    Attributes:
        function: the function.
        calls: the nodes that called it, which its body stands in for; none where nothing did.
    """

    function: str
    calls: tuple[str, ...]

    def __str__(self) -> str:
        """One line: the function, and what becomes of its calls."""
        what = f"inlined for {', '.join(self.calls)}" if self.calls else "removed, nothing calls it"
        return f"function {self.function}: {what}"


@dataclass(frozen=True)
class Plan:
    """The changes that moving a model to an opset takes, and the nodes that block it.

    Attributes:
        source: the model's opset of the default domain; None where it imports none.
        target: the target opset.
        ir_version: the model's IR version now.
        target_ir_version: the IR version after the conversion.
        changes: the nodes that are rewritten, in order.
        removed: names of initializers and of values of nodes that nobody reads any more.
        blockers: the nodes that cannot get there; where there is one, nothing is converted.
        specialised: the model-local functions that copies replace.
        inlined: the model-local functions that are inlined.
        ir_version_reason: why the IR version is not the one that the target came with; may be
            empty.
        unread: the imports that nothing reads, each a domain and a version, which go.
        types: what was said of the types of values, which the model then states.
    """

    source: int | None
    target: int
    ir_version: int
    target_ir_version: int
    changes: tuple[Change, ...]
    removed: tuple[str, ...]
    blockers: tuple[Blocker, ...]
    specialised: tuple[Specialised, ...] = ()
    inlined: tuple[Inlined, ...] = ()
    ir_version_reason: str = ""
    unread: tuple[str, ...] = ()
    types: tuple[str, ...] = ()

    @property
    def possible(self) -> bool:
        """True if the conversion can be done: there are no blockers."""
        return not self.blockers


def describe(model: ModelProto, plan: SitePlan) -> Plan:
    """Describe what was planned for a model, or for a copy of it that passes have edited."""
    written = tuple(
        Change(item.node, item.op_type, item.scope, (WRITTEN_OUT,), item.result)
        for item in plan.written
    )
    inlined = tuple(
        Inlined(function_label(function), tuple(plan.inlined[function_key(function)]))
        for function in model.functions
        if function_key(function) in plan.inlined
    )
    return Plan(
        plan.route.source,
        plan.route.target,
        model.ir_version,
        plan.ir_version,
        written + _changes(plan),
        plan.dead.names,
        plan.blockers,
        _specialised(plan.subject.specialisation),
        inlined,
        plan.ir_version_reason,
        tuple(f"{domain} {version}" for domain, version in plan.unread.items()),
        plan.route.types,
    )


def _changes(plan: SitePlan) -> tuple[Change, ...]:
    return tuple(
        Change(
            site.scope.describe(site.node),
            site.node.op_type,
            site.scope.label,
            site.description,
            site.operators,
            site.warnings,
        )
        for site in plan.sites
        if site.blocked is None
    )


def _specialised(found: Specialisation | None) -> tuple[Specialised, ...]:
    return tuple(
        Specialised(
            function_label(function),
            tuple(
                (
                    function_label(copy.function),
                    tuple(scope.describe(node) for scope, node in copy.calls),
                )
                for copy in copies
            ),
        )
        for function, copies in ([] if found is None else found.named)
    )
