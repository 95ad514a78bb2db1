"""A model's own functions: whether each name means one, and none calls itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onnx import FunctionProto, ModelProto, NodeProto

from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.model.calls import FunctionKey
from onnxreduce_cli.model.gate.text import first_no_text
from onnxreduce_cli.model.scope import Scope, function_label
from onnxreduce_cli.text import quoted


def by_key(model: ModelProto) -> dict[FunctionKey, FunctionProto]:
    """The functions that nodes can name.

    Raises:
        InvalidModelError: two have one name, or one's names are not UTF-8.
    """
    found: dict[FunctionKey, FunctionProto] = {}
    for function in model.functions:
        label = function_label(function)
        names = (function.domain, function.name, function.overload)
        wrong = first_no_text((*names, *function.input, *function.output, *function.attribute))
        if wrong is not None:
            raise InvalidModelError(f"function {label}: the name {quoted(wrong)} is not UTF-8")
        if names in found:
            raise InvalidModelError(f"there are several functions {label}; mend the model")
        found[names] = function
    return found


def misfit(node: NodeProto, function: FunctionProto) -> str | None:
    """Return what is wrong with a call of a function; None if nothing is."""
    label = function_label(function)
    for side in ("input", "output"):
        given, has = len(getattr(node, side)), len(getattr(function, side))
        if given > has:
            return f"it has {given} {side}s, and the function {label} has {has}"
    return None


def check_recursion(
    scopes: Iterable[Scope], functions: Mapping[FunctionKey, FunctionProto]
) -> None:
    """Refuse functions that call themselves.

    Raises:
        InvalidModelError: one calls itself, perhaps by way of others.
    """
    calls: dict[int, set[int]] = {id(function): set() for function in functions.values()}
    by_identity = {id(function): function for function in functions.values()}
    for scope in scopes:
        caller = scope.function
        for node in scope.nodes if caller is not None and id(caller) in calls else ():
            callee = functions.get((node.domain, node.op_type, node.overload))
            if callee is not None:
                calls[id(caller)].add(id(callee))
    # Those that call nothing that is left are taken away; what remains goes round in circles.
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
        # Of those that are left one calls another; the first on the way round calls itself.
        seen: set[int] = set()
        while circle not in seen:
            seen.add(circle)
            circle = next(key for key in calls[circle] if left[key])
        label = function_label(by_identity[circle])
        raise InvalidModelError(f"function {label} calls itself; mend the model")
