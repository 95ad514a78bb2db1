"""The outcomes of running models, and which model or executor is at fault where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from onnxreduce_cli.verification.compare.values import (
    Errors,
    Tolerance,
    compare_values,
    not_comparable,
)
from onnxreduce_cli.verification.errors import RunFailedError
from onnxreduce_cli.verification.running.runtime import EXECUTORS, Runner


class Side(Enum):
    """The two models of a comparison."""

    REFERENCE = "reference"
    CANDIDATE = "candidate"


#: One of the two models, in an executor.
RunKey = tuple[Side, str]


class RunOutcome(NamedTuple):
    """The outcome of one run of one model in one executor.

    Attributes:
        values: the outputs by name; None where there are none.
        failure: why the run failed; empty if it did not.
    """

    values: dict[str, Any] | None = None
    failure: str = ""

    @property
    def known(self) -> bool:
        """True if the executor ran the model or failed on its inputs; false if it lacks support."""
        return self.values is not None or bool(self.failure)


#: The outcome where the executor cannot run the model.
UNSUPPORTED = RunOutcome()


def run_once(runner: Runner, feeds: Mapping[str, Any], names: Sequence[str]) -> RunOutcome:
    """Run a model and return its outputs, or why it failed.

    Raises:
        CannotRunError: the executor turned out not to support something.
    """
    try:
        return RunOutcome(runner.run(feeds, names))
    except RunFailedError as error:
        return RunOutcome(failure=str(error))


def difference(
    first: RunOutcome,
    second: RunOutcome,
    name: str,
    tolerance: Tolerance,
    sides: tuple[str, str] = ("the first model", "the second model"),
) -> Errors | None:
    """Return the difference of one output; None where one side is not known or both failed.

    Args:
        first: one outcome.
        second: the other.
        name: the output.
        tolerance: the allowed difference.
        sides: what messages call the two.
    """
    if not first.known or not second.known or (first.failure and second.failure):
        return None
    if first.values is None:
        return not_comparable(f"only {sides[0]} fails: {first.failure}")
    if second.values is None:
        return not_comparable(f"only {sides[1]} fails: {second.failure}")
    return compare_values(first.values[name], second.values[name], tolerance)


class Judgement(NamedTuple):
    """The judgement of one output of two models on one set of inputs, by all executors.

    Attributes:
        pairs: by executor, how it finds the two models to differ.
        cross: how they differ where each was run by another executor.
        deviations: by model, how the executors differ from each other on it.
        agree: whether the models agree; None where nothing is known.
        excused: whether ONNX Runtime finds a difference that is its own: the NumPy executor finds
            none, and the two executors differ on one of the models.
    """

    pairs: dict[str, Errors]
    cross: tuple[str, str, Errors] | None
    deviations: dict[Side, Errors]
    agree: bool | None = None
    excused: bool = False

    def compared(self) -> Iterator[tuple[RunKey, RunKey, Errors]]:
        """Yield every two runs that were compared and how they differ, two models first."""
        for executor, errors in self.pairs.items():
            yield (Side.REFERENCE, executor), (Side.CANDIDATE, executor), errors
        if self.cross is not None:
            first, second, errors = self.cross
            yield (Side.REFERENCE, first), (Side.CANDIDATE, second), errors
        for side, errors in self.deviations.items():
            yield (side, EXECUTORS[0]), (side, EXECUTORS[1]), errors


Outcomes = Mapping[RunKey, RunOutcome]


def judge(
    outcomes: Outcomes,
    name: str,
    tolerance: Tolerance,
    between: Tolerance,
    *,
    always: bool = True,
) -> Judgement:
    """Judge one output of two models.

    Where an executor fails for the reference, its outcomes do not count; where only the candidate
    fails, the models differ.

    Args:
        outcomes: by model and executor.
        name: the output.
        tolerance: for the two models in one executor.
        between: for one model in two executors, and for models run by different ones.
            An exact `tolerance` applies to every executor: no deviation excuses one.
        always: whether the executors are compared with each other even if the models agree.
    """
    pairs: dict[str, Errors] = {}
    for executor in EXECUTORS:
        found = _models_differ(outcomes, name, (executor, executor), tolerance)
        if found is not None:
            pairs[executor] = found
    differ = [executor for executor, errors in pairs.items() if not errors.agree]
    # A deviation that excuses a difference of the models may be as small as that.
    limit = tolerance if differ else between
    deviations = _deviations(outcomes, name, limit) if always or differ else {}
    if not pairs:
        return _judge_across(outcomes, name, between, deviations)
    excused = (
        differ == ["onnxruntime"]
        and not tolerance.exact
        and "numpy" in pairs
        and any(not errors.agree for errors in deviations.values())
    )
    return Judgement(pairs, None, deviations, not differ or excused, excused)


def _models_differ(
    outcomes: Outcomes, name: str, executors: tuple[str, str], limit: Tolerance
) -> Errors | None:
    """Return the difference of the reference in one executor and the candidate in another."""
    # Inputs that the reference does not accept prove nothing about the candidate.
    if any(_get(outcomes, Side.REFERENCE, executor).failure for executor in executors):
        return None
    first, second = executors
    reference = _get(outcomes, Side.REFERENCE, first)
    return difference(reference, _get(outcomes, Side.CANDIDATE, second), name, limit)


def _deviations(outcomes: Outcomes, name: str, limit: Tolerance) -> dict[Side, Errors]:
    """Return by model how the executors differ from each other on it."""
    found = {}
    for side in Side:
        first, second = (_get(outcomes, side, executor) for executor in EXECUTORS)
        errors = difference(first, second, name, limit, EXECUTORS)
        if errors is not None:
            found[side] = errors
    return found


def _judge_across(
    outcomes: Outcomes, name: str, between: Tolerance, deviations: dict[Side, Errors]
) -> Judgement:
    """Judge one output where no executor ran both models, but each ran in another one."""
    for executors in (EXECUTORS, EXECUTORS[::-1]):
        # An executor that fails refuses the inputs themselves, which the other accepts.
        found = _models_differ(outcomes, name, executors, between)
        if found is not None:
            return Judgement({}, (*executors, found), deviations, found.agree)
    return Judgement({}, None, deviations)


def _get(outcomes: Outcomes, side: Side, executor: str) -> RunOutcome:
    return outcomes.get((side, executor), UNSUPPORTED)
