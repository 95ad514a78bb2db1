"""What is wrong with a model's own functions, and with the nodes that call them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from onnx import AttributeProto, FunctionProto, NodeProto

from onnxreduce_cli import schemas
from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.model.gate.text import first_no_text
from onnxreduce_cli.model.graph.attributes import of_call
from onnxreduce_cli.model.graph.domains import DEFAULT_DOMAINS, is_default
from onnxreduce_cli.model.graph.names import without_absent_last
from onnxreduce_cli.model.graph.scope import (
    FunctionKey,
    Scope,
    called_key,
    function_label,
    with_inner,
)
from onnxreduce_cli.text import listed, quoted


def by_key(scopes: Iterable[Scope]) -> dict[FunctionKey, Scope]:
    """Return the scopes of a model's functions, by domain, name and overload.

    Raises:
        InvalidModelError: two have one name, or one's names are not UTF-8.
    """
    found: dict[FunctionKey, Scope] = {}
    for scope in scopes:
        names, function = scope.function_key, scope.function
        if names is None:
            continue
        assert function is not None
        wrong = first_no_text(names)
        if wrong is None:
            wrong = first_no_text((*function.input, *function.output, *function.attribute))
        if wrong is not None:
            label = function_label(function)
            raise InvalidModelError(f"function {label}: the name {quoted(wrong)} is not UTF-8")
        if names in found:
            label = function_label(function)
            raise InvalidModelError(
                f"there are several functions {label}; mend the model: remove all but one of them"
            )
        found[names] = scope
    return found


def misfit(
    node: NodeProto, function: FunctionProto, functions: Mapping[FunctionKey, FunctionProto]
) -> str | None:
    """Return what is wrong with a call of a function; None if nothing is.

    Args:
        node: the call.
        function: what it calls.
        functions: all functions of the model, which that function may call.
    """
    label = function_label(function)
    for side in ("input", "output"):
        given, has = len(getattr(node, side)), len(getattr(function, side))
        if given > has:
            return f"it has {given} {side}s, and the function {label} has {has}"
    return _missed(node, function, functions)


def _missed(
    node: NodeProto, function: FunctionProto, functions: Mapping[FunctionKey, FunctionProto]
) -> str | None:
    """Return which inputs that a call leaves out are needed; None if none is."""
    waiting, seen = [(node, function)], set()
    while waiting:
        call, callee = waiting.pop()
        given = dict(zip(callee.input, call.input, strict=False))
        left_out = frozenset(name for name in callee.input if not given.get(name))
        if not left_out or (id(callee), left_out) in seen:
            continue
        seen.add((id(callee), left_out))
        opsets = {entry.domain: entry.version for entry in callee.opset_import}
        opset = next((opsets[domain] for domain in DEFAULT_DOMAINS if domain in opsets), None)
        for inner in with_inner(callee.node):
            if left_out.isdisjoint(inner.input):
                continue
            found = _without(inner, left_out)
            called = functions.get(called_key(inner))
            if called is not None:
                waiting.append((found, called))
            elif opset is not None and is_default(inner.domain):
                problem = schemas.invalid(found, opset)
                if problem is not None:
                    names = listed([quoted(name) for name in sorted(left_out)])
                    owner = f"{names} of the function {function_label(callee)}"
                    return f"it leaves out {owner}, whose {inner.op_type} is wrong then: {problem}"
    return None


def _without(node: NodeProto, names: Set[str]) -> NodeProto:
    """Return a copy of a node without some inputs."""
    made = NodeProto()
    made.CopyFrom(node)
    made.input[:] = without_absent_last("" if name in names else name for name in node.input)
    return made


class References:
    """Checks attributes of calls against the types of the references to them in the body."""

    def __init__(self) -> None:
        #: By a function's identity: attribute and type, with an operator whose node refers to it.
        self._types: dict[int, dict[tuple[str, int], str]] = {}

    def call_problem(self, node: NodeProto, function: FunctionProto) -> str | None:
        """Return what is wrong with the attributes of a call; None if nothing is."""
        given = of_call(node, function)
        if not given:
            return None
        for (name, wanted), op_type in self._of(function).items():
            attribute = given.get(name)
            if attribute is not None and attribute.type != wanted:
                return (
                    f"its attribute {quoted(name)} is of type {_type_name(attribute.type)}, and "
                    f"the function {function_label(function)} hands it on to a node of {op_type} "
                    f"as {_type_name(wanted)}"
                )
        return None

    def _of(self, function: FunctionProto) -> dict[tuple[str, int], str]:
        known = self._types.get(id(function))
        if known is None:
            known = self._types[id(function)] = {
                (attribute.ref_attr_name, attribute.type): quoted(node.op_type)
                for node in with_inner(function.node)
                for attribute in node.attribute
                if attribute.ref_attr_name
            }
        return known


def _type_name(kind: int) -> str:
    return AttributeProto.AttributeType.Name(kind)


def check_recursion(
    scopes: Iterable[Scope], functions: Mapping[FunctionKey, FunctionProto]
) -> None:
    """Refuse functions that call themselves.

    Raises:
        InvalidModelError: one calls itself, perhaps by way of others.
    """
    by_identity = {id(function): function for function in functions.values()}
    calls: dict[int, set[int]] = {}
    for scope in scopes:
        caller = scope.function
        if caller is None or id(caller) not in by_identity:
            continue
        for node in scope.nodes:
            callee = functions.get(called_key(node))
            if callee is not None:
                calls.setdefault(id(caller), set()).add(id(callee))
    # A function that calls none is in no cycle.
    calls = {key: {callee for callee in called if callee in calls} for key, called in calls.items()}
    # Functions that call none of the rest are removed, one by one; the rest contains a cycle.
    callers: dict[int, list[int]] = {key: [] for key in calls}
    for caller_key, callees in calls.items():
        for callee_key in callees:
            callers[callee_key].append(caller_key)
    left = {key: len(callees) for key, callees in calls.items()}
    ready = [key for key, count in left.items() if not count]
    while ready:
        for key in callers[ready.pop()]:
            left[key] -= 1
            if not left[key]:
                ready.append(key)
    circle = next((key for key, count in left.items() if count), None)
    if circle is not None:
        # Each of the rest calls another of them, so following the calls leads into a cycle.
        seen: set[int] = set()
        while circle not in seen:
            seen.add(circle)
            circle = next(key for key in calls[circle] if left[key])
        label = function_label(by_identity[circle])
        raise InvalidModelError(
            f"function {label} calls itself; mend the model: write a Loop there"
        )
