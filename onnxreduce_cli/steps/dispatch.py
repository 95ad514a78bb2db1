"""The step that a node takes next: one in code, or else what the audit says of the boundary."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

import onnx

from onnxreduce_cli import schemas, steps
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context, Emitted
from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.steps import audit
from onnxreduce_cli.steps.reduction import function_bodies as bodies
from onnxreduce_cli.steps.registry import STEPS, Direction, Step
from onnxreduce_cli.steps.removed import OPSET, REMOVED
from onnxreduce_cli.steps.type_constraints import fit_types, leaves_types_out

# Every module of the package registers its steps when it is imported.
for _module in pkgutil.walk_packages(steps.__path__, f"{steps.__name__}."):
    if _module.name != __name__:
        import_module(_module.name)


#: Operators that ONNX Runtime's optimiser puts into the default domain at any opset: its own there,
#: with the meaning that the domain's gave those of the same name later.
RUNTIME_OWN = frozenset({"LayerNormalization", "SimplifiedLayerNormalization"})


@dataclass(frozen=True)
class NextStep:
    """The next boundary that a node cannot cross unedited, and the step taken there.

    Attributes:
        opset: the opset on the other side of the boundary.
        description: what happens there, for people.
        take: does it: emits through the context, or raises `Blocked`.
    """

    opset: int
    description: str
    take: Callable[[Context], None]


def next_step(op_type: str, opset: int, target: int) -> NextStep | None:
    """Return the step across the next boundary that a node cannot pass unseen.

    Args:
        op_type: the operator, of the default domain.
        opset: the opset that the node is read by.
        target: the opset that the conversion leads to.

    Returns:
        None if the node is valid at `target` as it is, and means the same.
    """
    since = schemas.versions(op_type)
    if op_type in RUNTIME_OWN and (not since or opset < since[0]):
        return _from_the_runtime(op_type, since[0]) if since and target >= since[0] else None
    if op_type in REMOVED and (not since or opset < since[0]):
        return _removed(op_type)
    if not since:
        return _blocking(
            target,
            f"onnx {onnx.__version__}, which is installed, has no such operator in the default "
            "domain",
            "if it came later: pip install -U onnx; else mend the model",
        )
    if opset < since[0]:
        reason = f"the operator came with opset {since[0]} only"
        return _blocking(target, reason, "raise the model's opset")
    up = target > opset
    crossed = (
        [boundary for boundary in since if opset < boundary <= target]
        if up
        else [boundary for boundary in reversed(since) if target < boundary <= opset]
    )
    for boundary in crossed:
        before, after = (boundary - 1, boundary) if up else (boundary, boundary - 1)
        step = step_for(op_type, boundary, "up" if up else "down")
        narrows = after >= since[0] and leaves_types_out(op_type, before, after)
        if step.apply is None and step.status == "unchanged" and not narrows:
            continue
        return NextStep(after, step.description, _application(step, before, after, narrows))
    return None


def _from_the_runtime(op_type: str, introduced: int) -> NextStep:
    """ONNX Runtime's own operator becomes the default domain's, which wants one dtype."""

    def take(context: Context) -> None:
        types = [context.kind(name) for name in context.node.input if name]
        if None in types or len(set(types)) > 1:
            raise Blocked(
                f"its inputs must have one dtype from opset {introduced} on",
                "cast them to one, or export the model without ONNX Runtime's optimisations",
            )

    description = f"ONNX Runtime's own {op_type} is the default domain's now"
    return NextStep(introduced, description, take)


def _removed(op_type: str) -> NextStep:
    """An experimental operator that ONNX removed becomes others, where some stand for it."""
    replace = REMOVED[op_type]
    return NextStep(
        OPSET,
        f"{op_type}, which ONNX removed, written in operators of opset {OPSET}",
        lambda context: replace(context.at(OPSET)),
    )


def step_for(op_type: str, boundary: int, direction: Direction) -> Step:
    """Return the step across one boundary: from code, or else what the audit says of it."""
    step = STEPS.get((op_type, boundary, direction))
    if step is not None:
        return step
    since = schemas.versions(op_type)
    if boundary == since[0]:
        description = f"{op_type} does not exist before opset {boundary}"
        return Step(op_type, boundary, direction, "impossible", description, None)
    change = audit.change(op_type, boundary)
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


def _blocking(opset: int, reason: str, advice: str) -> NextStep:
    def take(_: Context) -> None:
        raise Blocked(reason, advice)

    return NextStep(opset, reason, take)


def _application(step: Step, before: int, after: int, narrows: bool) -> Callable[[Context], None]:
    """Return what takes a step, and then sees to the types of what the step left or emitted.

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
        emitted = [Emitted(context.node, after)] if context.unchanged else list(context.emitted)
        for node, opset in emitted:
            if node.op_type != step.op_type or opset > after:
                fit_types(context, node, opset, opset)
            elif narrows:
                fit_types(context, node, before, after)

    return take


def body(op_type: str) -> Callable[[Context], str]:
    """Return what replaces an operator by its function body, and then says what it did.

    Raises:
        UsageError: the operator has none.
    """
    replace_by_body = bodies.BODIES.get(op_type)
    if replace_by_body is None:
        known = ", ".join(sorted(bodies.BODIES))
        raise UsageError(f"{op_type} has no function body here; there is one for {known}")
    return replace_by_body
