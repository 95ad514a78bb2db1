"""The calls of a model's functions, and the values that they give the functions' attributes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from onnx import AttributeProto, FunctionProto, NodeProto, helper

from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.scope import FunctionKey, Scope, called_key, subgraphs, with_inner

#: The identity of a function, and the name of one of its attributes.
_Reference = tuple[int, str]

#: The number of nodes that a function counts as that calls itself.
_ENDLESS = 1 << 62

#: A node that calls a model-local function, with its scope.
Call = tuple[Scope, NodeProto]


class Unknown:
    """The value of an attribute reference that calls set differently, or that no call sets."""


UNKNOWN = Unknown()


class Calls:
    """The calls of one model's functions.

    Attributes:
        functions: the functions by domain, name and overload.
    """

    def __init__(
        self, found: Sequence[Scope], functions: Mapping[FunctionKey, FunctionProto] | None = None
    ) -> None:
        """Prepare for a model's scopes; nodes are read when they are needed.

        Args:
            found: the scopes.
            functions: the model's functions; None for the functions whose scopes are given.
        """
        own = ((scope.function_key, scope.function) for scope in found)
        self.functions: Mapping[FunctionKey, FunctionProto] = (
            {key: function for key, function in own if key is not None and function is not None}
            if functions is None
            else functions
        )
        self._scopes = list(found)
        self._calls: defaultdict[int, list[Call]] | None = None
        self._redirected: dict[int, FunctionProto] = {}
        self._resolved: dict[_Reference, Any] = {}

    def function_of(self, node: NodeProto) -> FunctionProto | None:
        """Return the model-local function that a node calls; None if it calls none."""
        return self._redirected.get(id(node)) or self.functions.get(called_key(node))

    @property
    def all(self) -> Mapping[int, Sequence[Call]]:
        """Every call of each function, by the identity of the function."""
        if self._calls is None:
            self._calls = defaultdict(list)
            self._find(self._scopes)
        return self._calls

    @cached_property
    def op_types(self) -> frozenset[str]:
        """The operator types of nodes that may call functions."""
        return frozenset(name for _, name, _ in self.functions)

    def of(self, function: FunctionProto) -> Sequence[Call]:
        """Return every call of a function."""
        return self.all.get(id(function), ())

    def _find(self, found: Iterable[Scope]) -> None:
        assert self._calls is not None
        for scope in found if self.functions else ():
            for node, op_type in zip(scope.nodes, scope.op_types, strict=True):
                function = self.function_of(node) if op_type in self.op_types else None
                if function is not None:
                    self._calls[id(function)].append((scope, node))

    def redirect(self, calls: Sequence[Call], function: FunctionProto) -> None:
        """Let nodes call a copy of the function that they name.

        Args:
            calls: some of the calls of that function.
            function: the copy, whose scopes are added by `add`.
        """
        for _, node in calls:
            self._redirected[id(node)] = function
        if self._calls is not None:
            if id(function) in self._calls:
                self._resolved.clear()
            self._calls[id(function)] = list(calls)

    def add(self, tree: Sequence[Scope]) -> None:
        """Add the calls within a function's scopes, once all calls of the function are known."""
        self._scopes += tree
        if self._calls is not None:
            self._find(tree)

    def reached_from(self, tree: Sequence[Scope]) -> list[FunctionProto]:
        """Return the functions that a function calls, directly or not, in the model's order."""
        found: dict[int, FunctionProto] = {}
        waiting = [node for scope in tree for node in scope.nodes]
        while waiting:
            node = waiting.pop()
            function = self.functions.get(called_key(node))
            if function is not None and id(function) not in found:
                found[id(function)] = function
                waiting += function.node
            waiting += [inner for _, graph in subgraphs(node) for inner in graph.node]
        order = self._indices
        return sorted(found.values(), key=lambda function: order[id(function)])

    @cached_property
    def _indices(self) -> dict[int, int]:
        return {id(function): index for index, function in enumerate(self.functions.values())}

    # Attributes

    def resolve_attribute(
        self, scope: Scope, attribute: AttributeProto | None, default: Any = None
    ) -> Any:
        """Return an attribute's value; for a reference, the one that all calls agree on.

        A reference holds no value, so attributes of a model's nodes must be read by this method.

        Args:
            scope: where the node is.
            attribute: the node's attribute; None where it is absent.
            default: the value of an absent attribute, and of one that no call sets.

        Returns:
            the value, `default`, or `UNKNOWN`.
        """
        if attribute is None:
            return default
        if not attribute.ref_attr_name:
            return attributes.value(attribute)
        if scope.function is None:
            return UNKNOWN
        value = self._resolve(scope.function, attribute.ref_attr_name)
        return default if value is None else value

    def _resolve(self, function: FunctionProto, name: str) -> Any:
        """Resolve a function's attribute once, without recursion: callers may be a long chain."""
        under_way = set[_Reference]()
        waiting = [(function, name)]
        while waiting:
            function, name = waiting[-1]
            key = (id(function), name)
            arguments = [] if key in self._resolved else self.arguments(function, name)
            unresolved = [
                (caller.function, given.ref_attr_name)
                for caller, given in arguments
                if given is not None and given.ref_attr_name and caller.function is not None
                if (id(caller.function), given.ref_attr_name) not in self._resolved
            ]
            if unresolved and key not in under_way:
                under_way.add(key)
                waiting += unresolved
                continue
            waiting.pop()
            if key not in self._resolved:
                self._resolved[key] = self._agreed(arguments, _default(function, name))
        return self._resolved[id(function), name]

    def _agreed(
        self,
        arguments: Sequence[tuple[Scope, AttributeProto | None]],
        default: AttributeProto | None,
    ) -> Any:
        """Return the value that all arguments have, once references in them are resolved."""
        fallback = None if default is None else attributes.value(default)
        found = []
        for caller, given in arguments:
            if given is None or not given.ref_attr_name:
                value = None if given is None else attributes.value(given)
            else:
                value = self._resolved.get((id(caller.function), given.ref_attr_name), UNKNOWN)
            # A reference to an attribute that no call sets is not set either.
            found.append(fallback if value is None else value)
        if not found or any(item is UNKNOWN or item != found[0] for item in found):
            return UNKNOWN
        return found[0]

    def arguments(
        self, function: FunctionProto, name: str
    ) -> list[tuple[Scope, AttributeProto | None]]:
        """Return for each call the value of the function's attribute `name`, or its default."""
        default = _default(function, name)
        return [
            (caller, attributes.find(call, name) or default) for caller, call in self.of(function)
        ]

    def bound(
        self, function: FunctionProto, caller: Scope, call: NodeProto
    ) -> dict[str, AttributeProto]:
        """Return a call's attributes with defaults; references stay where calls differ."""
        bound = {item.name: item for item in function.attribute_proto}
        for attribute in call.attribute:
            if not attribute.ref_attr_name:
                bound[attribute.name] = attribute
                continue
            value = self.resolve_attribute(caller, attribute)
            if value is UNKNOWN:
                bound[attribute.name] = attribute
            elif value is not None:
                bound[attribute.name] = helper.make_attribute(
                    attribute.name, value, attr_type=attribute.type or None
                )
        return bound


def _default(function: FunctionProto, name: str) -> AttributeProto | None:
    return next((item for item in function.attribute_proto if item.name == name), None)


def sizes_of_calls(functions: Mapping[FunctionKey, FunctionProto]) -> dict[FunctionKey, int]:
    """Return the number of nodes that a call of each function runs, nested calls included.

    A function that calls itself counts as more than any other.
    """
    found: dict[FunctionKey, int] = {}
    under_way = set[FunctionKey]()
    for first in functions:
        waiting = [first]
        while waiting:
            key = waiting[-1]
            if key in found:
                waiting.pop()
                continue
            called = list(map(called_key, with_inner(functions[key].node)))
            inner = [item for item in called if item in functions]
            missing = [item for item in inner if item not in found]
            if missing and key not in under_way:
                under_way.add(key)
                waiting += missing
                continue
            found[key] = len(called) + sum(found.get(item, _ENDLESS) for item in inner)
            waiting.pop()
    return found
