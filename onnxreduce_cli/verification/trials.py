"""Running models in executors on the same inputs, given or drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onnxreduce_cli.model.progress import Progress
from onnxreduce_cli.verification.errors import CannotRunError
from onnxreduce_cli.verification.inputs import Drawer
from onnxreduce_cli.verification.isolated import open_isolated
from onnxreduce_cli.verification.outcomes import Outcome, Ran, Side, run_once
from onnxreduce_cli.verification.profiles import profile
from onnxreduce_cli.verification.results import ExecutorRun, Trial
from onnxreduce_cli.verification.runtime import Runner
from onnxreduce_cli.verification.source import Source

Inputs = Mapping[str, Any]


@dataclass
class Trials:
    """The runs of one verification, at first none.

    Attributes:
        sources: the models.
        executors: those that run each.
        progress: called with the steps done, the steps in all, and the current one.
        feeds: the inputs of each trial, by name.
        trials: what a report says of those.
        outcomes: for each model and executor that could run it, one outcome for each trial.
        reasons: why an executor could not run a model at all.
    """

    sources: dict[Side, Source]
    executors: tuple[str, ...]
    progress: Progress | None = None
    feeds: list[dict[str, Any]] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    outcomes: dict[Ran, list[Outcome]] = field(default_factory=dict)
    reasons: dict[Ran, str] = field(default_factory=dict)

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

    def why_void(self, number: int) -> str:
        """Why nothing could be learned from a trial."""
        reasons = [runs[number].failure for runs in self.outcomes.values() if runs[number].failure]
        return reasons[0] if reasons else "no two results to compare"

    def runs(self) -> Iterator[ExecutorRun]:
        """How each executor fared with each model."""
        for side, source in self.sources.items():
            for executor in self.executors:
                runs = self.outcomes.get((side, executor), [])
                failures = [outcome.failure for outcome in runs if outcome.failure]
                reason = self.reasons.get((side, executor), failures[0] if failures else "")
                ran = sum(outcome.values is not None for outcome in runs)
                yield ExecutorRun(source.label, executor, ran, reason)


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
