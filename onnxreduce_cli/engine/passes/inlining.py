"""Inlining of blocked functions: their bodies in the place of the nodes that call them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import FunctionProto, ModelProto

from onnxreduce_cli.engine.conversion_request import ConversionInput
from onnxreduce_cli.engine.plan import SitePlan
from onnxreduce_cli.errors import ConversionError
from onnxreduce_cli.model.calls import Calls, sizes_of_calls
from onnxreduce_cli.model.domains import default_opset
from onnxreduce_cli.model.inlining import can_inline, inline
from onnxreduce_cli.model.scope import FunctionKey, function_key, function_label, scopes
from onnxreduce_cli.model.skeleton import without_weights
from onnxreduce_cli.model.specialisation import callers_first
from onnxreduce_cli.text import count

#: Nodes that inlining may make; where each function calls the next twice, there is no end of them.
MOST_INLINED_NODES = 50_000

#: Functions that were inlined, each with the nodes that called it.
InlinedCalls = dict[FunctionKey, list[str]]


def inline_functions(
    given: ConversionInput, plan: SitePlan
) -> Iterator[tuple[ModelProto, list[FunctionProto], InlinedCalls]]:
    """Put the bodies of blocked functions in the place of the nodes that call them.

    Requires: functions whose nodes mean the same by the imports of the model, and that do not
    become more than `MOST_INLINED_NODES`; others stay.

    Guarantees: a copy computes what the model does, at the same opset, and has the functions no
    longer; what called them says what they said.

    What calls a blocked function is a graph in the end: functions on the way go with it, and those
    that no graph leads to just go. Where that does not help these alone can be tried.

    Args:
        given: the model as it is.
        plan: one of it, maybe with functions specialised.

    Yields:
        a copy, without weights, what is gone from it, and what called that: the best first.
    """
    blocked = plan.blocked_functions
    if not blocked:
        return
    functions = callers_first(given.model, blocked, given.facts)
    reached: set[int] = set()
    for function in functions:
        callers = [scope.function for scope, _ in given.facts.calls.of(function)]
        if any(caller is None or id(caller) in reached for caller in callers):
            reached.add(id(function))
    unreached = [function for function in functions if id(function) not in reached]
    for chosen in (functions, unreached):
        if chosen and all(can_inline(given.model, function) for function in chosen):
            if _nodes_inlined(chosen, given.facts.calls) > MOST_INLINED_NODES:
                continue
            copy = without_weights(given.model)
            yield copy, chosen, inline(copy, [function_key(function) for function in chosen])


def unblocks(plan: SitePlan, inlined: SitePlan, gone: Sequence[FunctionProto]) -> bool:
    """Return whether inlining unblocks all nodes of the functions that it removes.

    Args:
        plan: that of the model with the functions.
        inlined: that of the copy without.
        gone: the functions.
    """
    identities = {id(function) for function in gone}
    staying = [
        site for site in plan.blocked if id(plan.input.own_function(site.scope)) not in identities
    ]
    return len(inlined.blocked) <= len(staying)


def inline_all(model: ModelProto, calls: Calls) -> dict[str, list[str]]:
    """Inline all functions of a model, in place.

    Returns:
        for each of them, as people call it, the names of the nodes that called it.

    Raises:
        ConversionError: one is of another opset than the model, or there would be too many nodes.
    """
    functions = list(model.functions)
    for function in functions:
        if not can_inline(model, function):
            raise ConversionError(
                f"function {function_label(function)} is of opset {default_opset(function)}, the "
                f"model of {default_opset(model)}, so it cannot be inlined: convert the model "
                "first, and inline what comes out of it"
            )
    most = max(MOST_INLINED_NODES, 10 * sum(len(scope.nodes) for scope in scopes(model)))
    if _nodes_inlined(functions, calls) > most:
        raise ConversionError(
            f"its functions would become more than {count(most, 'node')}; leave --inline-functions "
            "out"
        )
    labels = {function_key(item): function_label(item) for item in functions}
    found = inline(model, list(labels))
    return {labels[key]: names for key, names in found.items()}


def _nodes_inlined(functions: Sequence[FunctionProto], calls: Calls) -> int:
    """How many nodes the calls of functions in a model's graphs become by inlining."""
    written = sizes_of_calls({function_key(function): function for function in functions})
    return sum(
        written[function_key(function)]
        for function in functions
        for scope, _ in calls.of(function)
        if scope.function is None
    )
