"""Operators with their steps, and runtimes with their facts, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnxreduce_cli.model.graph.domains import default_opset
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.report.operators import all_versions, boundaries, change_at, own_operators
from onnxreduce_cli.report.targets import operator_answers, version_range
from onnxreduce_cli.serializable import Serializable
from onnxreduce_cli.steps.registry import Direction, Status, Step
from onnxreduce_cli.targets.operators import OperatorTable
from onnxreduce_cli.targets.reading import read_runtime, runtime_names
from onnxreduce_cli.targets.requirement import Target
from onnxreduce_cli.targets.rows import Effect, Fact, Quirk, Runtime, Source, VersionFacts


@dataclass(frozen=True, slots=True)
class BoundaryStep:
    """A step across a boundary, up or down.

    Attributes:
        direction: ``up`` to the boundary, or ``down`` from it.
        status: ``unchanged``, ``step``, ``conditional``, ``impossible`` or ``undeclared``.
        description: what it does, and where it blocks.
        place: the file and the function that implement it; empty where there is none.
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
        steps: the steps across it.
    """

    opset: int
    what: str
    steps: tuple[BoundaryStep, ...]


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of the default domain.

    Attributes:
        name: its name.
        versions: its since-versions.
        boundaries: its boundaries, with what changed and the steps.
    """

    name: str
    versions: tuple[int, ...]
    boundaries: tuple[Boundary, ...]


@dataclass(frozen=True)
class OperatorList(Serializable):
    """The results of `ops`.

    Attributes:
        operators: the operators, by name; none where those of a model were asked for.
        model: the model whose operators were asked for; null for none.
        opset: its opset; null where it imports no default domain.
        used: its operators, those of other domains as ``domain.Name``.
    """

    operators: tuple[Operator, ...]
    model: str | None = None
    opset: int | None = None
    used: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RuntimeVersions:
    """The facts of a series of versions of a runtime, which hold up to the next series.

    Attributes:
        version: the series, such as 1.14.
        facts: the facts by name; null and without a source where nothing is known.
        note: a remark; may be empty.
        operators: whether each operator is taken, those of other domains as ``domain.Name``; empty
            where nothing is known, or where several versions are listed.
        operators_source: the source of that; null where nothing is known.
    """

    version: str
    facts: dict[str, Fact]
    note: str
    operators: dict[str, str]
    operators_source: Source | None


@dataclass(frozen=True, slots=True)
class RuntimeFlaw:
    """Nodes that a runtime computes wrong or refuses, although it takes their opset.

    Attributes:
        versions: the versions that do; empty for all that are known.
        operators: the operators of such nodes.
        first_opset: the first opset at which it happens.
        last_opset: the last one; null for no end.
        form: the form of such nodes; ``any`` for all.
        effect: whether the runtime computes something else, or refuses the model.
        what: what it does.
        source: the source of this.
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
class RuntimeDescription:
    """A runtime and what is known of it.

    Attributes:
        name: what it is called in a requirement.
        title: its full name.
        aliases: other names that people give it.
        rows: its versions, the oldest first.
        flaws: the nodes that they compute wrong or refuse.
    """

    name: str
    title: str
    aliases: tuple[str, ...]
    rows: tuple[RuntimeVersions, ...]
    flaws: tuple[RuntimeFlaw, ...]


@dataclass(frozen=True)
class TargetList(Serializable):
    """The results of `targets`.

    Attributes:
        runtimes: the runtimes that were asked for.
        remark: how the versions were found; may be empty.
    """

    runtimes: tuple[RuntimeDescription, ...]
    remark: str = ""


def operator_list(op_types: Sequence[str]) -> OperatorList:
    """Return operators of the default domain with their boundaries and steps."""
    return OperatorList(tuple(map(_operator, op_types)))


def operators_of(facts: Facts, model: str) -> OperatorList:
    """Return the operators of a model, by name only."""
    return OperatorList((), model, default_opset(facts.model), tuple(own_operators(facts)))


def _operator(name: str) -> Operator:
    return Operator(
        name,
        all_versions(name),
        tuple(
            Boundary(opset, change_at(name, opset), tuple(map(_step, steps)))
            for opset, steps in boundaries(name)
        ),
    )


def _step(step: Step) -> BoundaryStep:
    return BoundaryStep(step.direction, step.status, step.full_description, step.place)


def target_list(target: Target | None) -> TargetList:
    """Return the runtime of a target with its versions, or all runtimes for None.

    A target without a condition has all versions of its runtime.
    """
    if target is None:
        return TargetList(
            tuple(_runtime(found, found.rows) for found in map(read_runtime, runtime_names()))
        )
    rows = target.rows if target.conditions else target.runtime.rows
    return TargetList((_runtime(target.runtime, rows),), target.remark)


def _runtime(found: Runtime, rows: Sequence[VersionFacts]) -> RuntimeDescription:
    quirks = {id(quirk): quirk for row in rows for quirk in row.quirks}.values()
    return RuntimeDescription(
        found.name,
        found.title,
        tuple(found.aliases),
        tuple(_versions(found.name, row, listing=len(rows) == 1) for row in rows),
        tuple(_flaw(quirk, found) for quirk in quirks),
    )


def _versions(name: str, row: VersionFacts, *, listing: bool) -> RuntimeVersions:
    table = OperatorTable.load(name, row.version)
    answers = operator_answers(table) if table is not None and listing else {}
    return RuntimeVersions(
        str(row.version),
        row.facts,
        row.note,
        {op_type: str(answer) for op_type, answer in answers.items()},
        None if table is None else table.source,
    )


def _flaw(quirk: Quirk, found: Runtime) -> RuntimeFlaw:
    return RuntimeFlaw(
        version_range(quirk, found),
        tuple(sorted(quirk.operators)),
        *quirk.opsets,
        quirk.form,
        quirk.effect,
        quirk.what,
        quirk.source,
    )
