"""Inlining of functions: their bodies replace the nodes that call them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import FunctionProto, ModelProto

from onnxreduce_cli.engine.conversion_request import ConversionInput
from onnxreduce_cli.engine.plan import SitePlan
from onnxreduce_cli.errors import ConversionError
from onnxreduce_cli.model.graph.calls import Calls, sizes_of_calls
from onnxreduce_cli.model.graph.domains import default_opset
from onnxreduce_cli.model.graph.inlining import can_inline, inline_calls
from onnxreduce_cli.model.graph.scope import FunctionKey, function_key, function_label, scopes
from onnxreduce_cli.model.types.skeleton import without_weights
from onnxreduce_cli.model.types.specialisation import callers_first
from onnxreduce_cli.text import count

#: How many nodes inlining may make: they double if each function calls the next twice.
MOST_INLINED_NODES = 50_000

#: The functions that were inlined, each with the nodes that called it.
InlinedCalls = dict[FunctionKey, list[str]]


def inline_functions(
    given: ConversionInput, plan: SitePlan
) -> Iterator[tuple[ModelProto, list[FunctionProto], InlinedCalls]]:
    """Inline the blocked functions of a model in copies of it.

    Requires: functions that import the same opsets as the model, and that do not become more than
    `MOST_INLINED_NODES`; others stay.

    Guarantees: a copy computes what the model does, at the same opset, without the functions.

    Functions that call a blocked one are inlined with it, up to a graph; functions that no graph
    calls are removed. If that does not help, removing the latter alone can be tried.

    Args:
        given: the model as it is.
        plan: a plan of it, possibly with specialised functions.

    Yields:
        a copy without weights, the functions removed from it, and their callers: the best first.
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
            yield copy, chosen, inline_calls(copy, [function_key(function) for function in chosen])


def unblocks(plan: SitePlan, inlined: SitePlan, gone: Sequence[FunctionProto]) -> bool:
    """Return whether inlining unblocks all nodes of the functions that it removes.

    Args:
        plan: the plan of the model with the functions.
        inlined: the plan of the copy without them.
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
        the names of the nodes that called each function, by its label.

    Raises:
        ConversionError: a function is of another opset than the model, or there would be too many
            nodes.
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
    found = inline_calls(model, list(labels))
    return {labels[key]: names for key, names in found.items()}


def _nodes_inlined(functions: Sequence[FunctionProto], calls: Calls) -> int:
    """Return how many nodes the calls of functions in a model's graphs become by inlining."""
    written = sizes_of_calls({function_key(function): function for function in functions})
    return sum(
        written[function_key(function)]
        for function in functions
        for scope, _ in calls.of(function)
        if scope.function is None
    )
