"""The description of a conversion as data: its changes and its blockers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from onnx import ModelProto

from onnxreduce_cli.engine.changes import Change, grouped
from onnxreduce_cli.engine.differences import differences
from onnxreduce_cli.engine.plan import SitePlan
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.errors import Blocker, blocker_lines
from onnxreduce_cli.model.graph.domains import (
    LEARNING,
    MICROSOFT,
    imported_version,
    is_default,
    operator_name,
)
from onnxreduce_cli.model.graph.edit import outer_constants
from onnxreduce_cli.model.graph.scope import (
    Scope,
    called_key,
    function_key,
    function_label,
    with_inner,
)
from onnxreduce_cli.serializable import Serializable
from onnxreduce_cli.steps.dispatch import is_of_runtime
from onnxreduce_cli.text import count, html_table, listed

if TYPE_CHECKING:
    from onnxreduce_cli.containers.rewriting import RewrittenNode
    from onnxreduce_cli.model.types.specialisation import Specialisation

#: The edit of nodes whose sequences and optional values become tensors.
WRITTEN_OUT = "written out as tensors"


@dataclass(frozen=True)
class Specialised(Serializable):
    """A model-local function that several copies replace, as one body cannot serve all its calls.

    Attributes:
        function: the function.
        copies: for each copy its name, and the nodes that call it.
    """

    function: str
    copies: tuple[tuple[str, tuple[str, ...]], ...]

    def __str__(self) -> str:
        """Return the function, its copies, and which nodes call each, in one line."""
        parts = [f"{name} for {listed(calls)}" for name, calls in self.copies]
        return f"function {self.function}: specialised as {'; '.join(parts)}"


@dataclass(frozen=True)
class Inlined(Serializable):
    """A model-local function that is removed, as it cannot be converted as a function.

    Attributes:
        function: the function.
        calls: the nodes that called it, which its body replaces; empty where nothing called it.
    """

    function: str
    calls: tuple[str, ...]

    def __str__(self) -> str:
        """Return the function and the calls that it is inlined for, in one line."""
        what = f"inlined for {listed(self.calls)}" if self.calls else "removed, nothing calls it"
        return f"function {self.function}: {what}"


@dataclass(frozen=True)
class OperatorCoverage(Serializable):
    """What is known of the operators that a runtime gets.

    Attributes:
        runtime: the runtime, with its version.
        operators: how many different operators the model has.
        unknown: the operators of which it is not known whether the runtime takes them.
        conditions: operators that are taken under conditions which cannot be asked of the nodes,
            each with the conditions, in words.
        cpu: the operators that run on the CPU there, though the runtime is an accelerator.
        sources: the sources of what is known, and of what decided the opset or a rewrite.
        exact: whether that is known of the very version, and not of the nearest one.
    """

    runtime: str
    operators: int
    unknown: tuple[str, ...] = ()
    conditions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    cpu: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    exact: bool = True

    def lines(self, *, verbose: bool = False) -> Iterator[str]:
        """Yield what is not known, and what does not run where the user may expect it to.

        Args:
            verbose: whether to name the sources of what is known, too.
        """
        if self.unknown:
            of = f"{len(self.unknown)} of {count(self.operators, 'operator')}"
            yield f"{of}: it is not known whether {self.runtime} takes {listed(self.unknown)}"
        grouped: dict[tuple[str, ...], list[str]] = {}
        for op_type, conditions in self.conditions:
            grouped.setdefault(conditions, []).append(op_type)
        for conditions, operators in grouped.items():
            text = " and ".join(conditions)
            yield f"{self.runtime} takes {listed(operators)} only if {text}, which is not known"
        if self.cpu:
            yield f"on the CPU, not by {self.runtime}: {listed(self.cpu)}"
        if verbose:
            yield from (f"known from: {source}" for source in self.sources)


def aim_text(source: int | None, target: int, runtime: str) -> str:
    """Return what a model is converted to, or for, after a verb."""
    if runtime:
        return f"for {runtime}"
    return f"{'at' if source == target else 'to'} opset {target}"


@dataclass(frozen=True, repr=False)
class Plan(Serializable):
    """The changes that moving a model to an opset takes, and the nodes that block it.

    Attributes:
        source: the model's opset of the default domain; None where it imports none.
        target: the target opset.
        ir_version: the model's IR version now.
        target_ir_version: the IR version after the conversion.
        changes: the nodes that are rewritten, in order.
        removed: names of the initializers and values that nothing reads any more.
        blockers: the nodes that cannot be converted; if there is one, nothing is converted.
        specialised: the model-local functions that copies replace.
        inlined: the model-local functions that are inlined.
        ir_version_reason: why the IR version is above the model's own and the target's; may be
            empty.
        unread: the opset imports that no node uses, each a domain and a version; they are removed.
        types: the types of values that the user stated, which the model then states.
        nodes: how many nodes the model has now, those of subgraphs and functions included.
        target_nodes: how many it has after the conversion; as `nodes` where there are blockers.
        near_misses: the nodes that were almost contracted, each with why it was not.
        foreign: the operators of ONNX Runtime's own domain, as in models that it optimised, each
            with its number of nodes; they stay as they are.
        choice: for which runtime the opset was chosen, and why; empty where the user named it.
        coverage: what is known of the operators that the runtime gets; None without a runtime.
        lacking: operators that were to be expanded, and domains whose version was to change, that
            do not occur in the model.
        prepared: the changes of the whole model that come first: metadata stripped, dimensions
            fixed.
        whole_changes: how many options of theirs changed the model.
        ml_opset: the model's version of ai.onnx.ml; None where it does not import that.
        target_ml_opset: its version of ai.onnx.ml after the conversion.
        runtime: the full name and version of the runtime that it is for; empty without one.
    """

    EXTRA_FIELDS: ClassVar = ("control_flow", "possible")

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
    nodes: int = 0
    target_nodes: int = 0
    near_misses: tuple[str, ...] = ()
    foreign: tuple[tuple[str, int], ...] = ()
    choice: str = ""
    coverage: OperatorCoverage | None = None
    lacking: tuple[str, ...] = ()
    prepared: tuple[str, ...] = ()
    whole_changes: int = 0
    ml_opset: int | None = None
    target_ml_opset: int | None = None
    runtime: str = ""

    @property
    def control_flow(self) -> Counter[str]:
        """The operators with subgraphs (If, Loop, Scan) that are added, with their numbers."""
        return Counter(op_type for change in self.changes for op_type in change.control_flow)

    @property
    def aim(self) -> str:
        """What the model is converted to, or for, after a verb."""
        return aim_text(self.source, self.target, self.runtime)

    @property
    def possible(self) -> bool:
        """True if the conversion can be done: there are no blockers."""
        return not self.blockers

    def __repr__(self) -> str:
        """Return the opsets, and how many nodes change or block, in one line."""
        changed = sum(not change.stays for change in self.changes)
        nodes = f"{self.nodes:,} → {self.target_nodes:,} nodes, {changed:,} changed"
        return f"<Plan opset {self.source} → {self.target}: {self._blocked or nodes}>"

    @property
    def _blocked(self) -> str:
        return f"blocked by {count(len(self.blockers), 'node')}" if self.blockers else ""

    def _repr_html_(self) -> str:
        rows = [("what happens", "nodes")]
        rows += [(group.summary, group.names) for group in grouped(self.changes)]
        rows += [("cannot be converted", line) for line in blocker_lines(self.blockers)]
        return html_table(rows, repr(self)[1:-1])


def describe(model: ModelProto, scopes: Sequence[Scope], plan: SitePlan) -> Plan:
    """Return a plan as data: of a model, or of a copy of it that passes have edited.

    Args:
        model: the model.
        scopes: its scopes.
        plan: a finished plan.
    """
    options, learned = plan.request.options, imported_version(model, LEARNING)
    unused = (LEARNING,) if options.ml_opset is not None and learned is None else ()
    before = sum(len(scope.op_types) for scope in scopes)
    written = tuple(map(_container_change, plan.written))
    inlined = tuple(
        Inlined(function_label(function), tuple(plan.inlined[function_key(function)]))
        for function in (model.functions if plan.inlined else ())
        if function_key(function) in plan.inlined
    )
    return Plan(
        plan.request.source,
        plan.request.target,
        model.ir_version,
        plan.ir_version,
        (*written, *_changes(plan)),
        plan.dead.names,
        plan.blockers,
        _specialised_functions(plan.input.specialisation),
        inlined,
        plan.ir_version_reason,
        tuple(f"{domain} {version}" for domain, version in plan.unread.items()),
        plan.request.options.stated_types,
        before,
        before if plan.blocked else _nodes_after(plan),
        tuple(_near_misses(plan)),
        _foreign(model, scopes, {id(site.node) for site in plan.sites if site.blocked is None}),
        lacking=(*_lacking(options.expand, scopes), *unused),
        ml_opset=learned,
        target_ml_opset=plan.ml_opset,
    )


def _lacking(expand: Collection[str], scopes: Sequence[Scope]) -> tuple[str, ...]:
    lacking = set(expand)
    if lacking:
        for scope in scopes:
            for node in scope.nodes:
                domain = node.domain
                if is_default(domain) and is_of_runtime(node.op_type, scope.opset or 0):
                    domain = MICROSOFT
                lacking -= {operator_name(node), domain}
    return tuple(sorted(lacking))


def _foreign(
    model: ModelProto, scopes: Sequence[Scope], replaced: Collection[int]
) -> tuple[tuple[str, int], ...]:
    if imported_version(model, MICROSOFT) is None:
        return ()
    own = {function_key(function) for function in model.functions}
    nodes = (
        node
        for scope in scopes
        for node in scope.nodes
        if node.domain == MICROSOFT and id(node) not in replaced
    )
    found = Counter(node.op_type for node in nodes if called_key(node) not in own)
    return tuple(found.items())


def _container_change(item: RewrittenNode) -> Change:
    """Return the change of a node whose sequences or optional values were written out."""
    operators = tuple(node.op_type for node in item.made)
    nodes = sum(1 for _ in with_inner(item.made))
    return Change(
        item.node, item.op_type, item.scope, (WRITTEN_OUT,), operators, (), nodes, item.control_flow
    )


def _changes(plan: SitePlan) -> Iterator[Change]:
    # What equal nodes got differs from them alike, unless it is contracted further.
    found: dict[int, tuple[str, ...]] = {}
    for site in plan.sites:
        if site.blocked is not None:
            continue
        key = id(site if site.equal is None or plan.request.contract else site.equal)
        if key not in found:
            found[key] = tuple(_differences(plan, site))
        yield Change(
            site.node.name or site.scope.describe(site.node),
            site.node.op_type,
            site.scope.label,
            (*(site.description or ()), *found[key]),
            site.operators,
            site.warnings,
            site.nodes,
            site.control_flow,
            tuple(node.op_type for node in site.absorbed),
        )


def _near_misses(plan: SitePlan) -> Iterator[str]:
    """Yield the near misses of contraction, without those of nodes that were contracted."""
    contracted = [
        node for site in plan.sites if site.absorbed for node in (site.node, *site.absorbed)
    ]
    said = {(id(node), "") for node in contracted}
    for miss in plan.converter.near_misses:
        keys = {(id(miss.node), ""), (id(miss.node), miss.op_type)}
        if said.isdisjoint(keys):
            said.add((id(miss.node), miss.op_type))
            yield str(miss)


def _differences(plan: SitePlan, site: Site) -> Iterator[str]:
    arrays = plan.converter.constants(site.scope).arrays
    opsets = site.scope.opset or plan.request.target, plan.request.target
    return differences(site.node, site.result, opsets, arrays)


def _nodes_after(plan: SitePlan) -> int:
    """Return how many nodes the model has once a finished plan without blockers is applied."""
    total = sum(len(scope.op_types) for scope in plan.input.scopes)
    total += sum(site.nodes - 1 for site in plan.sites)
    total -= sum(len(plan.dead.of(scope)[0]) for scope in plan.dead.scopes)
    total += sum(len(new.nodes) for new in plan.constants.values())
    return total if plan.ir_version >= 4 else total + _nodes_of_ir_version_3(plan)


def _nodes_of_ir_version_3(plan: SitePlan) -> int:
    """Return how many initializers of subgraphs become nodes, as IR version 3 has them nowhere."""
    main, *others = plan.input.scopes
    results, added = plan.results(), plan.constants.get(id(main))
    nodes = [
        made
        for node in main.nodes
        if not plan.dead.covers(node)
        for made in results.get(id(node), (node,))
    ]
    nodes += [] if added is None else added.nodes
    become_nodes = sum(len(scope.initializers) for scope in others if scope.root is main)
    return become_nodes - len(outer_constants(nodes, main.outputs))


def _specialised_functions(found: Specialisation | None) -> tuple[Specialised, ...]:
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
