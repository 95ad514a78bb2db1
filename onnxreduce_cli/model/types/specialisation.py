"""Copies of model-local functions, one for each way in which they are called.

The types, constants and attributes that one call gives are facts in its copy of the body, while in
the function itself only those are facts that all calls share. The model is not changed before
`install`; until then the facts hold which copy a node calls.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from onnx import FunctionProto, ModelProto

from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.calls import Call
from onnxreduce_cli.model.graph.scope import LABEL, Scope, by_root, function_label, function_scopes
from onnxreduce_cli.model.types.constants import Array
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.text import shortened

#: The most nodes of all copies together; functions beyond that are not copied.
MOST_NODES = 20_000


@dataclass(slots=True)
class FunctionCopy:
    """A function for some of its calls.

    Attributes:
        function: the copy; it has the original's name until `Specialisation.settle`.
        scopes: its scopes.
        calls: the nodes that call it.
    """

    function: FunctionProto
    scopes: list[Scope]
    calls: list[Call]


class Specialisation:
    """A model's functions, some of them replaced by copies.

    Attributes:
        facts: the facts of the model with the copies.
    """

    def __init__(
        self,
        model: ModelProto,
        found: Sequence[Scope],
        blocked: Sequence[FunctionProto],
        facts: Facts,
    ) -> None:
        """Copy blocked functions, and functions that call them, call by call.

        Args:
            model: the model.
            found: its scopes.
            blocked: functions that need more facts than all their calls share.
            facts: the facts of the model as it is.
        """
        self._model = model
        self._found = found
        self.facts = facts.without_functions()
        self._copies: dict[int, list[FunctionCopy]] = {}
        self._originals: dict[int, FunctionProto] = {}
        self._order = callers_first(model, blocked, facts)
        trees = by_root(found)
        nodes = 0
        roots = {id(scope.container): id(scope) for scope in found if scope.parent is None}
        for function in self._order:
            tree = trees[roots[id(function)]]
            calls = _by_signature(self.facts, function)
            copied = len(calls) * sum(len(scope.nodes) for scope in tree)
            if len(calls) < 2 or nodes + copied > MOST_NODES:
                self.facts.add_scopes(tree)
                continue
            nodes += copied
            copies = [_copy(function, tree, group) for group in calls]
            self._copies[id(function)] = copies
            for copy in copies:
                self._originals[id(copy.function)] = function
                self.facts.calls.redirect(copy.calls, copy.function)
                self.facts.add_scopes(copy.scopes)
        taken_in = {id(function) for function in self._order}
        rest = [scope for scope in found if scope.function and id(scope.function) not in taken_in]
        self.facts.add_scopes(rest)

    def __bool__(self) -> bool:
        """Return whether any function has copies."""
        return bool(self._copies)

    @property
    def scopes(self) -> list[Scope]:
        """Every scope, in the model's order, with copies in place of their originals."""
        result = []
        for scope in self._found:
            function = scope.function
            copies = self._copies.get(id(function)) if function is not None else None
            if copies is None:
                result.append(scope)
            elif scope.parent is None:
                result += [inner for copy in copies for inner in copy.scopes]
        return result

    def settle(self, outcome: Callable[[Scope], Hashable]) -> None:
        """Merge copies whose nodes became the same, and name the rest.

        Args:
            outcome: a key of the replacements of a scope's nodes, without the functions called.
        """
        for function in reversed(self._order):
            copies = self._copies.get(id(function), [])
            kept: dict[Hashable, FunctionCopy] = {}
            for copy in copies:
                key = tuple((outcome(scope), self._called(scope)) for scope in copy.scopes)
                same = kept.setdefault(key, copy)
                if same is not copy:
                    same.calls += copy.calls
                    self.facts.calls.redirect(same.calls, same.function)
            copies[:] = kept.values()
        self._name()

    def _called(self, scope: Scope) -> tuple[int, ...]:
        called = (self.facts.calls.function_of(node) for node in scope.nodes)
        return tuple(id(function) for function in called if function is not None)

    def _name(self) -> None:
        taken = {(function.domain, function.name) for function in self._model.functions}
        taken |= {(node.domain, node.op_type) for scope in self._found for node in scope.nodes}
        live = {id(scope) for scope in self.scopes}
        for function in self._model.functions:
            copies = self._copies.get(id(function), [])
            count = 0
            for copy in copies:
                copy.calls = [call for call in copy.calls if id(call[0]) in live]
                if len(copies) == 1:
                    _relabel(copy.scopes, f"function {function_label(function)}")
                    continue
                name = function.name
                while (function.domain, name) in taken:
                    count += 1
                    name = f"{function.name}_{count}"
                taken.add((function.domain, name))
                copy.function.name = name

    @property
    def named(self) -> list[tuple[FunctionProto, list[FunctionCopy]]]:
        """Each function that several copies replace, with the copies."""
        pairs = [(item, self._copies.get(id(item), [])) for item in self._model.functions]
        return [(function, copies) for function, copies in pairs if len(copies) > 1]

    def original(self, function: FunctionProto) -> FunctionProto:
        """Return the model's own function that the given function is, or is a copy of."""
        return self._originals.get(id(function), function)

    def direct_calls(self) -> None:
        """Let each node name the copy that it calls, before edits move nodes."""
        for copies in self._copies.values():
            for copy in copies:
                for _, node in copy.calls:
                    node.op_type = copy.function.name

    def install(self) -> None:
        """Replace the originals by their copies in the model."""
        functions = [
            FunctionProto.FromString(item.SerializeToString())
            for function in self._model.functions
            for item in (
                [copy.function for copy in self._copies[id(function)]]
                if id(function) in self._copies
                else [function]
            )
        ]
        del self._model.functions[:]
        self._model.functions.extend(functions)


def callers_first(
    model: ModelProto, blocked: Sequence[FunctionProto], facts: Facts
) -> list[FunctionProto]:
    """Return functions, and all functions that call them, each after its callers.

    Functions that call each other, which are invalid, are left out.
    """
    callers: dict[int, set[int]] = {}
    waiting = list(blocked)
    while waiting:
        function = waiting.pop()
        if id(function) in callers:
            continue
        found = [scope.function for scope, _ in facts.calls.of(function)]
        callers[id(function)] = {id(item) for item in found if item is not None}
        waiting += [item for item in found if item is not None]
    functions = [function for function in model.functions if id(function) in callers]
    called: dict[int, list[int]] = {}
    for index, function in enumerate(functions):
        for caller in callers[id(function)]:
            called.setdefault(caller, []).append(index)
    order: list[FunctionProto] = []
    waits = [len(callers[id(function)]) for function in functions]
    ready = [index for index, count in enumerate(waits) if not count]
    while ready:
        order += [functions[index] for index in ready]
        following = []
        for caller in ready:
            for index in called.get(id(functions[caller]), ()):
                waits[index] -= 1
                if not waits[index]:
                    following.append(index)
        ready = sorted(following)
    return order


def _by_signature(facts: Facts, function: FunctionProto) -> list[list[Call]]:
    """Return the calls of a function, grouped by equal facts of their arguments."""
    groups: dict[Hashable, list[Call]] = {}
    for call in facts.calls.of(function):
        groups.setdefault(_call_key(facts, function, call), []).append(call)
    return list(groups.values())


def _call_key(facts: Facts, function: FunctionProto, call: Call) -> Hashable:
    """Return a key of a call: types and constants of its inputs, values of its attributes."""
    scope, node = call
    inputs = []
    for position, _ in enumerate(function.input):
        name = node.input[position] if position < len(node.input) else ""
        array = facts.constant(scope, name)
        inputs.append(
            (bool(name), facts.type(scope, name), None if array is None else _array_key(array))
        )
    defaults = {item.name: item for item in function.attribute_proto}
    values = []
    for name in (*function.attribute, *defaults):
        given = attributes.find(node, name) or defaults.get(name)
        value = None if given is None else facts.calls.resolve_attribute(scope, given)
        values.append(None if given is None else attributes.hashable(value))
    return tuple(inputs), tuple(values)


def _array_key(array: Array) -> Hashable:
    content = repr(array.tolist()) if array.dtype == object else array.tobytes()
    return array.dtype.str, array.shape, content


def calls_differ(facts: Facts, function: FunctionProto) -> bool:
    """Return whether calls of a function differ, so that copies of it may have more facts."""
    found = {id(function)}
    waiting = [function]
    while waiting:
        function = waiting.pop()
        if len(_by_signature(facts, function)) > 1:
            return True
        for scope, _ in facts.calls.of(function):
            if scope.function is not None and id(scope.function) not in found:
                found.add(id(scope.function))
                waiting.append(scope.function)
    return False


def _copy(function: FunctionProto, tree: Sequence[Scope], calls: list[Call]) -> FunctionCopy:
    copy = FunctionProto()
    copy.CopyFrom(function)
    scope, node = calls[0]
    where = f" in {scope.label}" if scope.label else ""
    label = f"{tree[0].label} as called by {scope.describe(node)}{where}"
    # Shortened, as it contains the labels of all calls that lead to this one.
    return FunctionCopy(copy, function_scopes(copy, shortened(label, LABEL), tree), calls)


def _relabel(tree: Sequence[Scope], label: str) -> None:
    before = tree[0].label
    for scope in tree:
        scope.label = label + scope.label[len(before) :]
