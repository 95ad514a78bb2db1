"""Running models in executors on the same inputs, given or drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import TypeProto

from onnxreduce_cli.model.progress import Progress
from onnxreduce_cli.model.values import numpy_dtype
from onnxreduce_cli.verification.errors import CannotRunError, InputError
from onnxreduce_cli.verification.inputs import LARGEST, Attempt, Drawer
from onnxreduce_cli.verification.isolated import end_large, let_go, open_isolated
from onnxreduce_cli.verification.naming import message
from onnxreduce_cli.verification.outcomes import Outcome, Ran, Side, run_once
from onnxreduce_cli.verification.profiles import profile
from onnxreduce_cli.verification.results import ExecutorRun, Trial
from onnxreduce_cli.verification.runtime import Runner
from onnxreduce_cli.verification.source import Source

Inputs = Mapping[str, Any]

#: Of tensors of more elements one is drawn for a batch, and of more than these none.
_MANY, _MOST = 1 << 24, 1 << 28


@dataclass(slots=True)
class Trials:
    """The runs of one verification, at first none.

    Attributes:
        sources: the models.
        executors: those that run each.
        progress: called with the steps done, the steps in all, and the current one.
        casting: whether the second model may take and give other dtypes than the first.
        feeds: the inputs of each trial, by name.
        trials: what a report says of those.
        outcomes: for each model and executor that could run it, one outcome for each trial.
        reasons: why an executor could not run a model at all.
        accepted: whether the first model ran on any inputs that were drawn or given.
        unfit: what a user can do about inputs that no executor accepts; empty where one does.
    """

    sources: dict[Side, Source]
    executors: tuple[str, ...]
    progress: Progress | None = None
    casting: bool = False
    feeds: list[dict[str, Any]] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    outcomes: dict[Ran, list[Outcome]] = field(default_factory=dict)
    reasons: dict[Ran, str] = field(default_factory=dict)
    accepted: bool = False
    unfit: str = ""

    def run(
        self,
        given: list[Inputs],
        dims: Mapping[str, int] | None,
        trials: int,
        seed: int,
        special: bool,
    ) -> None:
        """Run every model in every executor, one session at a time, on the same inputs.

        Raises:
            InputError: inputs cannot be drawn.
        """
        drawer = Drawer(self.sources[Side.REFERENCE], dims)
        plan = _plan(given, self.sources[Side.REFERENCE], trials, special)
        if not all(inputs for inputs, _ in plan):
            # Said before an executor opens the model, which may take as much memory.
            attempts = list(drawer.attempts(0, np.random.default_rng(seed)))
            if all(drawer.elements(_fitting(drawer, item)) > _MOST for item in attempts):
                raise _too_large(drawer, attempts)
        done, total = 0, len(self.sources) * len(self.executors) * len(plan)
        for executor in self.executors:
            for side, source in self.sources.items():
                if self.progress is not None:
                    self.progress(done, total, f"{source.label} in {executor}")
                self._run_one(side, executor, drawer, plan, seed)
                let_go()  # One model in memory at a time.
                done += len(plan)
            end_large()
        if not self.accepted and self.feeds:
            self.unfit = _unfit(drawer, plan)
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
            if side is Side.REFERENCE and not self.accepted:
                self._draw(key, runner, drawer, plan, seed)
            else:
                self.outcomes[key] = self._run_all(runner, source)
        except CannotRunError as error:
            self.reasons[key] = message(error, source)
            self.outcomes.pop(key, None)

    def _run_all(self, runner: Runner, source: Source) -> list[Outcome]:
        """Run a model on the inputs of every trial."""
        names = list(source.outputs)
        first = self.sources[Side.REFERENCE]
        if self.casting and source is not first:
            fed = [cast(feeds, source.inputs) for feeds in self.feeds]
            found = [run_once(runner, feeds, names) for feeds in fed]
            found = [
                item
                if item.values is None
                else item._replace(values=cast(item.values, first.outputs))
                for item in found
            ]
        else:
            found = [run_once(runner, feeds, names) for feeds in self.feeds]
        return [item._replace(failure=message(item.failure, source)) for item in found]

    def _draw(
        self,
        key: Ran,
        runner: Runner,
        drawer: Drawer,
        plan: list[tuple[Inputs, str]],
        seed: int,
    ) -> None:
        """Draw the inputs of every trial such that the first model accepts them, and run it."""
        source = self.sources[Side.REFERENCE]
        names = list(source.outputs)
        outcomes: list[Outcome] = []
        feeds: list[dict[str, Any]] = []
        trials: list[Trial] = []
        level: int | None = 0
        for number, (given, values) in enumerate(plan):
            rng = np.random.default_rng((seed, number))
            fallback: tuple[dict[str, Any], Outcome] | None = None
            attempts = list(drawer.attempts(number, rng))
            for index in _order(len(attempts), level, values):
                attempt = _fitting(drawer, attempts[index])
                if not given and drawer.elements(attempt) > _MOST:
                    continue
                drawn = drawer.draw(attempt, values, rng, given)
                outcome = run_once(runner, drawn, names)
                fallback = fallback or (drawn, outcome)
                if outcome.values is not None:
                    fallback, level = (drawn, outcome), index
                    self.accepted = True
                    break
            else:
                # Larger sizes take long, and what no size suits is not looked for again.
                level = level if self.accepted else None
            if fallback is None:
                raise _too_large(drawer, attempts)
            feeds.append(fallback[0])
            outcomes.append(fallback[1]._replace(failure=message(fallback[1].failure, source)))
            trials.append(Trial(number, values, _shapes(fallback[0])))
        if self.accepted or not self.feeds:
            earlier = list(self.outcomes)
            self.feeds, self.trials = feeds, trials
            self.outcomes[key] = outcomes
            for side, executor in earlier:  # It accepted none of what was drawn for it.
                self._run_one(side, executor, drawer, plan, seed)
        else:
            self.outcomes[key] = self._run_all(runner, source)

    def why_void(self, number: int) -> str:
        """Return why nothing could be learned from a trial."""
        reasons = [runs[number].failure for runs in self.outcomes.values() if runs[number].failure]
        return reasons[0] if reasons else "no two results to compare"

    def runs(self) -> Iterator[ExecutorRun]:
        """Return how each executor fared with each model."""
        for side, source in self.sources.items():
            for executor in self.executors:
                runs = self.outcomes.get((side, executor), [])
                failures = [outcome.failure for outcome in runs if outcome.failure]
                reason = self.reasons.get((side, executor), failures[0] if failures else "")
                ran = sum(outcome.values is not None for outcome in runs)
                yield ExecutorRun(source.label, executor, ran, reason)


def cast(values: Inputs, types: Mapping[str, TypeProto]) -> dict[str, Any]:
    """Return arrays, by name, in the dtypes that a model takes or gives under these names."""
    found = dict(values)
    for name, value in values.items():
        number = types[name].tensor_type.elem_type if name in types else 0
        if number and isinstance(value, np.ndarray) and value.dtype != numpy_dtype(number):
            found[name] = value.astype(numpy_dtype(number))
    return found


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


def _order(attempts: int, level: int | None, values: str) -> list[int]:
    """The order in which to try the ways to draw inputs.

    Args:
        attempts: how many there are, the most telling first.
        level: the one that the last trial needed; None where none was accepted.
        values: the value profile; ``given`` where nothing is drawn.
    """
    if values == "given" or level is None:
        return [0]
    first = min(level, attempts - 1)
    return [first, *(i for i in range(attempts) if i != first)]


def _too_large(drawer: Drawer, attempts: Sequence[Attempt]) -> InputError:
    return InputError(
        f"inputs of {drawer.elements(attempts[0]):,} elements are too large to draw; "
        "say smaller sizes: --dim NAME=SIZE, or give inputs: -i NAME=FILE.npy"
    )


def _fitting(drawer: Drawer, attempt: Attempt) -> Attempt:
    """A way to draw inputs, with a batch of one where they would be large."""
    if drawer.elements(attempt) <= _MANY:
        return attempt
    first = [name for name in drawer.symbols if name not in attempt.sizes][:1]
    return attempt._replace(sizes={**dict.fromkeys(first, 1), **attempt.sizes})


def _unfit(drawer: Drawer, plan: list[tuple[Inputs, str]]) -> str:
    """Return what a user can do where a model accepts no inputs."""
    if all(values == "given" for _, values in plan):
        return "the model does not accept the inputs given"
    symbols = [name for name in drawer.symbols if name not in drawer.dims]
    if symbols:
        return (
            f"no sizes of {', '.join(symbols)} were found that the model accepts, up to "
            f"{LARGEST}; say them: --dim {symbols[0]}=SIZE, or give inputs: "
            "-i NAME=FILE.npy"
        )
    return "no inputs were found that the model accepts; give some: -i NAME=FILE.npy"


def _shapes(feeds: Mapping[str, Any]) -> dict[str, tuple[int, ...] | None]:
    return {
        name: value.shape if isinstance(value, np.ndarray) else None
        for name, value in feeds.items()
    }
