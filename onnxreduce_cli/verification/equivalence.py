"""Are two models the same function? Do executors agree on one?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.model.progress import Progress
from onnxreduce_cli.model.values import from_proto, kind_of
from onnxreduce_cli.verification.compare import Errors, Tolerance
from onnxreduce_cli.verification.data import write_inputs
from onnxreduce_cli.verification.divergence import first_divergence
from onnxreduce_cli.verification.errors import CannotRunError, InputError
from onnxreduce_cli.verification.inputs import Drawer
from onnxreduce_cli.verification.isolated import open_isolated
from onnxreduce_cli.verification.outcomes import Judgement, Outcome, Ran, Side, judge, run_once
from onnxreduce_cli.verification.profiles import profile
from onnxreduce_cli.verification.randomness import random_outputs
from onnxreduce_cli.verification.results import (
    Comparison,
    Disagreement,
    Divergence,
    ExecutorRun,
    Trial,
    VerifyReport,
)
from onnxreduce_cli.verification.runtime import EXECUTORS, Runner
from onnxreduce_cli.verification.source import ModelOrPath, Source

Inputs = Mapping[str, Any]


def run(model_or_path: ModelOrPath, inputs: Inputs, *, executor: str = "numpy") -> dict[str, Any]:
    """Run a model once.

    Args:
        model_or_path: the model, or its path.
        inputs: arrays by input name; lists for sequences, None for an empty optional.
        executor: ``numpy`` or ``onnxruntime`` (optimisations off).

    Returns:
        the outputs by name, in the model's order.

    Raises:
        CannotRunError: the executor cannot run the model.
        RunFailedError: it failed on these inputs.
        InvalidModelError: the file cannot be read, or is no model.
        ValueError: there is no such executor.
    """
    source = Source(model_or_path, "the model")
    return open_isolated(source, executor, patient=True).run(inputs, list(source.outputs))


def verify(
    a: ModelOrPath,
    b: ModelOrPath | None = None,
    *,
    inputs: Inputs | Sequence[Inputs] | None = None,
    dims: Mapping[str, int] | None = None,
    trials: int = 5,
    seed: int = 0,
    special: bool = False,
    tolerance: Tolerance | None = None,
    executors: Sequence[str] = EXECUTORS,
    save_failure: str | None = None,
    progress: Progress | None = None,
) -> VerifyReport:
    """Compare two models, or one model in two executors, on the same inputs.

    Args:
        a: a model, or its path.
        b: the other model; None to compare the executors on `a`.
        inputs: real data by input name, or several sets of it; what is missing is drawn.
        dims: sizes of symbolic dimensions by name, of others by ``input[axis]``.
        trials: how many sets of inputs to draw.
        seed: of what is drawn; equal seeds give equal inputs.
        special: whether the last trial of each five has NaN, infinities, both zeros and denormals.
        tolerance: the allowed difference of values; by default the table of `compare`.
        executors: those to ask, among `EXECUTORS`.
        save_failure: a folder for the first inputs on which the models differ.
        progress: called with the steps done, the steps in all, and the current one.

    Raises:
        InvalidModelError: a file cannot be read, or is no model.
        InputError: the inputs or dimensions given do not fit the model, or cannot be drawn.
        UsageError: there is no such executor.
    """
    for executor in executors:
        if executor not in EXECUTORS:
            raise UsageError(f"there is no executor {executor!r}")
    sources = {Side.REFERENCE: Source(a, "a")}
    if b is not None:
        sources[Side.CANDIDATE] = Source(b, "b")
        interface = tuple(_interface(*sources.values()))
        if interface:
            first, second = (source.label for source in sources.values())
            return VerifyReport(first, second, interface, (), (), (), None, (), (), False)
    check = _Check(sources, tuple(executors), tolerance or Tolerance(), progress)
    given = _sets(inputs, sources[Side.REFERENCE])
    check.run(given, dims, trials, seed, special)
    return check.report(save_failure)


def _sets(inputs: Inputs | Sequence[Inputs] | None, source: Source) -> list[Inputs]:
    if inputs is None:
        return [{}]
    sets = [inputs] if isinstance(inputs, Mapping) else list(inputs)
    graph = source.skeleton.graph
    known = {value.name for value in graph.input}
    for given in sets:
        for name in given:
            if name not in known:
                raise InputError(f"the model has no input {name!r}; it has: {', '.join(known)}")
    return sets or [{}]


def _interface(a: Source, b: Source) -> Iterator[str]:
    """Find the differences of two models in names, types and ranks of inputs and outputs."""
    for what, first, second in (("input", a.inputs, b.inputs), ("output", a.outputs, b.outputs)):
        for name in [*first, *(name for name in second if name not in first)]:
            if name not in second or name not in first:
                yield f"{what} {name!r} is only in {a.label if name in first else b.label}"
                continue
            kinds = [kind_of(side[name]) for side in (first, second)]
            if None not in kinds and kinds[0] != kinds[1]:
                yield f"{what} {name!r} is {kinds[0]} in one, {kinds[1]} in the other"
                continue
            known = [from_proto(side[name]) for side in (first, second)]
            dims = [None if item is None else item.dims for item in known]
            if dims[0] is None or dims[1] is None or not all(kinds):
                continue
            if len(dims[0]) != len(dims[1]):
                yield (
                    f"{what} {name!r} has rank {len(dims[0])} in one, {len(dims[1])} in the other"
                )
            elif what == "input" and any(
                isinstance(x, int) and isinstance(y, int) and x != y
                for x, y in zip(*dims, strict=True)
            ):
                shapes = [list(item or ()) for item in dims]
                yield f"input {name!r} has shape {shapes[0]} in one, {shapes[1]} in the other"


@dataclass
class _Check:
    """One verification on its way."""

    sources: dict[Side, Source]
    executors: tuple[str, ...]
    tolerance: Tolerance
    progress: Progress | None
    feeds: list[dict[str, Any]] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    outcomes: dict[Ran, list[Outcome]] = field(default_factory=dict)
    reasons: dict[Ran, str] = field(default_factory=dict)

    @property
    def _between(self) -> Tolerance:
        return self.tolerance.between_executors()

    def run(
        self,
        given: list[Inputs],
        dims: Mapping[str, int] | None,
        trials: int,
        seed: int,
        special: bool,
    ) -> None:
        """Run every model in every executor, one session at a time, on the same inputs."""
        drawer = Drawer(self.sources[Side.REFERENCE], dims)
        plan = _plan(given, self.sources[Side.REFERENCE], trials, special)
        done, total = 0, len(self.sources) * len(self.executors) * len(plan)
        for side, source in self.sources.items():
            for executor in self.executors:
                if self.progress is not None:
                    self.progress(done, total, f"{source.label} in {executor}")
                self._run_one(side, executor, drawer, plan, seed)
                done += len(plan)
        if self.progress is not None:
            self.progress(total, total, "comparing")

    def _run_one(
        self,
        side: Side,
        executor: str,
        drawer: Drawer,
        plan: list[tuple[Inputs, str]],
        seed: int,
    ) -> None:
        source = self.sources[side]
        key = (side, executor)
        try:
            runner = open_isolated(source, executor)
            if not self.feeds:
                self.outcomes[key] = self._draw(runner, drawer, plan, seed)
            else:
                names = list(source.outputs)
                self.outcomes[key] = [run_once(runner, feeds, names) for feeds in self.feeds]
        except CannotRunError as error:
            self.reasons[key] = str(error)
            self.outcomes.pop(key, None)

    def _draw(
        self, runner: Runner, drawer: Drawer, plan: list[tuple[Inputs, str]], seed: int
    ) -> list[Outcome]:
        """Draw the inputs of every trial, such that the model accepts them, and run it on them."""
        names = list(self.sources[Side.REFERENCE].outputs)
        outcomes, feeds, trials = [], [], []
        level = 0
        for number, (given, values) in enumerate(plan):
            rng = np.random.default_rng((seed, number))
            fallback: tuple[dict[str, Any], Outcome] | None = None
            attempts = list(drawer.attempts(number, rng))
            # What the last trial needed comes first.
            order = [level, *(i for i in range(len(attempts)) if i != level)]
            for index in (i for i in order if i < len(attempts)):
                drawn = drawer.draw(attempts[index], values, rng, given)
                outcome = run_once(runner, drawn, names)
                fallback = fallback or (drawn, outcome)
                if outcome.values is not None:
                    fallback, level = (drawn, outcome), index
                    break
                if values == "given":
                    break
            assert fallback is not None
            feeds.append(fallback[0])
            outcomes.append(fallback[1])
            trials.append(Trial(number, values, _shapes(fallback[0])))
        self.feeds, self.trials = feeds, trials
        return outcomes

    def report(self, save_failure: str | None) -> VerifyReport:
        """Compare everything that ran."""
        pair = Side.CANDIDATE in self.sources
        random = set().union(*(random_outputs(source) for source in self.sources.values()))
        names = [name for name in self.sources[Side.REFERENCE].outputs if name not in random]
        total = _Comparisons()
        verdicts: list[bool | None] = []
        failing: tuple[int, str, Judgement] | None = None
        deviating: dict[Side, tuple[int, str]] = {}
        excused = False
        for number in range(len(self.feeds)):
            found = {key: runs[number] for key, runs in self.outcomes.items()}
            seen: list[bool | None] = []
            for name in names:
                judgement = judge(found, name, self.tolerance, self._between)
                total.add(name, judgement)
                agree = (
                    judgement.agree if pair else _agree(judgement.deviations.get(Side.REFERENCE))
                )
                seen.append(agree)
                excused |= judgement.excused
                if agree is False and failing is None:
                    failing = (number, name, judgement)
                for side, errors in judgement.deviations.items():
                    if not errors.agree:
                        deviating.setdefault(side, (number, name))
            verdicts += seen
            if all(item is None for item in seen):
                self.trials[number] = replace(self.trials[number], void=self._why_void(number))
        known = [item for item in verdicts if item is not None]
        equivalent = None if not known else all(known)
        saved = None
        if failing is not None and save_failure is not None:
            saved = str(save_failure)
            write_inputs(saved, self.feeds[failing[0]], self.sources[Side.REFERENCE].skeleton)
        labels = {side: source.label for side, source in self.sources.items()}
        return VerifyReport(
            labels[Side.REFERENCE],
            labels.get(Side.CANDIDATE),
            (),
            tuple(self._runs()),
            tuple(self.trials),
            total.summary(labels),
            self._divergence(failing) if pair and failing is not None else None,
            tuple(self._disagreement(side, *where, total) for side, where in deviating.items()),
            tuple(self._remarks(random, excused)),
            equivalent,
            saved,
        )

    def _why_void(self, number: int) -> str:
        reasons = [runs[number].failure for runs in self.outcomes.values() if runs[number].failure]
        return reasons[0] if reasons else "no two results to compare"

    def _runs(self) -> Iterator[ExecutorRun]:
        for side, source in self.sources.items():
            for executor in self.executors:
                runs = self.outcomes.get((side, executor), [])
                failures = [outcome.failure for outcome in runs if outcome.failure]
                reason = self.reasons.get((side, executor), failures[0] if failures else "")
                ran = sum(outcome.values is not None for outcome in runs)
                yield ExecutorRun(source.label, executor, ran, reason)

    def _remarks(self, random: set[str], excused: bool) -> Iterator[str]:
        ran = {(run.model, run.executor): run for run in self._runs()}
        for executor in self.executors if Side.CANDIDATE in self.sources else ():
            first, second = (ran[source.label, executor] for source in self.sources.values())
            if first.trials and not second.trials:
                yield f"{executor} runs the first model, but not the second: {second.reason}"
        for name in sorted(random):
            yield f"output {name!r} is random: it was not compared"
        if excused:
            yield (
                "ONNX Runtime finds a difference where the NumPy executor finds none and the two "
                "differ on one model: it is ONNX Runtime's deviation, not counted against the "
                "models"
            )

    def _divergence(self, failing: tuple[int, str, Judgement]) -> Divergence | None:
        number, name, judgement = failing
        differ = [e for e, errors in judgement.pairs.items() if not errors.agree]
        executors = judgement.cross[:2] if judgement.cross else (differ[-1], differ[-1])
        first, second = (
            (self.sources[side], executor) for side, executor in zip(Side, executors, strict=True)
        )
        tolerance = self.tolerance if executors[0] == executors[1] else self._between
        return first_divergence(first, second, name, self.feeds[number], tolerance)

    def _disagreement(
        self, side: Side, number: int, name: str, total: _Comparisons
    ) -> Disagreement:
        source = self.sources[side]
        where = first_divergence(
            (source, EXECUTORS[0]),
            (source, EXECUTORS[1]),
            name,
            self.feeds[number],
            self._between,
        )
        errors = total.errors(name, (side, EXECUTORS[0]), (side, EXECUTORS[1]))
        return Disagreement(source.label, name, errors, where)


def _agree(errors: Errors | None) -> bool | None:
    return None if errors is None else errors.agree


class _Comparisons:
    """The errors of each output between pairs of runs, added up over trials."""

    def __init__(self) -> None:
        self._errors: dict[tuple[str, Ran, Ran], tuple[int, Errors]] = {}

    def add(self, name: str, judgement: Judgement) -> None:
        for executor, errors in judgement.pairs.items():
            self._add(name, (Side.REFERENCE, executor), (Side.CANDIDATE, executor), errors)
        if judgement.cross is not None:
            first, second, errors = judgement.cross
            self._add(name, (Side.REFERENCE, first), (Side.CANDIDATE, second), errors)
        for side, errors in judgement.deviations.items():
            self._add(name, (side, EXECUTORS[0]), (side, EXECUTORS[1]), errors)

    def _add(self, name: str, first: Ran, second: Ran, errors: Errors) -> None:
        count, total = self._errors.get((name, first, second), (0, Errors()))
        self._errors[name, first, second] = (count + 1, total + errors)

    def errors(self, name: str, first: Ran, second: Ran) -> Errors:
        """The errors of an output between two runs, over all trials."""
        return self._errors[name, first, second][1]

    def summary(self, labels: Mapping[Side, str]) -> tuple[Comparison, ...]:
        """One comparison for each output and pair, outputs in order."""
        return tuple(
            Comparison(name, (labels[x[0]], x[1]), (labels[y[0]], y[1]), count, errors)
            for (name, x, y), (count, errors) in self._errors.items()
        )


def _plan(
    given: list[Inputs], source: Source, trials: int, special: bool
) -> list[tuple[Inputs, str]]:
    """For each trial the inputs that are given, and the profile of those that are not."""
    plan: list[tuple[Inputs, str]] = []
    for inputs in given:
        if source.inputs and set(source.inputs) <= set(inputs):
            plan.append((inputs, "given"))
        elif not source.inputs:
            plan.append((inputs, profile(0, 1, False)))
        else:
            plan += [(inputs, profile(trial, trials, special)) for trial in range(trials)]
    return plan


def _shapes(feeds: Mapping[str, Any]) -> dict[str, tuple[int, ...] | None]:
    return {
        name: value.shape if isinstance(value, np.ndarray) else None
        for name, value in feeds.items()
    }
