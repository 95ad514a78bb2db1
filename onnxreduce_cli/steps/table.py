"""Which step comes next: steps in code, then the audit of what needs none."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import NamedTuple

from onnx import NodeProto

from onnxreduce_cli import schemas, steps
from onnxreduce_cli.emit.context import Blocked, Context, Emitted
from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.model.domains import is_default
from onnxreduce_cli.model.values import dtype_name
from onnxreduce_cli.steps import audit, widening
from onnxreduce_cli.steps.reduction import function_bodies as bodies
from onnxreduce_cli.steps.registry import STEPS, Direction, Step

# Every module of the package registers its steps when it is imported.
for _module in pkgutil.walk_packages(steps.__path__, f"{steps.__name__}."):
    if _module.name != __name__:
        import_module(_module.name)


#: Operators that ONNX Runtime's optimiser puts into the default domain at any opset: its own there,
#: with the meaning that the domain's gave those of the same name later.
RUNTIME_OWN = frozenset({"LayerNormalization", "SimplifiedLayerNormalization"})


@dataclass(frozen=True)
class Leg:
    """The next boundary at which a node needs attention.

    Attributes:
        far: the opset on its far side.
        words: what happens there, for people.
        take: does it: emits through the context, or raises `Blocked`.
    """

    far: int
    words: str
    take: Callable[[Context], None]


def leg(op_type: str, opset: int, target: int) -> Leg | None:
    """The next boundary from `opset` to `target` that a node must not just pass; None if none."""
    since = schemas.versions(op_type)
    if op_type in RUNTIME_OWN and (not since or opset < since[0]):
        return _from_the_runtime(op_type, since[0]) if since and target >= since[0] else None
    if not since:
        return _block(target, "the default domain has no such operator", "mend the model")
    if opset < since[0]:
        return _block(
            target, f"the operator came with opset {since[0]} only", "raise the model's opset"
        )
    up = target > opset
    crossed = (
        [boundary for boundary in since if opset < boundary <= target]
        if up
        else [boundary for boundary in reversed(since) if target < boundary <= opset]
    )
    for boundary in crossed:
        near, far = (boundary - 1, boundary) if up else (boundary, boundary - 1)
        step = step_for(op_type, boundary, "up" if up else "down")
        narrows = far >= since[0] and _narrows(op_type, near, far)
        if step.apply is None and step.status == "unchanged" and not narrows:
            continue
        return Leg(far, step.words, _taker(step, near, far, narrows))
    return None


def _from_the_runtime(op_type: str, birth: int) -> Leg:
    """ONNX Runtime's own operator becomes the default domain's, which wants one dtype."""

    def take(context: Context) -> None:
        kinds = [context.kind(name) for name in context.node.input if name]
        if None in kinds or len(set(kinds)) > 1:
            raise Blocked(
                f"its inputs must have one dtype from opset {birth} on",
                "cast them to one, or export the model without ONNX Runtime's optimisations",
            )

    return Leg(birth, f"ONNX Runtime's own {op_type} is the default domain's now", take)


def step_for(op_type: str, boundary: int, direction: Direction) -> Step:
    """The step across one boundary: from code, or else what the audit says of it."""
    step = STEPS.get((op_type, boundary, direction))
    if step is not None:
        return step
    since = schemas.versions(op_type)
    if boundary == since[0]:
        words = f"{op_type} does not exist before opset {boundary}"
        return Step(op_type, boundary, direction, "impossible", words, None)
    change = audit.change(op_type, boundary)
    if change is None:
        words = f"{op_type} changed at opset {boundary}, and this onnxreduce does not know how"
        return Step(op_type, boundary, direction, "undeclared", words, None)
    if direction in change.unedited:
        return Step(op_type, boundary, direction, "unchanged", "stays as it is", None)
    what = change.what.rstrip(".")
    words = f"{op_type} changed at opset {boundary}, and no step makes the edit ({what})"
    return Step(op_type, boundary, direction, "impossible", words, None)


def _block(far: int, reason: str, advice: str) -> Leg:
    def take(_: Context) -> None:
        raise Blocked(reason, advice)

    return Leg(far, reason, take)


def _taker(step: Step, near: int, far: int, narrows: bool) -> Callable[[Context], None]:
    def take(context: Context) -> None:
        if step.apply is not None:
            step.apply(context)
        elif step.status != "unchanged":
            side = "later" if near > far else "earlier"
            raise Blocked(step.words, f"choose opset {near} or {side}")
        emitted = [Emitted(context.node, far)] if context.unchanged else list(context.emitted)
        for node, opset in emitted:
            if node.op_type != step.op_type or opset > far:
                _fit_types(context, node, opset, opset)
            elif narrows:
                _fit_types(context, node, near, far)

    return take


def _narrows(op_type: str, near: int, far: int) -> bool:
    """Whether the definition at `far` leaves out types that the one at `near` allows."""
    here, there = schemas.allowed_types(op_type, near), schemas.allowed_types(op_type, far)
    return any(not here[formal] <= there[formal] for formal in here.keys() & there.keys())


def _fit_types(context: Context, node: NodeProto, near: int, far: int) -> None:
    """Compute in a wider dtype where the far side lacks one and that changes no result.

    A node that a step emitted has no near side of its own: `near` is `far`, and what is not known
    passes.

    Raises:
        Blocked: a type is not allowed on the far side, or may not be, and no wider one does.
    """
    if not is_default(node.domain):
        return
    wide: dict[str, int] = {}
    demands = _demands(node.op_type, near, far)
    for names, side in zip((node.input[:], node.output[:]), demands, strict=True):
        for index, name in enumerate(names):
            demand = side[min(index, len(side) - 1)] if name and side else None
            kind = None if demand is None else context.kind(name)
            if demand is None or kind in demand.allowed or (kind is None and near == far):
                continue
            if kind is not None:
                wide[demand.variable] = _wider(context, node, name, demand, far)
            elif missing := (context.allowed_kinds(name) or demand.before) - demand.allowed:
                raise Blocked(
                    f"the type of {name!r} is not known, and may be {min(missing)}, which "
                    f"{node.op_type} does not take at opset {far}",
                    "state its type in the model's value_info",
                )
    if wide:
        widening.compute_wider(context.at(far), node, wide)
        context.words = f"computed in {', '.join(sorted(map(dtype_name, set(wide.values()))))}"


class _Demand(NamedTuple):
    """What a definition demands of a formal input or output.

    Attributes:
        formal: which it is: ``in0``, ``out1``.
        allowed: the types that it accepts.
        before: those that the definition on the near side accepts.
        variable: the type as the schema spells it, such as ``T``.
    """

    formal: str
    allowed: frozenset[str]
    before: frozenset[str]
    variable: str


@cache
def _demands(op_type: str, near: int, far: int) -> tuple[tuple[_Demand | None, ...], ...]:
    """What `far` demands of each formal input, and of each output; None where all of `near` passes.

    Where `near` is `far` nothing passes unseen.
    """
    here, there = schemas.allowed_types(op_type, near), schemas.allowed_types(op_type, far)
    found = schemas.schema(op_type, far)
    sides = []
    for side, formals in (("in", found.inputs), ("out", found.outputs)):
        demands: list[_Demand | None] = []
        for index, formal in enumerate(formals):
            key = f"{side}{index}"
            before = here.get(key, frozenset())
            passes = near != far and before <= there[key]
            demands.append(None if passes else _Demand(key, there[key], before, formal.type_str))
        sides.append(tuple(demands))
    return tuple(sides)


def _wider(context: Context, node: NodeProto, name: str, demand: _Demand, opset: int) -> int:
    """The wider dtype in which a node can compute at an opset that does not take a value's type.

    Raises:
        Blocked: there is none.
    """
    elem_type, found = context.elem_type(name), None
    if elem_type is not None:
        found = widening.wider(node.op_type, elem_type, demand.allowed, opset)
    if found is None:
        raise _not_taken(context, node, demand.formal, name, opset)
    return found


def _not_taken(context: Context, node: NodeProto, formal: str, name: str, opset: int) -> Blocked:
    """The blocker for a value of a type that an operator does not take, and nothing helps it to.

    Args:
        context: where the node is, or is emitted.
        node: the node.
        formal: which of its inputs or outputs the value is.
        name: the value, of known type.
        opset: the opset at which it is not taken.
    """
    op_type, kind = node.op_type, context.kind(name) or ""
    given = context.producer(node.output[0])
    is_own = given is not None and given.op_type == op_type
    later = (version for version in schemas.versions(op_type) if version > opset)
    taking = (
        version
        for version in later
        if kind in schemas.allowed_types(op_type, version).get(formal, ())
    )
    since = next(taking, None)
    advice = "choose an opset that does" if since is None else f"choose opset {since} or later"
    if not is_own and since is not None:
        return Blocked(
            f"what takes its place needs {op_type} of {kind}, which came with opset {since}", advice
        )
    if kind.startswith("tensor"):
        advice += f", or cast {name!r}"
    first = schemas.came_with(kind)
    if first > opset:
        reason = f"it has a {kind}, which came with opset {first}: no operator before knows it"
    else:
        reason = (
            f"{op_type} does not take {kind} at opset {opset}, nor a dtype in which the results "
            "are the same"
        )
    return Blocked(reason, advice)


def body(op_type: str) -> Callable[[Context], str]:
    """What replaces an operator by its function body; it returns what it did, in words.

    Raises:
        UsageError: the operator has none.
    """
    found = bodies.BODIES.get(op_type)
    if found is None:
        known = ", ".join(sorted(bodies.BODIES))
        raise UsageError(f"{op_type} has no function body here; there is one for {known}")
    return found
