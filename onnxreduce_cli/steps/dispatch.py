"""The step that a node takes next: one in code, or else the audit's answer for the boundary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import NamedTuple

import onnx

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context, EmittedNode
from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.model.graph.domains import MICROSOFT, domain_of, operator_name
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS
from onnxreduce_cli.steps import audit
from onnxreduce_cli.steps.loading import load_all, load_alternatives, load_step
from onnxreduce_cli.steps.registry import ALTERNATIVES, STEPS, Alternative, Direction, Step
from onnxreduce_cli.steps.type_constraints import fit_types, types_left_out
from onnxreduce_cli.text import did_you_mean, shortened

#: The opset that function bodies are written in; steps take them to the target from there.
BODY_OPSET = 18

#: What is written in place of a node for which nothing of its own is.
AS_BEFORE = "written as at an older opset"

#: Operators that ONNX Runtime's optimiser puts into the default domain at any opset: its own there,
#: with the meaning that the domain's gave those of the same name later.
RUNTIME_OPERATORS = frozenset({"LayerNormalization", "SimplifiedLayerNormalization"})


class NextStep(NamedTuple):
    """The step across the next boundary that a node cannot cross unedited.

    Attributes:
        opset: the opset on the other side of the boundary.
        take: the function that emits the replacement through the context, or raises `Blocked`.
    """

    opset: int
    take: Callable[[Context], None]


def next_step(
    op_type: str,
    opset: int,
    target: int,
    domain: str = "",
    *,
    may_be: Callable[[str], bool] | None = None,
) -> NextStep | None:
    """Return the step across the next boundary at which a node may change.

    Args:
        op_type: the operator.
        opset: the opset of its domain that the node is read by.
        target: the opset of its domain that the conversion leads to.
        domain: its domain: the default one, or ai.onnx.ml.
        may_be: whether a value of a node may have a type, as schemas spell it; None where all may.

    Returns:
        None if the node is valid at `target` as it is, and means the same.
    """
    since = schemas.versions(op_type, domain)
    if domain and not since:
        return None  # Not one of onnx: left as it is.
    if is_of_runtime(op_type, opset):
        return _from_runtime_operator(op_type, since[0]) if since and target >= since[0] else None
    removed = None if since and opset >= since[0] else _replace_removed(op_type)
    if removed is not None:
        return removed
    if not since:
        return _blocking_step(
            target,
            f"onnx {onnx.__version__}, which is installed, has no such operator in the default "
            "domain",
            "if it came later: pip install -U onnx; else mend the model: set its domain",
        )
    if opset < since[0]:
        reason = f"{op_type} was introduced with opset {since[0]}"
        return _blocking_step(target, reason, "raise the model's opset")
    up = target > opset
    crossed = (
        [boundary for boundary in since if opset < boundary <= target]
        if up
        else [boundary for boundary in reversed(since) if target < boundary <= opset]
    )
    for boundary in crossed:
        before, after = (boundary - 1, boundary) if up else (boundary, boundary - 1)
        step = step_for(op_type, boundary, "up" if up else "down")
        # Steps of ai.onnx.ml look at the types themselves.
        exists = not domain and after >= since[0]
        missing = types_left_out(op_type, before, after) if exists else ()
        narrows = any(may_be is None or may_be(kind) for kind in missing)
        if step.apply is None and step.status == "unchanged" and not narrows:
            continue
        return NextStep(after, _application(step, before, after, narrows))
    return None


def is_of_runtime(op_type: str, opset: int) -> bool:
    """Return whether a node of the default domain is of an operator that ONNX Runtime has there."""
    since = schemas.versions(op_type)
    return op_type in RUNTIME_OPERATORS and (not since or opset < since[0])


def _from_runtime_operator(op_type: str, introduced: int) -> NextStep:
    """Return the step from ONNX Runtime's own operator to the default domain's, of one dtype."""
    return NextStep(introduced, partial(_require_one_dtype, introduced))


def _require_one_dtype(introduced: int, context: Context) -> None:
    types = [context.kind(name) for name in context.node.input if name]
    if None in types or len(set(types)) > 1:
        raise Blocked(
            f"its inputs must have one dtype from opset {introduced} on",
            "cast them to one, or export the model without ONNX Runtime's optimisations",
        )


def _replace_removed(op_type: str) -> NextStep | None:
    """Return the step that replaces an experimental operator of old; None for other operators."""
    from onnxreduce_cli.steps.removed import OPSET, REMOVED

    replace = REMOVED.get(op_type)
    return replace and NextStep(OPSET, lambda context: replace(context.at(OPSET)))


def step_for(op_type: str, boundary: int, direction: Direction) -> Step:
    """Return the step across one boundary: the one in code, or else by the audit."""
    load_step(op_type, boundary, direction)
    key = (op_type, boundary, direction)
    step = STEPS.get(key) or _step_from_audit(op_type, boundary, direction)
    if step.apply is None and step.status != "unchanged" and key not in STEPS:
        # A step that is new is not in the index yet.
        load_all()
        return STEPS.get(key, step)
    return step


def _step_from_audit(op_type: str, boundary: int, direction: Direction) -> Step:
    """Return the step across a boundary without code, by what the audit says of it."""
    since = schemas.versions(op_type, domain_of(op_type))
    if boundary == since[0]:
        description = f"{op_type} does not exist before opset {boundary}"
        return Step(op_type, boundary, direction, "impossible", description, None)
    change = audit.definition_change(op_type, boundary)
    if change is None:
        description = (
            f"{op_type} changed at opset {boundary}, and this onnxreduce does not know how"
        )
        return Step(op_type, boundary, direction, "undeclared", description, None)
    if direction in change.unedited:
        return Step(op_type, boundary, direction, "unchanged", "stays as it is", None)
    what = change.what.rstrip(".")
    description = f"{op_type} changed at opset {boundary}, and no step makes the edit ({what})"
    return Step(op_type, boundary, direction, "impossible", description, None)


def _blocking_step(opset: int, reason: str, advice: str) -> NextStep:
    def take(_: Context) -> None:
        raise Blocked(reason, advice)

    return NextStep(opset, take)


def _application(step: Step, before: int, after: int, narrows: bool) -> Callable[[Context], None]:
    """Return a function that takes a step and then fits the types of the resulting nodes.

    Args:
        step: the step.
        before: the opset that it leads from.
        after: the opset that it leads to.
        narrows: whether the operator's definition at `after` allows fewer types.
    """

    def take(context: Context) -> None:
        if step.apply is not None:
            step.apply(context)
        elif step.status != "unchanged":
            side = "later" if before > after else "earlier"
            raise Blocked(step.description, f"choose opset {before} or {side}")
        emitted = [EmittedNode(context.node, after)] if context.unchanged else list(context.emitted)
        for node, opset in emitted:
            if node.op_type != step.op_type or opset > after:
                fit_types(context, node, opset, opset)
            elif narrows:
                fit_types(context, node, before, after)

    return take


def body_writer(op_type: str) -> Callable[[Context], str]:
    """Return a function that replaces an operator by others and returns a description of that.

    The others are its function body, an alternative to it at any opset, or its replacement below
    the last boundary at which it changes, which may have a node of the same operator.

    Raises:
        UsageError: the operator has neither.
    """
    from onnxreduce_cli.steps.reduction.function_bodies import BODIES

    if op_type == MICROSOFT:
        return _write_without_domain
    replace_by_body = BODIES.get(op_type)
    if replace_by_body is not None:
        return replace_by_body
    if op_type not in expandable_operators():
        exists = op_type in schemas.operators()
        hint = "" if exists else did_you_mean(op_type, expandable_operators())
        raise UsageError(
            f"{shortened(op_type)} cannot be written in other operators{hint or ';'} "
            "onnxreduce ops marks those that can"
        )
    load_alternatives(op_type)
    for item in ALTERNATIVES.get(op_type, ()):
        if "any" in item.forms and not item.last:
            return partial(_write_otherwise, item)
    return partial(_write_as_before, op_type)


def _write_without_domain(context: Context) -> str:
    """Replace a node of com.microsoft by operators of the default domain."""
    name = operator_name(context.node)
    if name not in expandable_operators():
        raise Blocked(
            f"nothing is known to compute what {name} does in the default domain",
            "export the model without ONNX Runtime's optimisations",
        )
    return body_writer(name)(context)


@cache
def expandable_operators() -> tuple[str, ...]:
    """Return the operators that can be replaced by others: see `body_writer`."""
    from onnxreduce_cli.steps.reduction.function_bodies import BODIES

    load_all()
    came = {
        op_type
        for (op_type, boundary, direction), step in STEPS.items()
        if direction == "down" and step.apply and schemas.versions(op_type)[:1] == (boundary,)
    }
    of_runtime = {
        op_type
        for op_type, found in ALTERNATIVES.items()
        if ("." in op_type or op_type in RUNTIME_OPERATORS)
        and any("any" in item.forms for item in found)
    }
    return tuple(sorted(came | BODIES.keys() | of_runtime))


def alternatives(op_type: str, form: str) -> Iterator[Alternative]:
    """Yield the alternatives to a node of an operator in a form, in the order to try them.

    First come those that are registered for the form, then the node as it was written before its
    operator last changed or was introduced, then the operator's function body, then those that are
    registered as the last.
    """
    from onnxreduce_cli.steps.reduction.function_bodies import BODIES

    load_alternatives(op_type)
    registered = [item for item in ALTERNATIVES.get(op_type, ()) if form in item.forms]

    def before(context: Context) -> None:
        _write_as_before(op_type, context)

    def written_out(context: Context) -> None:
        BODIES[op_type](context.at(BODY_OPSET))

    yield from (item for item in registered if not item.last)
    if op_type not in GRAPH_OPERATORS:  # Their subgraphs are of the target's opset.
        yield Alternative(frozenset({form}), AS_BEFORE, before)
    if op_type in BODIES:
        yield Alternative(frozenset({form}), "written in other operators", written_out)
    yield from (item for item in registered if item.last)
    # A new alternative is not in the index yet.
    load_all()
    for item in ALTERNATIVES.get(op_type, ()):
        if form in item.forms and item not in registered:
            yield item


def _write_otherwise(alternative: Alternative, context: Context) -> str:
    """Replace a node by an alternative at its own opset; return a description."""
    alternative.apply(context.at(context.source_opset))
    return context.description


def _write_as_before(op_type: str, context: Context) -> str:
    """Replace a node as the step below its operator's last boundary does; return a description.

    ONNX Runtime's own operator is read as the default domain's of the same name.
    """
    since, read_at = schemas.versions(op_type), context.source_opset
    if since and is_of_runtime(op_type, read_at):
        read_at = since[0]
        _require_one_dtype(read_at, context)
    for boundary in reversed(since):
        if not 1 < boundary <= read_at:
            continue
        step = step_for(op_type, boundary, "down")
        if step.apply is not None:
            step.apply(context.at(boundary - 1))
            if not context.unchanged:
                return context.description
    return ""
