"""The nodes of a converted model, and what else can be written in their place for a runtime.

What can be written depends on no runtime, so it is written once, and many runtimes are asked
whether they take it.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Set
from functools import cached_property

from onnx import NodeProto

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.engine.avoidance import (
    AttemptedRewrites,
    Avoidance,
    blocked_by_domain,
    untried,
)
from onnxreduce_cli.engine.node_converter import NodeConverter
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.graph.dead_values import REMOVABLE
from onnxreduce_cli.model.graph.domains import is_default, operator_name
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, Scope
from onnxreduce_cli.model.graph.values import dtype_name, elem_type_of
from onnxreduce_cli.steps.dispatch import body_writer, expandable_operators
from onnxreduce_cli.targets.forms import form_blocker
from onnxreduce_cli.targets.requirement import Target


class UndecidedError(Exception):
    """Only a plan of the whole model tells whether a runtime takes it."""


class AskedRuntime:
    """A runtime that is asked whether it takes nodes at one opset.

    Attributes:
        target: the runtime.
        avoidance: the nodes that it computes wrong or refuses.
    """

    def __init__(self, target: Target, opset: int, dtypes: Set[str]) -> None:
        """Prepare; `dtypes` are those that nodes may have."""
        self.target = target
        self.avoidance = Avoidance(target, opset)
        self._opset, self._dtypes = opset, dtypes
        self._keys: dict[str, Hashable] = {}

    def affects(self, op_type: str) -> bool:
        """Return whether it may compute nodes of an operator wrong, or refuse them."""
        return self.avoidance.affects_given(op_type, self._may_be)

    def _may_be(self, kind: str) -> bool:
        """Return whether a value may have a type, as schemas spell it."""
        elem_type = elem_type_of(kind)
        return elem_type is None or dtype_name(elem_type) in self._dtypes

    def key(self, op_type: str) -> Hashable:
        """Return a key of what is known of an operator of the default domain.

        Of runtimes with equal keys all else here is the same of its nodes.
        """
        if op_type not in self._keys:
            self._keys[op_type] = self.target.key("", op_type, self._opset, self._dtypes)
        return self._keys[op_type]


class ConvertedNode:
    """A node at the target.

    Attributes:
        site: the site of the model's node that it is, or takes the place of; notes on it say
            nothing of one runtime.
        node: the node.
    """

    def __init__(
        self,
        converter: NodeConverter,
        site: Site,
        scope: Scope,
        node: NodeProto,
        *,
        beside: Sequence[NodeProto] = (),
        imported: int = 0,
        tried: AttemptedRewrites | None = None,
        forms: dict[Hashable, str | None] | None = None,
    ) -> None:
        """Prepare; nothing is written yet.

        Args:
            converter: has converted the model.
            site: the site.
            scope: the scope of the node: that of the site, or of a new graph.
            node: the node.
            beside: the nodes, with it, that take the place of another.
            imported: the version of its domain, if that is not the default one.
            tried: the rewrites that led to it; None for a node of the converted model.
            forms: what was found of the same node at other opsets; see `_form`.
        """
        self.site, self.node = site, node
        self._converter, self._scope, self._imported = converter, scope, imported
        self._beside, self._tried = beside, tried
        self._opset = converter.target if is_default(node.domain) else scope.opset or 0
        self._definition = bisect(schemas.versions(node.op_type), self._opset)
        self._forms = {} if forms is None else forms
        self._written: dict[str, Sequence[ConvertedNode] | None] = {}

    @cached_property
    def _context(self) -> Context:
        """The context of the node, which most nodes are not asked for."""
        opset = self._opset
        found = self._converter.context(self.site, self._scope, self.node, opset, opset)
        found.beside = self._beside
        return found

    @property
    def may_die(self) -> bool:
        """Whether it computes sizes or constants, which rewrites of other nodes may not read."""
        context = self._context
        return self.node.op_type in REMOVABLE and any(
            context.rank(name) in (0, 1) or context.constant(name) is not None
            for name in self.node.output
        )

    def is_taken(self, runtime: AskedRuntime) -> bool:
        """Return whether a runtime takes the node as it is, and computes nothing wrong."""
        node = self.node
        if is_default(node.domain):
            return self._form(runtime) is None
        return blocked_by_domain(runtime.target, node.domain, node.op_type, self._imported) is None

    def taken_as(self, runtime: AskedRuntime) -> list[NodeProto] | None:
        """Return nodes that a runtime takes in place of this one; None if it takes none.

        Raises:
            UndecidedError: only a plan of the whole model tells.
            InvalidModelError: the model contradicts itself.
        """
        if self.is_taken(runtime):
            if self._tried is not None and self.node.op_type in GRAPH_OPERATORS:
                raise UndecidedError  # Its graphs have nodes as well.
            return [self.node]
        if self._scope is not self.site.scope:
            raise UndecidedError
        for way in self._ways(runtime):
            found: list[NodeProto] = []
            for item in way:
                taken = item.taken_as(runtime)
                if taken is None:
                    break
                found += taken
            else:
                return found
        return None

    def _form(self, runtime: AskedRuntime) -> str | None:
        """Return the form of the node that a runtime must not get; None if it takes the node."""
        key = self._definition, runtime.key(self.node.op_type)
        if key not in self._forms:
            problem = runtime.avoidance.problem(self._context)
            self._forms[key] = None if problem is None else problem.form
        return self._forms[key]

    def _ways(self, runtime: AskedRuntime) -> Iterator[Sequence[ConvertedNode]]:
        """Yield what can be written in place of the node, in the order to try it."""
        op_type = self.node.op_type
        ways: Iterable[tuple[str, Callable[[Context], object]]] = ()
        if is_default(self.node.domain):
            form = self._form(runtime)
            # A rewrite that is right for one form may be wrong for others.
            if form is not None and form_blocker(self._context, form) is None:
                tried = self._tried or frozenset()
                ways = ((name, item.apply) for name, item in untried(op_type, form, tried))
        elif operator_name(self.node) in expandable_operators():
            ways = [("", body_writer(operator_name(self.node)))]
        for name, write in ways:
            if name not in self._written:
                self._written[name] = self._write(name, write)
            if self.site.blocked is not None:
                raise UndecidedError  # Its branch is never taken.
            way = self._written[name]
            if way is not None:
                yield way

    def _write(
        self, name: str, write: Callable[[Context], object]
    ) -> Sequence[ConvertedNode] | None:
        """Return what one rewrite writes; None if it cannot, or changes nothing."""
        context, converter, site = self._context.afresh(), self._converter, self.site
        tried = (self._tried or frozenset()) | ({name} if name else frozenset())
        try:
            write(context)
            if context.unchanged:
                return None
            nodes = converter.at_target(site, self._scope, context, tried)
        except Blocked:
            return None
        finally:
            # Rewrites trust the facts that they look up.
            converter.soundness.refuse_contradictions(site)
        scope, imported = self._scope, self._imported
        return [
            ConvertedNode(
                converter, site, scope, item, beside=nodes, imported=imported, tried=tried
            )
            for item in nodes
        ]
