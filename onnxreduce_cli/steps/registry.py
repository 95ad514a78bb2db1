"""The registry of steps, and the decorators (`up`, `down`, `introduced`) that fill it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Literal, NamedTuple

from onnx import numpy_helper

from onnxreduce_cli.emit.context import Context

Direction = Literal["up", "down"]
Status = Literal["step", "unchanged", "conditional", "impossible", "undeclared"]

#: A step edits nothing: it emits replacing nodes through its context, or none if the node
#: means the same on the other side. It raises `Blocked` where there is no way across.
StepFunction = Callable[[Context], None]


class Step(NamedTuple):
    """One directed step across a boundary.

    Attributes:
        op_type: the operator, of the default domain.
        boundary: the opset at which its definition changed. Up leads from `boundary - 1` to
            `boundary`, down back.
        direction: ``up`` or ``down``.
        status: ``step``, ``unchanged``, ``conditional`` (may block), ``impossible``, or
            ``undeclared`` where the audit doesn't say what changed.
        description: what it does, or why it is impossible, as users read it.
        blocks: when a conditional step blocks, as it follows "blocks where"; else empty.
        apply: the function, None where the node stays as it is.
    """

    op_type: str
    boundary: int
    direction: Direction
    status: Status
    description: str
    apply: StepFunction | None
    blocks: str = ""

    @property
    def full_description(self) -> str:
        """Return the description of the step, with the condition under which it blocks."""
        condition = f"; blocks where {self.blocks}" if self.blocks else ""
        return self.description + condition

    @property
    def place(self) -> str:
        """Return where the step is, as ``file: function``; empty for a step without code."""
        if self.apply is None:
            return ""
        return f"{self.apply.__module__.replace('.', '/')}.py: {self.apply.__name__}"


STEPS: dict[tuple[str, int, Direction], Step] = {}


def up(
    op_types: str | Iterable[str], boundary: int, description: str, *, blocks: str = ""
) -> Callable[[StepFunction], StepFunction]:
    """Register the step from the opset below `boundary` up to it; see `_registrar`."""
    return _registrar(op_types, boundary, "up", description, blocks)


def down(
    op_types: str | Iterable[str], boundary: int, description: str, *, blocks: str = ""
) -> Callable[[StepFunction], StepFunction]:
    """Register the step from `boundary` to the opset below it; see `_registrar`."""
    return _registrar(op_types, boundary, "down", description, blocks)


def impossible(op_type: str, boundary: int, direction: Direction, reason: str) -> None:
    """Register that there is no way across a boundary; `reason` completes "node X:"."""
    key = (op_type, boundary, direction)
    if key in STEPS:
        raise ValueError(f"two steps for {key}")
    STEPS[key] = Step(op_type, boundary, direction, "impossible", reason, None)


def _registrar(
    op_types: str | Iterable[str],
    boundary: int,
    direction: Direction,
    description: str,
    blocks: str,
) -> Callable[[StepFunction], StepFunction]:
    """Return a decorator that registers one function for one or several operators.

    Args:
        op_types: the operators.
        boundary: the opset at which their definitions changed.
        direction: ``up`` or ``down``.
        description: what the step does, as users read it.
        blocks: when it blocks; empty where it never does.
    """

    def register(function: StepFunction) -> StepFunction:
        for op_type in [op_types] if isinstance(op_types, str) else op_types:
            key = (op_type, boundary, direction)
            if key in STEPS:
                raise ValueError(f"two steps for {key}")
            STEPS[key] = Step(
                op_type,
                boundary,
                direction,
                "conditional" if blocks else "step",
                description,
                function,
                blocks,
            )
        return function

    return register


class Alternative(NamedTuple):
    """Another way to write a node that means the same at the same opset.

    Attributes:
        forms: the forms of the node that it avoids, names of `targets.forms`.
        description: what it writes, as users read it.
        apply: the function.
        last: whether it is taken only where the operators of older opsets do not help either.
    """

    forms: frozenset[str]
    description: str
    apply: StepFunction
    last: bool = False


#: By operator, in the order in which they are tried.
ALTERNATIVES: dict[str, list[Alternative]] = {}


def instead(
    op_types: str | Iterable[str], forms: Iterable[str], description: str, *, last: bool = False
) -> Callable[[StepFunction], StepFunction]:
    """Register an alternative to nodes of a form that some runtime gets wrong.

    Args:
        op_types: the operators.
        forms: the forms of the node, names of `targets.forms`.
        description: what it writes, as users read it.
        last: whether it is taken only where the operators of older opsets do not help either.
    """

    def register(function: StepFunction) -> StepFunction:
        found = Alternative(frozenset(forms), description, function, last)
        for op_type in [op_types] if isinstance(op_types, str) else op_types:
            ALTERNATIVES.setdefault(op_type, []).append(found)
        return function

    return register


def introduced(
    op_types: str | Iterable[str], opset: int, description: str, *, blocks: str = ""
) -> Callable[[StepFunction], StepFunction]:
    """Register the step from the opset that operators were introduced with to the one below it.

    A node whose result is known at conversion becomes a Constant. Otherwise the step replaces it.

    Args:
        op_types: the operators.
        opset: the opset that they were introduced with.
        description: what the step does, as users read it.
        blocks: when it blocks; empty where it never does.
    """

    def register(function: StepFunction) -> StepFunction:
        @wraps(function)
        def apply(context: Context) -> None:
            if not replaced_by_constant(context):
                function(context)

        return down(op_types, opset, description, blocks=blocks)(apply)

    return register


def replaced_by_constant(context: Context) -> bool:
    """Replace the node by a Constant if its result is known at conversion; return whether it is."""
    outputs = [name for name in context.node.output if name]
    value = context.constant(outputs[0]) if len(outputs) == 1 else None
    if value is None:
        return False
    context.description = "its result is known at conversion"
    context = context.at(max(context.op.opset, 13))  # From 13 on a Constant takes any dtype.
    context.replace("Constant", [], keep=(), value=numpy_helper.from_array(value))
    return True
