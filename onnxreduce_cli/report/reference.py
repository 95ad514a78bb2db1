"""What is known of operators and runtimes, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnxreduce_cli import schemas
from onnxreduce_cli.model.domains import default_opset
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.report.operators import boundaries, change_at, own_operators
from onnxreduce_cli.report.targets import span
from onnxreduce_cli.steps.registry import Direction, Status, Step
from onnxreduce_cli.targets.reading import read_runtime, runtime_names
from onnxreduce_cli.targets.requirement import Target
from onnxreduce_cli.targets.rows import Effect, Fact, Quirk, Runtime, Source, VersionFacts


@dataclass(frozen=True, slots=True)
class StepAcross:
    """One way across a boundary.

    Attributes:
        direction: ``up`` to the boundary, or ``down`` from it.
        status: ``unchanged``, ``step``, ``conditional``, ``impossible`` or ``undeclared``.
        description: what it does, and where it blocks.
        place: the file and the function that does it; empty where none does.
    """

    direction: Direction
    status: Status
    description: str
    place: str


@dataclass(frozen=True, slots=True)
class Boundary:
    """An opset at which an operator's definition changed.

    Attributes:
        opset: the opset.
        what: what changed.
        steps: the ways across.
    """

    opset: int
    what: str
    steps: tuple[StepAcross, ...]


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of the default domain.

    Attributes:
        name: its name.
        versions: the opsets at which it came and changed.
        boundaries: the same with what changed, and the steps.
    """

    name: str
    versions: tuple[int, ...]
    boundaries: tuple[Boundary, ...]


@dataclass(frozen=True, slots=True)
class Operators:
    """What `ops` shows.

    Attributes:
        operators: the operators, by name; none for those of a model.
        model: the model whose operators were asked for; null for none.
        opset: its opset; null where it imports no default domain.
        used: its operators, those of other domains as ``domain.Name``.
    """

    operators: tuple[Operator, ...]
    model: str | None = None
    opset: int | None = None
    used: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Versions:
    """What is known of some versions of a runtime: one series, and those up to the next.

    Attributes:
        version: the series, such as 1.14.
        facts: what is known of them, by name; null, without a source, where it is not.
        note: what else there is to know; may be empty.
    """

    version: str
    facts: dict[str, Fact]
    note: str


@dataclass(frozen=True, slots=True)
class Flaw:
    """What a runtime gets wrong, or refuses, though the opset is one that it takes.

    Attributes:
        versions: the versions that have it; empty for all that are known.
        operators: of which operators.
        first_opset: the first opset at which it is so.
        last_opset: the last; null for any later.
        form: the form of the node; ``any`` for all.
        effect: whether the runtime computes something else, or refuses the model.
        what: what it does.
        source: where that comes from.
    """

    versions: str
    operators: tuple[str, ...]
    first_opset: int
    last_opset: int | None
    form: str
    effect: Effect
    what: str
    source: Source


@dataclass(frozen=True, slots=True)
class KnownRuntime:
    """A runtime.

    Attributes:
        name: what it is called in a requirement.
        title: its full name.
        aliases: other names that people give it.
        rows: its versions, the oldest first.
        flaws: what they get wrong, or refuse.
    """

    name: str
    title: str
    aliases: tuple[str, ...]
    rows: tuple[Versions, ...]
    flaws: tuple[Flaw, ...]


@dataclass(frozen=True, slots=True)
class Targets:
    """What `targets` shows.

    Attributes:
        runtimes: those that were asked for.
        remark: how the versions were found; may be empty.
    """

    runtimes: tuple[KnownRuntime, ...]
    remark: str = ""


def operators(op_types: Sequence[str]) -> Operators:
    """Operators of the default domain."""
    return Operators(tuple(map(_operator, op_types)))


def operators_of(facts: Facts, model: str) -> Operators:
    """The operators of a model."""
    return Operators((), model, default_opset(facts.model), tuple(own_operators(facts)))


def _operator(name: str) -> Operator:
    return Operator(
        name,
        schemas.versions(name),
        tuple(
            Boundary(opset, change_at(name, opset), tuple(map(_step, steps)))
            for opset, steps in boundaries(name)
        ),
    )


def _step(step: Step) -> StepAcross:
    return StepAcross(step.direction, step.status, step.full_description, step.place)


def targets(target: Target | None) -> Targets:
    """The runtime of a target with its versions, all where it has no condition; None for all."""
    if target is None:
        return Targets(
            tuple(_runtime(found, found.rows) for found in map(read_runtime, runtime_names()))
        )
    rows = target.rows if target.conditions else target.runtime.rows
    return Targets((_runtime(target.runtime, rows),), target.remark)


def _runtime(found: Runtime, rows: Sequence[VersionFacts]) -> KnownRuntime:
    quirks = {id(quirk): quirk for row in rows for quirk in row.quirks}.values()
    return KnownRuntime(
        found.name,
        found.title,
        tuple(found.aliases),
        tuple(Versions(str(row.version), row.facts, row.note) for row in rows),
        tuple(_flaw(quirk, found) for quirk in quirks),
    )


def _flaw(quirk: Quirk, found: Runtime) -> Flaw:
    return Flaw(
        span(quirk, found),
        tuple(sorted(quirk.operators)),
        *quirk.opsets,
        quirk.form,
        quirk.effect,
        quirk.what,
        quirk.source,
    )
