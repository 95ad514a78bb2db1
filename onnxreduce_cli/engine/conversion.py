"""The engine: takes every node of a model across its boundaries, and edits the model at the end.

Two phases. `Conversion` reads the model and collects, for each scope, the nodes that replace a
node; nothing is edited, so blockers over the whole model can be reported together. `apply` then
makes the edits in place: what no boundary touches is not touched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto, helper

from onnxreduce_cli import schemas
from onnxreduce_cli.containers.operators import OPERATORS as CONTAINER_OPERATORS
from onnxreduce_cli.containers.rewriting import CannotWriteError, Written, write_out
from onnxreduce_cli.engine.description import (
    WRITTEN_OUT,
    Blocker,
    Change,
    Inlined,
    Plan,
    Specialised,
)
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.engine.templates import Mould, Moulds
from onnxreduce_cli.errors import ConversionError
from onnxreduce_cli.model import ir_version
from onnxreduce_cli.model.conversion_facts import ConversionFacts
from onnxreduce_cli.model.dead_values import leftovers
from onnxreduce_cli.model.domains import default_opset, is_default
from onnxreduce_cli.model.edit import (
    Constants,
    Edits,
    apply_edits,
    constant_node,
    constant_tensors,
    read_by,
    reference_nodes,
    set_ir_version,
    set_opset,
)
from onnxreduce_cli.model.facts import Facts
from onnxreduce_cli.model.imports import remove_imports, unread_everywhere
from onnxreduce_cli.model.inlining import FunctionKey, can_inline, function_key, inline
from onnxreduce_cli.model.names import Names
from onnxreduce_cli.model.scope import (
    GRAPH_OPERATORS,
    Scope,
    by_root,
    function_label,
    scopes,
    subgraphs,
)
from onnxreduce_cli.model.skeleton import without_weights
from onnxreduce_cli.model.specialisation import Specialisation, callers_first
from onnxreduce_cli.model.stated_shapes import FalseShape, mend_shapes, reveals
from onnxreduce_cli.model.values import kind_of
from onnxreduce_cli.pause import collector_paused
from onnxreduce_cli.steps.context import Blocked, Context, Workspace
from onnxreduce_cli.steps.table import Leg, body, leg

#: The opset that function bodies are written in; steps take them to the target from there.
BODY_OPSET = 18

#: What is said of the first node of a graph that reads what a later one makes.
_ORDER = "it reads what a later node makes: the nodes of its graph are put in order"

#: An opset at which a Constant holds any dtype and lists of integers.
CONSTANT_OPSET = 13


class Conversion:
    """Everything that moving one model to one opset takes, worked out without editing it."""

    def __init__(
        self,
        model: ModelProto,
        target: int,
        *,
        expand: Collection[str] = (),
        target_ir_version: ir_version.Wanted = "auto",
        base_dir: str = "",
        facts: Facts | None = None,
    ) -> None:
        """Plan the conversion.

        Args:
            model: the model; it must not change before `apply`.
            target: the opset to reach.
            expand: operators to replace by their function bodies.
            target_ir_version: the IR version to give the model; ``"auto"`` for the one that the
                target opset came with, or the least that the model needs, if anything changes;
                ``"keep"`` for the model's own.
            base_dir: the folder that external data is relative to.
            facts: what is known of the model, where another conversion has begun to ask for that.

        Raises:
            ValueError: no such opset, or an operator to expand has no function body.
            InvalidModelError: the model contradicts itself.
            ConversionError: the IR version asked for is not possible, or the model's opset is newer
                than the installed onnx.
        """
        if not 1 <= target <= schemas.newest_opset():
            raise ValueError(
                f"opset {target} does not exist; the installed onnx knows 1 to "
                f"{schemas.newest_opset()}"
            )
        for op_type in expand:
            body(op_type)
        self.model = model
        self.target = target
        self.expand = frozenset(expand)
        with collector_paused():
            self.given_facts = facts or Facts(model, scopes(model), base_dir)
            self.given_scopes = self.given_facts.scopes
            self._check_source()
            # With copies of functions, where some are specialised.
            self.scopes, self.facts = self.given_scopes, ConversionFacts(self.given_facts)
            self.specialisation: Specialisation | None = None
            self._base_dir = base_dir
            #: The functions that are inlined, with the nodes that called them.
            self._inlined: dict[FunctionKey, list[str]] = {}
            #: What is done to the model itself, as it was to the copy that was planned for.
            self._edit_first: Callable[[ModelProto], object] | None = None
            #: The nodes whose sequences and optional values are written out as tensors.
            self._written: list[Written] = []
            self.source = default_opset(model)
            self._wanted = target_ir_version
            self.ir_version, self.ir_version_reason = ir_version.choose(
                target_ir_version, model, self.scopes, target
            )
            self.sites: list[Site] = []
            #: What the model stated falsely, known when it is applied.
            self.false_shapes: tuple[FalseShape, ...] = ()
            self._trees: dict[int, list[Scope]] = {}
            self._names: dict[int, Names] = {}
            self._workspaces: dict[int, Workspace] = {}
            self._legs: dict[tuple[str, int], Leg | None] = {}
            self._plan()

    def _check_source(self) -> None:
        own = max(scope.opset or 0 for scope in self.given_scopes)
        if own > schemas.newest_opset():
            raise ConversionError(
                f"the model is of opset {own} and the installed onnx knows none after "
                f"{schemas.newest_opset()}; install a newer onnx"
            )

    # Planning

    def _plan(self) -> None:
        self._plan_scopes()
        if not self._write_out():
            if blocked := self._blocked_functions():
                self._specialise(blocked)
            if blocked := self._blocked_functions():
                self._inline(blocked)
        self.leftovers = leftovers(
            self.scopes,
            [(site.scope, site.node, site.result) for site in self.sites if site.blocked is None],
            _bound(self.model),
        )
        self.sites = [site for site in self.sites if not self.leftovers.covers(site.node)]
        if self.target != self.source:
            self._note_order()
        self._settle_ir_version()
        #: The imports that nothing reads, by domain, and go.
        self.unread = {} if self.changes_nothing else unread_everywhere(self.model)

    def _plan_scopes(self) -> None:
        for scope in self.scopes:
            self._plan_scope(scope)
        sites: dict[int, dict[int, Site]] = {}
        for site in self.sites:
            sites.setdefault(id(site.scope), {})[id(site.node)] = site
        for scope in self.scopes:
            self._need_types(scope, sites.get(id(scope), {}))

    def _note_order(self) -> None:
        """Say of graphs whose nodes are out of order that they are put in order."""
        for scope in self.scopes:
            node = scope.misplaced
            if node is None or self.leftovers.covers(node):
                continue
            site = next((site for site in self.sites if site.node is node), None)
            if site is None:
                site = Site(scope, node, result=[node])
                self.sites.append(site)
            if _ORDER not in site.words:
                site.words += (_ORDER,)

    def _write_out(self) -> bool:
        """Plan again with sequences and optional values written out as tensors where they block.

        Those of functions come after: a function that they block is inlined.
        """
        held = [
            site
            for site in self.sites
            if site.blocked is not None and site.scope.function is None and self._holds(site)
        ]
        if not held:
            return False
        copy = without_weights(self.model)
        try:
            self._written = write_out(copy, self.target, self._base_dir)
        except CannotWriteError as error:
            number, place = error.place
            scope = self.scopes[number]
            site = Site(scope, scope.nodes[place])
            site.blocked = Blocked(error.cause.reason, error.cause.advice)
            self.sites = [item for item in self.sites if item not in held]
            self.sites = [item for item in self.sites if item.node is not site.node] + [site]
            return False
        other = self._of_copy(copy)
        self._written += other._written
        self._inlined = other._inlined
        self._take(other)
        self._edit_first = lambda model: write_out(model, self.target, self._base_dir)
        return True

    def _holds(self, site: Site) -> bool:
        """Whether a node is about sequences or optional values."""
        node = site.node
        if node.op_type not in ("Identity", "If", "Loop"):
            return node.op_type in CONTAINER_OPERATORS
        names = [name for name in (*node.input, *node.output) if name]
        kinds = [self.facts.kind(site.scope, name) for name in names]
        return any(kind is not None and kind.startswith(("seq(", "optional(")) for kind in kinds)

    def _of_copy(self, copy: ModelProto) -> Conversion:
        """The same conversion of a copy of the model that was edited."""
        return Conversion(
            copy,
            self.target,
            expand=self.expand,
            target_ir_version=self._wanted,
            base_dir=self._base_dir,
        )

    def _take(self, other: Conversion) -> None:
        """Take over what was planned for an edited copy of the model."""
        self.scopes, self.facts, self.sites = other.scopes, other.facts, other.sites
        self.specialisation, self._workspaces = other.specialisation, other._workspaces
        self.ir_version, self.ir_version_reason = other.ir_version, other.ir_version_reason

    def _blocked_functions(self) -> list[FunctionProto]:
        found = [self._given_function(site) for site in self.sites if site.blocked is not None]
        return [function for function in found if function is not None]

    def _specialise(self, blocked: list[FunctionProto]) -> None:
        """Plan again with a copy of each blocked function for each way in which it is called."""
        found = Specialisation(self.model, self.scopes, blocked, self.given_facts)
        if not found:
            return
        self.specialisation = found
        self.scopes, self.facts = found.scopes, ConversionFacts(found.facts)
        self.sites, self._trees, self._names, self._workspaces = [], {}, {}, {}
        self._plan_scopes()
        sites = {id(site.node): site for site in self.sites}
        found.settle(lambda scope: self._outcome(scope, sites))
        self.scopes = found.scopes
        kept = {id(scope) for scope in self.scopes}
        self.sites = [site for site in self.sites if id(site.scope) in kept]

    def _inline(self, blocked: list[FunctionProto]) -> None:
        """Plan again with the bodies of blocked functions in place of what calls them.

        What calls them is a graph in the end: functions on the way go with them, and those that no
        graph leads to just go. Where that does not help it is tried with these alone.
        """
        functions = callers_first(self.model, blocked, self.given_facts)
        reached: set[int] = set()
        for function in functions:
            callers = [scope.function for scope, _ in self.given_facts.calls.of(function)]
            if any(caller is None or id(caller) in reached for caller in callers):
                reached.add(id(function))
        unreached = [function for function in functions if id(function) not in reached]
        if not self._inline_these(functions) and unreached:
            self._inline_these(unreached)

    def _inline_these(self, functions: list[FunctionProto]) -> bool:
        """Plan again with functions inlined, unless nodes of theirs are blocked then too."""
        if not all(can_inline(self.model, function) for function in functions):
            return False
        copy = without_weights(self.model)
        inlined = inline(copy, [function_key(function) for function in functions])
        other = self._of_copy(copy)
        gone = {id(function) for function in functions}
        staying = [site for site in self.sites if id(self._given_function(site)) not in gone]
        if len(other.blockers) > sum(site.blocked is not None for site in staying):
            return False
        self._inlined = {**inlined, **other._inlined}
        self._written += other._written
        self._take(other)
        self._edit_first = lambda model: inline(model, list(self._inlined))
        return True

    def _given_function(self, site: Site) -> FunctionProto | None:
        """The model's own function that a site is in, or in a copy of which it is."""
        function = site.scope.function
        if function is None or self.specialisation is None:
            return function
        return self.specialisation.original(function)

    def _outcome(self, scope: Scope, sites: Mapping[int, Site]) -> Hashable:
        """What tells apart what becomes of the same nodes in two copies of a function."""
        found = [
            (index, sites[id(node)]) for index, node in enumerate(scope.nodes) if id(node) in sites
        ]
        constants = self.constants(scope)
        read = read_by((site.result for _, site in found), constants.names)
        return (
            *((index, site.outcome) for index, site in found),
            *(tensor.SerializeToString() for tensor in constant_tensors(constants, read)),
            *(node.SerializeToString() for node in reference_nodes(constants, read)),
        )

    def _settle_ir_version(self) -> None:
        """Keep the IR version of a model that nothing else changes in, unless it is asked for."""
        if self._wanted != "auto" or self._changes_more:
            return
        found, self.ir_version_reason = self.ir_version, ""
        self.ir_version = self.model.ir_version
        if found < self.ir_version:
            self.ir_version_reason = f"nothing else changes; --ir-version {found} lowers it"

    def _plan_scope(self, scope: Scope) -> None:
        if scope.opset is None:
            self._plan_without_import(scope)
            return
        legs, opset, expand = self._legs, scope.opset, self.expand
        calls = self.facts.calls
        moulds = Moulds(self.facts.model, scope)
        attended = {}
        for op_type in set(scope.op_types):
            legs[op_type, opset] = found = leg(op_type, opset, self.target)
            attended[op_type] = found is not None or op_type in expand
        for op_type, node in zip(scope.op_types, scope.nodes, strict=True):
            if not attended[op_type] or not is_default(node.domain):
                continue
            if calls.functions and calls.function_of(node) is not None:
                continue
            mould = moulds.find(node, op_type)
            if mould is not None:
                self._cast(scope, node, mould)
                continue
            site = self._plan_node(scope, node)
            site.mould = moulds.learn(
                node, op_type, site.asked, site.result if site.is_plain else (), site.words
            )

    def _cast(self, scope: Scope, node: NodeProto, mould: Mould) -> None:
        """Take a node to the target as another was that is like it."""
        if mould.words:
            made = mould.cast(node, self._workspace(scope).drafts.node.add())
            self.sites.append(Site(scope, node, mould.words, result=[made], mould=mould))

    def _plan_without_import(self, scope: Scope) -> None:
        for node in scope.nodes:
            if is_default(node.domain) and self.facts.calls.function_of(node) is None:
                site = Site(scope, node)
                site.blocked = Blocked(
                    "the default domain is not imported here, so its meaning is not defined",
                    "add the domain to opset_import",
                )
                self.sites.append(site)

    def _plan_node(self, scope: Scope, node: NodeProto) -> Site:
        site = Site(scope, node)
        assert scope.opset is not None
        try:
            problem = schemas.invalid(node, scope.opset)
            if problem is not None:
                raise Blocked(f"it is not valid at its own opset: {problem}", "mend the model")
            site.result = self._carry(site, scope, node, scope.opset, self.expand)
        except Blocked as blocked:
            site.blocked = blocked
        if site.blocked is not None or site.words or site.warnings:
            self.sites.append(site)
        return site

    def _need_types(self, scope: Scope, sites: Mapping[int, Site]) -> None:
        """Block what gives a function's body values that shape inference cannot type there.

        A graph states such types in its value_info (see `_untold_types`); those of a function
        are not read.
        """
        if not isinstance(scope.container, FunctionProto) or not scope.opset:
            return
        results = {
            id(node): sites[id(node)].result if id(node) in sites else [node]
            for node in scope.nodes
        }
        read = {name for result in results.values() for node in result for name in node.input}
        for source in scope.nodes:
            untold = [
                node.op_type
                for node in results[id(source)]
                if self._is_untold(node) and not read.isdisjoint(node.output)
            ]
            told = not schemas.exists(source.op_type, scope.opset) or schemas.infers_types(
                source.op_type, scope.opset
            )
            site = sites.get(id(source)) or Site(scope, source)
            if not untold or not told or site.blocked is not None:
                continue
            reason = (
                f"at opset {self.target} the type of what {untold[0]} gives cannot be told "
                "within a function"
            )
            site.blocked = Blocked(reason, "choose a later opset")
            if id(source) not in sites:
                self.sites.append(site)

    def _is_untold(self, node: NodeProto) -> bool:
        """Whether shape inference at the target cannot tell the types of what a node gives."""
        return is_default(node.domain) and not schemas.infers_types(node.op_type, self.target)

    def _carry(
        self, site: Site, scope: Scope, node: NodeProto, opset: int, expand: Collection[str]
    ) -> list[NodeProto]:
        """Take a node, and whatever it becomes, from `opset` to the target."""
        done: list[NodeProto] = []
        waiting = [(node, opset, expand)]
        workspace = self._workspace(site.scope)
        while waiting:
            node, opset, expand = waiting.pop()
            generated = node is not site.node
            if not is_default(node.domain):
                done.append(node)
                continue
            key = (node.op_type, opset)
            if key not in self._legs:
                self._legs[key] = leg(node.op_type, opset, self.target)
            next_leg = self._legs[key]
            if next_leg is not None:
                context = Context(
                    node, scope, opset, next_leg.far, self.target, site.base, workspace
                )
                next_leg.take(context)
                words, far = context.words or next_leg.words, context.far
            elif node.op_type in expand:
                context = Context(
                    node, scope, self.target, BODY_OPSET, self.target, site.base, workspace
                )
                words, far, expand = body(node.op_type)(context), BODY_OPSET, ()
            else:
                done.append(node)
                continue
            site.asked = max(site.asked, context.asked)
            if context.unchanged:
                self._note(site, context)
                waiting.append((node, far, expand))
                continue
            if not generated:
                site.words += (words,)
            heirs = _heirs(context)
            if node.op_type in GRAPH_OPERATORS and (not generated or node in site.heirs):
                site.heirs = heirs
                site.grafts = {**site.grafts, **context.grafts}
            if context.warnings or context.initializers:
                self._note(site, context)
            for emitted in reversed(context.emitted):
                if emitted.op_type in GRAPH_OPERATORS and emitted not in heirs:
                    self._carry_branches(site, scope, emitted, far, expand, context.grafts)
                waiting.append((emitted, far, expand))
        return done

    def _note(self, site: Site, context: Context) -> None:
        site.warnings += tuple(text for text in context.warnings if text not in site.warnings)
        site.initializers += tuple(context.initializers)

    def _carry_branches(
        self,
        site: Site,
        scope: Scope,
        emitted: NodeProto,
        far: int,
        expand: Collection[str],
        grafts: Collection[str],
    ) -> None:
        """Take the nodes of a generated node's subgraphs to the target, at once.

        Those of a graph that is one of the model's, or was carried already, stay as they are.
        """
        for name, graph in subgraphs(emitted):
            if graph.name in grafts:
                continue
            inner = Scope(graph, scope, far, f"{emitted.name}.{name}", subgraph=True)
            for item in inner.nodes:
                self.facts.declare(inner, item, far, item.output)
            for item in inner.nodes:
                if item.op_type in GRAPH_OPERATORS:
                    self._carry_branches(site, inner, item, far, expand, grafts)
            result = [
                carried
                for item in inner.nodes
                for carried in self._carry(site, inner, item, far, expand)
            ]
            if len(result) != len(inner.nodes) or any(
                a is not b for a, b in zip(result, inner.nodes, strict=True)
            ):
                copies = [NodeProto.FromString(item.SerializeToString()) for item in result]
                del graph.node[:]
                graph.node.extend(copies)
            stated = {output.name for output in graph.output if kind_of(output.type)}
            _state(graph, self._untold_types(inner, list(graph.node), stated))

    def _workspace(self, scope: Scope) -> Workspace:
        """What steps in one of the model's scopes share; names are shared by its whole tree."""
        workspace = self._workspaces.get(id(scope))
        if workspace is None:
            root = id(scope.root)
            if root not in self._names:
                if root not in self._trees:
                    self._trees = by_root(self.scopes)
                self._names[root] = Names(self._trees[root])
            workspace = Workspace(self.facts, self._names[root], Constants(), self.ir_version)
            self._workspaces[id(scope)] = workspace
        return workspace

    # Results

    def constants(self, scope: Scope) -> Constants:
        """The constants that steps add to a scope; what replaces its nodes reads them by name."""
        workspace = self._workspaces.get(id(scope))
        return Constants() if workspace is None else workspace.constants

    @property
    def blockers(self) -> tuple[Blocker, ...]:
        """Every node that cannot reach the target."""
        return tuple(site.blocker for site in self.sites if site.blocked is not None)

    @property
    def rewrites_nodes(self) -> bool:
        """Whether there is anything to check: a node that becomes something else."""
        return any(site.words for site in self.sites if site.blocked is None)

    @property
    def changes_nothing(self) -> bool:
        """Whether the model is where it should be already, byte for byte."""
        return not self._changes_more and self.ir_version == self.model.ir_version

    @property
    def _changes_more(self) -> bool:
        """Whether anything changes but the IR version."""
        opsets = {default_opset(function) for function in self.model.functions} | {self.source}
        return (
            bool(self._written)
            or any(site.words for site in self.sites)
            or not opsets <= {None, self.target}
        )

    def plan(self) -> Plan:
        """The conversion as data."""
        changes = tuple(
            Change(item.node, item.op_type, item.scope, (WRITTEN_OUT,), item.result)
            for item in self._written
        )
        changes += tuple(
            Change(
                site.scope.describe(site.node),
                site.node.op_type,
                site.scope.label,
                site.words,
                site.operators,
                site.warnings,
            )
            for site in self.sites
            if site.blocked is None
        )
        return Plan(
            self.source,
            self.target,
            self.model.ir_version,
            self.ir_version,
            changes,
            self.leftovers.names,
            self.blockers,
            self._specialised(),
            tuple(
                Inlined(function_label(function), tuple(self._inlined[function_key(function)]))
                for function in self.model.functions
                if function_key(function) in self._inlined
            ),
            self.ir_version_reason,
            tuple(f"{domain} {version}" for domain, version in self.unread.items()),
        )

    def _specialised(self) -> tuple[Specialised, ...]:
        named = [] if self.specialisation is None else self.specialisation.named
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
            for function, copies in named
        )

    def apply(self) -> None:
        """Edit the model in place.

        Raises:
            ConversionError: there are blockers; nothing was edited.
        """
        if self.blockers:
            raise ConversionError(f"cannot be converted to opset {self.target}", self.blockers)
        with collector_paused():
            self._apply()

    def _apply(self) -> None:
        revealing = reveals(self.given_scopes, self.source or self.target, self.target)
        if self._edit_first is not None:
            self._edit_first(self.model)
            self._of_copy(self.model).apply()
        else:
            self._apply_edits()
        if revealing:
            self.false_shapes = mend_shapes(self.model)

    def _apply_edits(self) -> None:
        # Looked up before the first edit: facts are read from the model as it was.
        stated = list(self._types_to_state())
        if self.specialisation is not None:
            self.specialisation.direct_calls()
        edits: dict[int, Edits] = {}
        for site in self.sites:
            edit = edits.setdefault(id(site.scope), Edits())
            edit.replace(site.node, site.result, site.heirs, site.grafts, site.initializers)
        for scope in self.leftovers.scopes:
            edits.setdefault(id(scope), Edits()).remove(self.leftovers.of(scope))
        for scope in self.scopes:
            if id(scope) in edits and id(scope) in self._workspaces:
                self._add_constants(scope, edits[id(scope)])
        for graph, infos in stated:
            _state(graph, infos)
        # Inner graphs first: a node that replaces an If takes over branches that are done.
        for scope in reversed(self.scopes):
            if id(scope) in edits:
                apply_edits(scope, edits[id(scope)])
        set_opset(self.model, self.target)
        set_ir_version(self.model, self.scopes, self.ir_version)
        if self.specialisation is not None:
            self.specialisation.install()
        for function in self.model.functions:
            set_opset(function, self.target)
        if self.unread:
            remove_imports(self.model, self.unread)

    def _add_constants(self, scope: Scope, edits: Edits) -> None:
        """Add the constants that new nodes read: initializers, or nodes where there are none.

        A function body has no initializers, and before IR version 4 a graph's are its inputs too.
        """
        constants = self._workspaces[id(scope)].constants
        read = read_by(edits.replaced.values(), constants.names)
        tensors = constant_tensors(constants, read)
        if not isinstance(scope.container, FunctionProto) and self.ir_version >= 4:
            edits.initializers += tensors
            tensors = []
        nodes = [constant_node(tensor) for tensor in tensors]
        nodes += reference_nodes(constants, read)
        for node in nodes:
            site = Site(scope, node)
            edits.first += self._carry(site, scope, node, max(self.target, CONSTANT_OPSET), ())
            edits.initializers += site.initializers
        if isinstance(scope.container, GraphProto):
            scope.container.value_info.extend(self._untold_types(scope, edits.first, ()))

    def _types_to_state(self) -> Iterator[tuple[GraphProto, list[ValueInfoProto]]]:
        """The types that shape inference could tell at the source opset but cannot at the target.

        The oldest definitions of some operators came without inference. On the way up only a new
        node can be of those, such as a Cast, of which inference knows from opset 6 on.
        """
        results = {id(site.node): site.result for site in self.sites if site.blocked is None}
        scans = self.target < 14 and any("Scan" in scope.op_types for scope in self.scopes)
        for scope in self.scopes:
            graph = scope.container
            if isinstance(graph, FunctionProto) or not scope.opset:
                continue
            down = self.target < scope.opset
            if not down and self.target >= 6:
                continue
            known = (*graph.input, *graph.value_info, *graph.output)
            stated = {info.name for info in known if kind_of(info.type)}
            nodes = [
                node
                for source in scope.nodes
                for node in results.get(id(source), [source] if down else [])
            ]
            found = self._untold_types(scope, nodes, stated)
            if scans and down:
                stated |= {info.name for info in found}
                found += self._scanned_types(scope, stated)
            yield graph, found

    def _scanned_types(self, scope: Scope, stated: set[str]) -> list[ValueInfoProto]:
        """The types of what a Scan reads and of what its body reshapes, but for those stated.

        ONNX Runtime must know the ranks of what its body gives, which follow from these; before
        opset 14 Reshape's inference tells no rank where the shape is computed.
        """
        read = [name for node in scope.nodes if node.op_type == "Scan" for name in node.input]
        if scope.subgraph:
            read += [node.output[0] for node in scope.nodes if node.op_type == "Reshape"]
        found = []
        for name in dict.fromkeys(read):
            known = self.facts.type(scope, name) if name in scope.producers else None
            if name not in stated and known is not None and known.elem_type and known.dims:
                dims = [dim if isinstance(dim, int) else None for dim in known.dims]
                found.append(helper.make_tensor_value_info(name, known.elem_type, dims))
        return found

    def _untold_types(
        self, scope: Scope, nodes: list[NodeProto], stated: Collection[str]
    ) -> list[ValueInfoProto]:
        """The types of what nodes give where inference cannot tell them, but for those stated."""
        found = []
        for node in nodes:
            for name in node.output if self._is_untold(node) else ():
                known = self.facts.type(scope, name) if name not in stated else None
                if known is not None and known.elem_type:
                    found.append(helper.make_value_info(name, known.to_proto()))
        return found


def _state(graph: GraphProto, infos: Sequence[ValueInfoProto]) -> None:
    """State types in a graph: with the outputs those of outputs, which may come without."""
    outputs = {output.name: output for output in graph.output}
    for info in infos:
        if info.name in outputs:
            outputs[info.name].CopyFrom(info)
        else:
            graph.value_info.append(info)


def _heirs(context: Context) -> list[NodeProto]:
    """What a step emitted that takes over the subgraphs of the node, if no graphs in it do."""
    node = context.node
    if context.grafts or node.op_type not in GRAPH_OPERATORS:
        return []
    return [item for item in context.emitted if _stands_in(item, node)]


def _stands_in(emitted: NodeProto, node: NodeProto) -> bool:
    if emitted.op_type == node.op_type:
        return True
    return (node.op_type, emitted.op_type, emitted.name) == ("Scan", "Loop", node.name)


def _bound(model: ModelProto) -> Iterator[str]:
    """The values that training information refers to by name."""
    for training in model.training_info:
        for entry in (*training.initialization_binding, *training.update_binding):
            yield entry.key
            yield entry.value
