"""The plan of a conversion: the replacement of every node, with nothing edited yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from onnx import FunctionProto, ModelProto, NodeProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.engine import catalogue
from onnxreduce_cli.engine.conversion_request import ConversionInput, ConversionRequest
from onnxreduce_cli.engine.emulation import may_loop, refuse_emulation
from onnxreduce_cli.engine.equal_functions import EqualFunctions
from onnxreduce_cli.engine.new_constants import ConstantMaker, NewConstants
from onnxreduce_cli.engine.node_converter import Drafts, NodeConverter
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.engine.stated_types import uninferred_in_function
from onnxreduce_cli.errors import Blocker
from onnxreduce_cli.model.graph.dead_values import DeadValues, dead_values
from onnxreduce_cli.model.graph.domains import LEARNING, MICROSOFT, imported_version, is_default
from onnxreduce_cli.model.graph.imports import unread_everywhere
from onnxreduce_cli.model.graph.ir_version import INITIALIZERS, choose
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, FunctionKey, Scope, subgraphs

if TYPE_CHECKING:
    from onnxreduce_cli.containers.rewriting import RewrittenNode
    from onnxreduce_cli.engine.catalogue import Pass

#: The description of the first node of a graph that reads the output of a later one.
_ORDER = "it reads what a later node makes: the nodes of its graph are put in order"

#: Domains of operators that ONNX Runtime's optimiser adds for its own layouts of data.
_LAYOUT_DOMAINS = frozenset({"com.microsoft.nchwc", "com.ms.internal.nhwc"})


class SitePlan:
    """The sites of a model: the nodes that change, each with its replacement.

    Attributes:
        input: the model.
        request: the opsets and options of the conversion.
        facts: the types and constants of the model's values and of generated ones.
        sites: the nodes that change, and those that are blocked.
        ml_opset: the version of ai.onnx.ml that it gets; None where it does not import that.
        ir_version: the IR version that the model gets.
        ir_version_reason: why it is not the one that the target came with; may be empty.
        dead: the values and nodes that are dead afterwards, known when the plan is finished.
        constants: the new constants by the identity of their scope, known when the plan is
            finished.
        maker: makes the constants.
        unread: the imports that no node uses, by domain; they are removed.
        written: the nodes whose sequences and optional values were written out before.
        inlined: the functions that were inlined before, with the nodes that called them.
        soundness: refuses nodes that contradict the model.
    """

    def __init__(
        self,
        model_input: ConversionInput,
        request: ConversionRequest,
        drafts: Drafts | None = None,
    ) -> None:
        """Plan the conversion of every node of the model to the target.

        Args:
            model_input: the model.
            request: the opsets and options of the conversion.
            drafts: what was written for the model's nodes in other plans of the same options.
        """
        self.input = model_input
        self.request = request
        drafts = drafts or Drafts(model_input.facts.extended())
        self.facts = drafts.facts
        own = imported_version(model_input.model, LEARNING)
        self.ml_opset = own if own is None else request.learning_target(own)
        self.ir_version, self.ir_version_reason = choose(
            request.options.ir_version,
            model_input.model,
            model_input.scopes,
            request.target,
            learned=self.ml_opset,
        )
        initializers = self.ir_version >= INITIALIZERS
        self.converter = NodeConverter(model_input.scopes, drafts, request, initializers)
        self.soundness = self.converter.soundness
        self.sites: list[Site] = []
        self.dead = DeadValues()
        self.constants: dict[int, NewConstants] = {}
        self.maker = ConstantMaker(self.converter, request.target)
        self.unread: dict[str, int] = {}
        self.written: tuple[RewrittenNode, ...] = ()
        self.inlined: dict[FunctionKey, list[str]] = {}
        # Contractions are found in each, and what other plans wrote is each function's own.
        alone = bool(request.contract) or drafts.sites is not None
        functions = EqualFunctions(self.converter, () if alone else model_input.scopes)
        for scope in model_input.scopes:
            self.sites += functions.sites(scope, self._planned)
        self._plan_learning()
        if any(entry.domain in _LAYOUT_DOMAINS for entry in model_input.model.opset_import):
            self._block_layouts()
        self._block_other_domains()
        self._block_uninferred_types(self._block_missing_constants())

    @property
    def blocked(self) -> list[Site]:
        """The nodes that cannot be converted."""
        return [site for site in self.sites if site.blocked is not None]

    @property
    def blockers(self) -> tuple[Blocker, ...]:
        """The blockers to report: one for each node, or for all behind one unknown type."""
        if not self.blocked:
            return ()
        from onnxreduce_cli.engine.unknown_types import report

        return report(self.blocked, self.facts)

    @property
    def passes(self) -> tuple[Pass, ...]:
        """The passes that change the model, beside the steps across boundaries."""
        options, done = self.request.options, [site for site in self.sites if not site.blocked]
        expanded = {site.node.op_type for site in done} & {*options.expand}
        ran = {
            catalogue.SEQUENCES: self.written,
            catalogue.BLOCKED_FUNCTIONS: self.inlined,
            catalogue.SPECIALISATION: self.input.specialisation is not None,
            catalogue.CONTRACTION: any(site.contraction for site in done),
            catalogue.EXPANSION: expanded,
            catalogue.ALLOWED if options.allow_ops else catalogue.AVOIDANCE: any(
                site.avoided for site in done
            ),
        }
        return tuple(item for item, found in ran.items() if found)

    @property
    def blocked_functions(self) -> list[FunctionProto]:
        """The model's own functions in which nodes are blocked."""
        found = [self.input.own_function(site.scope) for site in self.blocked]
        return [function for function in found if function is not None]

    def _planned(self, scope: Scope) -> list[Site]:
        """Return the sites of a scope, which is planned."""
        if scope.opset is None:
            return self._planned_without_import(scope)
        found: list[Site] = []
        contracted = self.converter.contracted(scope)
        affected = {
            op_type
            for op_type in {*scope.op_types}
            if self.converter.expands(op_type, scope.opset)
            or self.converter.affects(op_type, scope.opset)
        }
        calls = self.facts.calls
        expands = self.request.runtime is not None or any(
            item.startswith(MICROSOFT) for item in self.request.options.expand
        )
        for node, op_type in zip(scope.nodes, scope.op_types, strict=True):
            taken = contracted.get(id(node))
            if taken is not None:
                alone = taken if taken.node is node else Site(scope, node, lookups=taken.lookups)
                self.soundness.refuse_contradictions(alone)
                found += [taken] if taken.node is node else []
                continue
            if op_type in calls.op_types and calls.function_of(node) is not None:
                continue
            if (op_type in affected and is_default(node.domain)) or (
                expands and self.converter.expands_domain(node)
            ):
                found += self._planned_node(scope, node, scope.opset)
        return found

    def _plan_learning(self) -> None:
        """Plan the nodes of ai.onnx.ml in each scope whose version of it changes."""
        for scope in self.input.scopes:
            own = imported_version(scope.function or self.input.model, LEARNING)
            if own is None or own == self.request.learning_target(own):
                continue
            for node in scope.nodes:
                if node.domain != LEARNING or self.facts.calls.function_of(node) is not None:
                    continue
                if self.converter.next_learning_step(node, own) is not None:
                    self.sites += self._planned_node(scope, node, own)

    def _planned_without_import(self, scope: Scope) -> list[Site]:
        found: list[Site] = []
        for node in scope.nodes:
            if is_default(node.domain) and self.facts.calls.function_of(node) is None:
                site = Site(scope, node)
                site.blocked = Blocked(
                    "the default domain is not imported here, so its meaning is not defined",
                    "add the domain to opset_import",
                )
                found.append(site)
        return found

    def _block_layouts(self) -> None:
        """Block the nodes that ONNX Runtime's optimiser added for its own layouts of data."""
        for scope, node in self._nodes_of_other_domains():
            if node.domain in _LAYOUT_DOMAINS:
                site = Site(scope, node)
                site.blocked = Blocked(
                    f"{node.domain} is ONNX Runtime's own, for one kind of device: the model was "
                    "saved after its optimisations",
                    "convert the model that it was made from, or save that again with "
                    "graph_optimization_level ORT_ENABLE_EXTENDED or lower",
                )
                self.sites.append(site)

    def _block_other_domains(self) -> None:
        """Block nodes of domains that are not converted where the runtime does not take them."""
        if self.request.runtime is None:
            return
        from onnxreduce_cli.engine.avoidance import blocked_by_domain

        imports = {entry.domain: entry.version for entry in self.input.model.opset_import}
        if LEARNING in imports:
            imports[LEARNING] = self.request.learning_target(imports[LEARNING])
        planned = {id(site.node): site for site in self.sites if site.node.domain == LEARNING}
        for scope, node in self._nodes_of_other_domains():
            if self.facts.calls.function_of(node) is not None or self.converter.expands_domain(
                node
            ):
                continue
            site = planned.get(id(node)) or Site(scope, node, result=[node])
            if site.blocked is not None:
                continue
            for made in site.result:
                imported = imports.get(made.domain, 0)
                if not is_default(made.domain) and site.blocked is None:
                    site.blocked = blocked_by_domain(
                        self.request.runtime, made.domain, made.op_type, imported
                    )
            if site.blocked is not None and id(node) not in planned:
                self.sites.append(site)

    def _nodes_of_other_domains(self) -> Iterator[tuple[Scope, NodeProto]]:
        """Yield the nodes whose operators are not of the default domain."""
        for scope in self.input.scopes:
            for node in scope.nodes:
                if not is_default(node.domain):
                    yield scope, node

    def _planned_node(self, scope: Scope, node: NodeProto, opset: int) -> list[Site]:
        """Return the site of a node, which is read by `opset` of its domain; none if it stays."""
        site = Site(scope, node)
        try:
            self.converter.convert(site, opset)
            self.converter.contract_written(site)
            emulated = may_loop(node.op_type)
            refuse_emulation(
                site, self.request.target, emulate=self.request.options.emulate, emulated=emulated
            )
        except Blocked as blocked:
            site.blocked = blocked.kept()
            runtime = self.request.runtime
            newest = None if runtime is None else runtime.ml_version
            if runtime is not None and newest is not None and (blocked.ml_opset or 0) > newest:
                site.blocked.leave_out_ml_opset(runtime.advice)
            # Of what blocks the types must agree, though its steps asked for none.
            site.is_sound &= site.lookups.types
        finally:
            # Steps trust the facts that they look up: if these are wrong, so is the result.
            self.soundness.refuse_contradictions(site)
        return [site] if site.is_reported else []

    def _block_missing_constants(self) -> dict[int, Sequence[NodeProto]]:
        """Block nodes whose replacement reads a constant that no node at the target can make.

        Returns:
            by the identity of a node, the nodes that make the constants of its replacement, unless
            these become initializers.
        """
        found: dict[int, Sequence[NodeProto]] = {}
        scopes = {id(scope) for scope in self.input.scopes if self.maker.as_nodes(scope)}
        for site in self.sites if scopes else ():
            if site.blocked is None and id(site.scope) in scopes:
                try:
                    found[id(site.node)] = self.maker.read_in(site.scope, [site.result]).nodes
                except Blocked as blocked:
                    site.blocked, site.result = blocked.kept(), ()
        return found

    def _block_uninferred_types(self, constants: Mapping[int, Sequence[NodeProto]]) -> None:
        """Block nodes of a function's body whose output types inference cannot infer there.

        Args:
            constants: by the identity of a node, the nodes that make the constants of its
                replacement.
        """
        bodies = [
            scope for scope in self.input.scopes if isinstance(scope.container, FunctionProto)
        ]
        sites: dict[int, dict[int, Site]] = {id(scope): {} for scope in bodies}
        for site in self.sites if bodies else ():
            if id(site.scope) in sites:
                sites[id(site.scope)][id(site.node)] = site
        target = self.request.target
        for scope in bodies:
            own = sites[id(scope)]
            results = {key: [*constants.get(key, ()), *site.result] for key, site in own.items()}
            for node, op_type in uninferred_in_function(target, scope, results):
                site = own.get(id(node)) or Site(scope, node)
                if site.blocked is not None:
                    continue
                reason = (
                    f"at opset {target} the output type of {op_type} cannot be inferred within a "
                    "function"
                )
                site.blocked = Blocked(reason, "choose a later opset")
                if id(node) not in own:
                    self.sites.append(site)

    # Conclusions from all sites together

    def finish(self) -> None:
        """Find the values that are dead after the conversion, and the constants of new nodes."""
        done = [site for site in self.sites if site.blocked is None]
        self.dead = dead_values(
            self.input.scopes,
            done,
            self.input.bound(),
            {id(node) for site in done for node in site.behind},
        )
        if self.dead.nodes:
            self.sites = [site for site in self.sites if not self.dead.covers(site.node)]
        if self.request.target != self.request.source:
            self._note_reordering()
        self._settle_ir_version()
        # A runtime may refuse an import that it does not know, though no node uses it.
        if not self.changes_nothing or self.request.runtime is not None:
            self.unread = unread_everywhere(self.input.model, self.input.scopes)
            self._note_unread_domain()
        if not self.blocked:
            self.constants = self._new_constants()

    def _note_unread_domain(self) -> None:
        """Note that the import of ONNX Runtime's domain goes once none of its nodes is left."""
        version = imported_version(self.input.model, MICROSOFT)
        if version is None:
            return
        replaced = {id(site.node) for site in self.sites if site.blocked is None}
        left = (node for _, node in self._nodes_of_other_domains() if id(node) not in replaced)
        if all(node.domain != MICROSOFT for node in left):
            self.unread[MICROSOFT] = version

    @property
    def changes_nothing(self) -> bool:
        """True if the converted model equals the source, byte for byte."""
        same_ir_version = self.ir_version == self.input.model.ir_version
        same = same_ir_version and not self._changes_more and not self.request.options.types
        return same and not self.unread

    @property
    def _changes_more(self) -> bool:
        """True if anything but the IR version changes."""
        bodies = [item for item in self.input.scopes if item.function is not None]
        opsets = {scope.opset for scope in bodies}
        return (
            bool(self.written or self.inlined)
            or any(site.description is not None for site in self.sites)
            or not opsets | {self.request.source} <= {None, self.request.target}
            or any(old != new for _, old, new in self.learning_versions)
        )

    @property
    def learning_versions(self) -> Iterator[tuple[ModelProto | FunctionProto, int, int]]:
        """Each model or function that imports ai.onnx.ml, with the version before and after."""
        owners: list[ModelProto | FunctionProto] = [self.input.model, *self.input.model.functions]
        for owner in owners:
            own = imported_version(owner, LEARNING)
            if own is not None:
                yield owner, own, self.request.learning_target(own)

    def _settle_ir_version(self) -> None:
        """Choose the IR version by the dtypes that are left; never raise it on its own.

        If nothing else changes, only an opset that was asked for lowers it. Version 4 stays then: a
        conversion may have given it to the model for an initializer that became dead.
        """
        if not self.blocked:
            model_input, request = self.input, self.request
            self.ir_version, self.ir_version_reason = choose(
                request.options.ir_version,
                model_input.model,
                model_input.scopes,
                request.target,
                self.dead,
                self.ml_opset,
            )
        if self.request.options.ir_version != "auto" or self._changes_more:
            return
        found, own = self.ir_version, self.input.model.ir_version
        if self.request.options.opset is not None and found < own and own > INITIALIZERS:
            return
        self.ir_version, self.ir_version_reason = own, ""
        if found < own:
            self.ir_version_reason = f"the opset stays; --ir-version {found} lowers it"

    def _note_reordering(self) -> None:
        """Note on a site that its graph's nodes, which are out of order, are put in order."""
        for scope in self.input.scopes:
            node = scope.misplaced
            if node is None or self.dead.covers(node):
                continue
            site = next((site for site in self.sites if site.node is node), None)
            if site is None:
                site = Site(scope, node, result=[node])
                self.sites.append(site)
            site.say(_ORDER)

    def _new_constants(self) -> dict[int, NewConstants]:
        """Return the constants that new nodes read, by the identity of their scope."""
        results: dict[int, list[Sequence[NodeProto]]] = {}
        for site in self.sites:
            results.setdefault(id(site.scope), []).append(site.result)
        found = {
            id(scope): self.maker.read_in(scope, results[id(scope)])
            for scope in self.input.scopes
            if id(scope) in results
        }
        return {key: new for key, new in found.items() if new.initializers or new.nodes}

    def nodes_after(self) -> Iterator[tuple[NodeProto, Scope, NodeProto]]:
        """Yield the nodes that the converted model will have, but for calls of its functions.

        Before each come the node of the model that it takes the place of, or is, and its scope.
        """
        changed = [site for site in self.sites if site.blocked is None]
        gone = {*self.dead.nodes, *(id(site.node) for site in changed)}
        for scope in self.input.scopes:
            for node in scope.nodes:
                if id(node) not in gone and self.facts.calls.function_of(node) is None:
                    yield node, scope, node
        for site in changed:
            # Graphs of the node itself are scopes of their own.
            inner = site.node.op_type not in GRAPH_OPERATORS
            opset = self.request.target if inner else None
            for scope, node in _with_inner_nodes(site.scope, site.result, opset):
                yield site.node, scope, node

    def results(self) -> Mapping[int, Sequence[NodeProto]]:
        """Return the nodes that replace each node, by its identity."""
        return {id(site.node): site.result for site in self.sites if site.blocked is None}


def _with_inner_nodes(
    scope: Scope, nodes: Iterable[NodeProto], opset: int | None
) -> Iterator[tuple[Scope, NodeProto]]:
    """Yield new nodes with their scopes; with an opset, the nodes of their subgraphs too."""
    for node in nodes:
        yield scope, node
        for name, graph in subgraphs(node) if opset is not None else ():
            inner = Scope(graph, scope, opset, f"{node.name}.{name}", subgraph=True)
            yield from _with_inner_nodes(inner, inner.nodes, opset)
