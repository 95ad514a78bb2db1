"""Types by the type constraints of schemas, where shape inference gives none.

Operators of other domains often come without shape inference, but their schemas still say which
inputs and outputs have one type, and so do the schemas of the operators around them: in a valid
model, if one input of an `Add` is a float weight, the other is float too. Nothing is guessed: each
such equality is a rule that a valid model keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import onnx
from onnx import NodeProto

from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.scope import Scope

#: A value: the identity of the scope that defines it, and its name.
Value = tuple[int, str]

KnownKind = Callable[[Scope, str], str | None]


class _TypeGroups:
    """Values grouped by equality of type (union-find), with the type or allowed types of each."""

    def __init__(self) -> None:
        self._parent: dict[Value, Value] = {}
        self._kind: dict[Value, str] = {}
        self._allowed: dict[Value, frozenset[str]] = {}

    def find(self, value: Value) -> Value:
        root = value
        while (parent := self._parent.get(root, root)) != root:
            root = parent
        while (parent := self._parent.get(value, value)) != root:
            self._parent[value], value = root, parent
        return root

    def join(self, first: Value, second: Value) -> None:
        a, b = self.find(first), self.find(second)
        if a != b:
            self._parent[a] = b
            if a in self._kind:
                self._kind.setdefault(b, self._kind.pop(a))
            if a in self._allowed:
                self.limit(b, self._allowed.pop(a))

    def limit(self, value: Value, allowed: frozenset[str]) -> None:
        root = self.find(value)
        self._allowed[root] = self._allowed.get(root, allowed) & allowed

    def allowed(self, value: Value) -> frozenset[str] | None:
        return self._allowed.get(self.find(value))

    def state(self, value: Value, kind: str) -> None:
        self._kind.setdefault(self.find(value), kind)

    def kind(self, value: Value) -> str | None:
        return self._kind.get(self.find(value))


class Unification:
    """The types of values of a model's graphs, or of a function, that follow from schemas."""

    def __init__(
        self, scopes: Sequence[Scope], opsets: Mapping[str, int], known: KnownKind
    ) -> None:
        """Apply the constraints of every node.

        Args:
            scopes: the scopes of the model's graphs, or of one function.
            opsets: the opset of each domain that is imported there.
            known: returns the type of a value if it is known already.
        """
        self._classes = _TypeGroups()
        for scope in scopes:
            for node in scope.nodes:
                self._add(scope, node, opsets, known)
        self._join_branches(scopes)

    def kind(self, owner: Scope, name: str) -> str | None:
        """Return the type of a value that `owner` defines, as schemas spell it."""
        kind = self._classes.kind((id(owner), name))
        allowed = self._classes.allowed((id(owner), name)) if kind is None else None
        return next(iter(allowed)) if allowed is not None and len(allowed) == 1 else kind

    def allowed(self, owner: Scope, name: str) -> frozenset[str] | None:
        """Return the types that a value may have by its nodes' schemas; None if there are none."""
        return self._classes.allowed((id(owner), name))

    def _add(
        self, scope: Scope, node: NodeProto, opsets: Mapping[str, int], known: KnownKind
    ) -> None:
        variables: dict[str, Value] = {}
        for name, types, variable in _formals(node, _schema(node, opsets)):
            owner = scope.resolve(name)
            if owner is None:
                continue
            value = (id(owner), name)
            kind = known(owner, name) or (next(iter(types)) if len(types) == 1 else None)
            if kind is not None:
                self._classes.state(value, kind)
            elif types:
                self._classes.limit(value, types)
            if variable:
                self._classes.join(variables.setdefault(variable, value), value)

    def _join_branches(self, scopes: Sequence[Scope]) -> None:
        """Join the types of If's outputs with its branches', and of Loop's carried values."""
        for scope in scopes:
            parent = scope.parent
            if parent is None or not scope.subgraph:
                continue
            node = scope.owner
            if node is None or not is_default(node.domain):
                continue
            container: Any = scope.container
            outputs = [value.name for value in container.output]
            if node.op_type == "If":
                self._join(scope, outputs, parent, node.output)
            elif node.op_type == "Loop":
                carried = [value.name for value in container.input][2:]
                self._join(scope, outputs[1:], parent, node.output)
                self._join(scope, carried, parent, node.input[2:])
                self._join(scope, carried, scope, outputs[1:])

    def _join(
        self, scope: Scope, names: Sequence[str], other: Scope, others: Sequence[str]
    ) -> None:
        for name, twin in zip(names, others, strict=False):
            owner, twin_owner = scope.resolve(name), other.resolve(twin)
            if owner is not None and twin_owner is not None:
                self._classes.join((id(owner), name), (id(twin_owner), twin))


def _formals(node: NodeProto, schema: Any) -> Iterator[tuple[str, frozenset[str], str]]:
    """Yield each value of a node with the types its schema allows and the type variable, if any."""
    if schema is None:
        return
    variables = {constraint.type_param_str for constraint in schema.type_constraints}
    for names, formals in ((node.input, schema.inputs), (node.output, schema.outputs)):
        if not formals:
            continue
        for index, name in enumerate(names):
            formal = formals[min(index, len(formals) - 1)]
            spelled, homogeneous, types = _parts(formal, schema)
            if name:
                shared = spelled if spelled in variables and homogeneous else ""
                yield name, types, shared


def _parts(formal: Any, schema: Any) -> tuple[str, bool, frozenset[str]]:
    """Return the type of a formal parameter, whether all its values share it, and allowed types.

    The schemas of onnx and of ONNX Runtime name the same things differently.
    """
    if hasattr(formal, "type_str"):
        return formal.type_str, formal.is_homogeneous, frozenset(formal.types)
    for constraint in schema.type_constraints:
        if constraint.type_param_str == formal.typeStr:
            return (
                formal.typeStr,
                formal.isHomogeneous,
                frozenset(constraint.allowed_type_strs),
            )
    return formal.typeStr, formal.isHomogeneous, frozenset({formal.typeStr})


def _schema(node: NodeProto, opsets: Mapping[str, int]) -> Any:
    domain = "" if is_default(node.domain) else node.domain
    version = opsets.get(domain)
    if version is None:
        return None
    if onnx.defs.has(node.op_type, domain):
        try:
            return onnx.defs.get_schema(node.op_type, version, domain)
        except onnx.defs.SchemaError:
            return None
    return _runtime_schemas().get((domain, node.op_type)) if domain else None


@cache
def _runtime_schemas() -> dict[tuple[str, str], Any]:
    """Return the schemas of ONNX Runtime's own domains, such as com.microsoft."""
    from onnxreduce_cli.runtime_module import RuntimeMissingError, import_onnxruntime

    try:
        import_onnxruntime()
    except RuntimeMissingError:
        return {}  # As of domains that nobody knows.
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    return {
        (schema.domain, schema.name): schema
        for schema in state.get_all_operator_schema()
        if schema.domain
    }
