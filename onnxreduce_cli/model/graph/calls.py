"""The calls of a model's functions, and the values that they give the functions' attributes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from onnx import AttributeProto, FunctionProto, NodeProto, helper

from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.scope import FunctionKey, Scope, called_key, subgraphs, with_inner

#: Names of attributes of a function, and their values in one of its calls: None where it sets none.
Names = tuple[str, ...]
Values = tuple[Any, ...]

#: The most combinations of values that are known: calls of calls can make very many.
_MOST = 256

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
        self._values: dict[tuple[int, Names], list[Values] | None] = {}

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
                self._values.clear()
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

        A reference holds no value, so attributes of a model's nodes must be read by this method,
        or by `possible_values`.

        Args:
            scope: where the node is.
            attribute: the node's attribute; None where it is absent.
            default: the value of an absent attribute, and of one that no call sets.

        Returns:
            the value, `default`, or `UNKNOWN`.
        """
        found = self.possible_values(scope, attribute, default)
        return found[0] if len(found) == 1 else UNKNOWN

    def possible_values(
        self, scope: Scope, attribute: AttributeProto | None, default: Any = None
    ) -> list[Any]:
        """Return each value that an attribute has: for a reference, one for each way of calling.

        Returns:
            the values, each once; none where they are not known.
        """
        if attribute is None:
            return [default]
        if not attribute.ref_attr_name:
            return [attributes.value(attribute)]
        if scope.function is None:
            return []
        found = self.values_of_calls(scope.function, (attribute.ref_attr_name,)) or []
        values = [default if value is None else value for (value,) in found]
        return list({attributes.hashable(value): value for value in values}.values())

    def values_of_calls(self, function: FunctionProto, names: Names) -> list[Values] | None:
        """Return the values that the calls of a function give some of its attributes together.

        No recursion: callers may be a long chain.

        Args:
            function: the function.
            names: the names of the attributes.

        Returns:
            each combination once, with None for what a call does not set and has no default; None
            where the values are not known: nothing calls the function, or they are too many.
        """
        under_way = set[tuple[int, Names]]()
        waiting = [(function, names)]
        while waiting:
            asked, wanted = waiting[-1]
            key = (id(asked), wanted)
            if key not in self._values:
                unresolved = [
                    (scope.function, outer)
                    for scope, call in self.of(asked)
                    if scope.function is not None
                    if (outer := _references(asked, call, wanted))
                    if (id(scope.function), outer) not in self._values
                ]
                if unresolved and key not in under_way:
                    under_way.add(key)
                    waiting += unresolved
                    continue
                self._values[key] = self._combinations(asked, wanted)
            waiting.pop()
        return self._values[id(function), names]

    def _combinations(self, function: FunctionProto, names: Names) -> list[Values] | None:
        """Return the values of all calls, once those of the functions around them are known."""
        found: dict[Hashable, Values] = {}
        for scope, call in self.of(function):
            outer = _references(function, call, names)
            around: list[Values] | None = [()]
            if outer:
                around = self._values.get((id(scope.function), outer))
            for values in around or ():
                bound = dict(zip(outer, values, strict=True))
                given = tuple(_argument(function, call, name, bound) for name in names)
                found[tuple(map(attributes.hashable, given))] = given
            if not around or len(found) > _MOST:
                return None
        return list(found.values()) or None

    def arguments(
        self, function: FunctionProto, name: str
    ) -> list[tuple[Scope, AttributeProto | None]]:
        """Return for each call the value of the function's attribute `name`, or its default."""
        return [(caller, _given(function, call, name)) for caller, call in self.of(function)]

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


def _given(function: FunctionProto, call: NodeProto, name: str) -> AttributeProto | None:
    """Return what a call gives a function's attribute, or the attribute's default."""
    found = attributes.find(call, name)
    return found if found is not None else _default(function, name)


def _default(function: FunctionProto, name: str) -> AttributeProto | None:
    return next((item for item in function.attribute_proto if item.name == name), None)


def _references(function: FunctionProto, call: NodeProto, names: Names) -> Names:
    """Return the attributes of the function around a call that it gives as these attributes."""
    given = [_given(function, call, name) for name in names]
    found = [item.ref_attr_name for item in given if item is not None and item.ref_attr_name]
    return tuple(dict.fromkeys(found))


def _argument(
    function: FunctionProto, call: NodeProto, name: str, around: Mapping[str, Any]
) -> Any:
    """Return the value that a call gives an attribute; None where it gives none.

    Args:
        function: the function that is called.
        call: the call.
        name: the attribute.
        around: the values of the attributes, by name, of the function around the call.
    """
    given, default = _given(function, call, name), _default(function, name)
    value = None if given is None else around.get(given.ref_attr_name)
    if given is not None and not given.ref_attr_name:
        value = attributes.value(given)
    if value is None and default is not None:
        # A reference to an attribute that no call sets is not set either.
        value = attributes.value(default)
    return value


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
