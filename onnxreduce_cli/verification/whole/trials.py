"""Runs of whole models in executors on the same inputs, given or drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any, Literal, NamedTuple

import numpy as np
from onnx import TypeProto

from onnxreduce_cli.model.file.progress import Progress
from onnxreduce_cli.model.graph.values import dtype_name, is_float, narrows
from onnxreduce_cli.text import count, listed
from onnxreduce_cli.verification.compare.in_double import ChangedDtypes
from onnxreduce_cli.verification.compare.loop import (
    InputRequest,
    Inputs,
    Run,
    compare_models,
    draw_runs,
)
from onnxreduce_cli.verification.compare.outcomes import (
    Judgement,
    RunKey,
    RunOutcome,
    Side,
    judge,
    run_once,
)
from onnxreduce_cli.verification.compare.values import Tolerance
from onnxreduce_cli.verification.errors import CannotRunError, InputError
from onnxreduce_cli.verification.inputs.drawing import LARGEST, Drawer, ShapeChoice
from onnxreduce_cli.verification.inputs.profiles import (
    BY_THE_MODEL,
    ENDS,
    LEVEL,
    OF_LARGE,
    OF_MANY_ROWS,
    ORDINARY,
    PROFILES,
    UNUSUAL,
    profiles,
)
from onnxreduce_cli.verification.inputs.random_arrays import RandomArrays
from onnxreduce_cli.verification.running.isolated import (
    close_unused_models,
    end_large_worker,
    open_isolated,
)
from onnxreduce_cli.verification.running.runtime import Runner
from onnxreduce_cli.verification.running.source import ModelSource, cast_values
from onnxreduce_cli.verification.whole.naming import short_message
from onnxreduce_cli.verification.whole.randomness import random_outputs
from onnxreduce_cli.verification.whole.results import ExecutorRun, Trial

#: Elements above which a tensor gets a batch of one, and above which none is drawn: Python's
#: generator counts the bits of as many doubles in a C int.
_MANY, _MOST = 1 << 24, (1 << 25) - 1


@dataclass(slots=True)
class Trials:
    """The runs of one verification, at first none.

    Attributes:
        sources: the models.
        executors: the executors that run each.
        tolerance: the allowed difference of values.
        progress: called with the steps done, the steps in all, and the current one.
        changed: the dtypes that the second model has in place of others, in its inputs and outputs
            too.
        recast: the inputs and outputs whose dtypes alone it changed.
        narrowed: the inputs and outputs of int64 that are int32 in the second model.
        stated: the ranges of integers that the user states, by the names of values.
        runs: the runs, one for each set of inputs.
        uncounted: runs on special values, by which the models are not judged.
        random: the outputs that are random, which are not compared.
        reasons: why an executor could not run a model at all.
        unfit: the advice where no executor accepts any inputs; empty where one does.
        not_run: the first model's subgraphs that the NumPy executor has not run, as node's name and
            attribute.
        is_large: whether a run takes long.
        seed: of the inputs that are drawn.
        begun: when it began, by the clock of `time.perf_counter`.
    """

    sources: dict[Side, ModelSource]
    executors: tuple[str, ...]
    tolerance: Tolerance
    progress: Progress | None = None
    changed: ChangedDtypes = field(default_factory=dict)
    recast: frozenset[str] = frozenset()
    narrowed: frozenset[str] = frozenset()
    stated: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    uncounted: list[Run] = field(default_factory=list)
    random: set[str] = field(default_factory=set)
    reasons: dict[RunKey, str] = field(default_factory=dict)
    unfit: str = ""
    not_run: list[tuple[str, str]] = field(default_factory=list)
    is_large: bool = False
    seed: int = 0
    begun: float = field(default_factory=perf_counter)
    _done: int = 0

    @property
    def names(self) -> list[str]:
        """Return the outputs that are compared."""
        return [name for name in self.sources[Side.REFERENCE].outputs if name not in self.random]

    def run(
        self,
        given: list[Inputs],
        dims: Mapping[str, int] | None,
        trials: int | None,
        seed: int,
        special: bool,
    ) -> None:
        """Run every model in every executor, one session at a time, on the same inputs.

        Raises:
            InputError: inputs cannot be drawn.
        """
        self.seed = seed
        reference = self.sources[Side.REFERENCE]
        others = [source for side, source in self.sources.items() if side is not Side.REFERENCE]
        drawer = Drawer(reference, dims, others, self.stated)
        plan = _plan(given, drawer, reference, trials, special)
        self.is_large = drawer.is_large
        if others and trials is None and not special and not self.is_large:
            plan += [
                _PlannedTrial(item.given, UNUSUAL) for item in plan if item.values == ORDINARY
            ][:1]
        if not all(item.given for item in plan):
            # Raised before an executor opens the model, which may take as much memory.
            choices = list(drawer.choices(0, RandomArrays(seed)))
            if all(drawer.elements(_with_small_batch(drawer, item)) > _MOST for item in choices):
                raise _too_large(drawer, choices)
        self.random = set().union(*map(random_outputs, self.sources.values()))
        total = len(self.sources) * len(self.executors) * len(plan)
        searches = (self._drawn(name, drawer, plan, seed, total) for name in self.executors)
        complete = partial(self._complete, steps=len(plan), total=total)
        runs = list(compare_models(searches, complete, self._judge, self.names))
        self.runs = [run for run in runs if run.values != UNUSUAL]
        self.uncounted = [run for run in runs if run.values == UNUSUAL and run.accepted]
        if not any(run.accepted for run in self.runs) and self.runs:
            self.unfit = _unfit(drawer, plan)
        if self.progress is not None:
            self.progress(total, total, "comparing")

    def limit(self, first: RunKey, second: RunKey) -> Tolerance:
        """Return the allowed difference of two runs."""
        return self.tolerance if first[1] == second[1] else self.tolerance.between_executors()

    def _judge(self, run: Run, name: str) -> Judgement:
        return judge(run.outcomes, name, self.tolerance, self.tolerance.between_executors())

    def _drawn(
        self, executor: str, drawer: Drawer, plan: list[_PlannedTrial], seed: int, total: int
    ) -> list[Run]:
        """Return runs of the first model on inputs drawn for it."""
        if self._done:
            end_large_worker()
        source, key = self.sources[Side.REFERENCE], (Side.REFERENCE, executor)
        names = list(source.outputs)

        def run_reference(
            runner: Runner, feeds: dict[str, Any]
        ) -> tuple[dict[RunKey, RunOutcome], bool]:
            known = self._run_once(runner, source, feeds, names)
            return {key: known}, known.values is not None

        def draw() -> list[Run]:
            runner = open_isolated(source, executor)
            runs = list(
                draw_runs(
                    _wanted(drawer, plan, seed, self.accepted), partial(run_reference, runner)
                )
            )
            self.not_run = runner.subgraphs_not_run()
            return runs

        found = self._stage(key, draw, len(plan), total) or []
        if found and len(found) < sum(item.size is None for item in plan):
            raise _too_large(drawer, list(drawer.choices(0, RandomArrays(seed))))
        return found

    def _complete(self, found: Iterable[Run], steps: int, total: int) -> list[Run]:
        """Add the outcomes of the models and executors that have not run the inputs yet."""
        runs = list(found)
        for executor in self.executors:
            for side in self.sources:
                key = (side, executor)
                if key in self.reasons or any(key in run.outcomes for run in runs):
                    continue
                outcomes = self._stage(key, partial(self._run_all, key, runs), steps, total)
                for run, outcome in zip(runs, outcomes or (), strict=False):
                    run.outcomes[key] = outcome
            end_large_worker()
        return runs

    def _stage(self, key: RunKey, work: Callable[[], list[Any]], steps: int, total: int) -> Any:
        """Do some work of an executor on a model; return None where it cannot run it."""
        source = self.sources[key[0]]
        if self.progress is not None:
            self.progress(min(self._done, total), total, f"{source.label} in {key[1]}")
        self._done += steps
        try:
            return work()
        except CannotRunError as error:
            self.reasons[key] = short_message(error, source)
            return None
        finally:
            close_unused_models()  # One model in memory at a time.

    def _run_all(self, key: RunKey, runs: Sequence[Run]) -> list[RunOutcome]:
        """Run a model on the inputs of every trial."""
        source, first = self.sources[key[0]], self.sources[Side.REFERENCE]
        runner, names = open_isolated(source, key[1]), list(source.outputs)
        found = [self._run_once(runner, source, run.feeds, names) for run in runs]
        if source is first:
            self.not_run = runner.subgraphs_not_run()
        return found

    def _run_once(
        self, runner: Runner, source: ModelSource, given: Inputs, names: list[str]
    ) -> RunOutcome:
        """Run a model once, on inputs in its dtypes; its outputs are cast as they are compared."""
        casting = self.changed or self.recast or self.narrowed
        first = self.sources[Side.REFERENCE]
        feeds = cast_values(given, source.inputs) if casting and source is not first else given
        outcome = run_once(runner, dict(feeds), names)
        if casting and outcome.values is not None:
            outcome = outcome._replace(values=cast_values(outcome.values, self._compared_types()))
        return outcome._replace(failure=short_message(outcome.failure, source))

    def _compared_types(self) -> dict[str, TypeProto]:
        """Return the types in which outputs are compared: the first model's, or narrower ones."""
        first = dict(self.sources[Side.REFERENCE].outputs)
        second = self.sources[Side.CANDIDATE].outputs
        narrower = {
            name: second[name] for name in self.recast if self._is_narrower(name, "outputs")
        }
        return {**first, **narrower}

    def _is_narrower(self, name: str, where: Literal["inputs", "outputs"]) -> bool:
        """Return whether the second model's input or output of a name holds fewer values."""
        types = [getattr(source, where).get(name) for source in self.sources.values()]
        if len(types) < len(Side) or None in types:
            return False
        return narrows(*(item.tensor_type.elem_type for item in types))

    def accepted(self, feeds: Inputs) -> dict[str, Any]:
        """Return inputs with those values alone that the second model can be given."""
        retyped = self.recast | self.narrowed
        names = [name for name in retyped if self._is_narrower(name, "inputs")]
        if not names:
            return dict(feeds)
        mine = {name: feeds[name] for name in names if name in feeds}
        first, second = self.sources[Side.REFERENCE], self.sources[Side.CANDIDATE]
        return {**feeds, **cast_values(cast_values(mine, second.inputs), first.inputs)}

    def recast_remarks(self) -> Iterator[str]:
        """Yield what the models ran on, where the second holds fewer values."""
        retyped = self.recast | self.narrowed
        types = self.sources[Side.CANDIDATE].inputs if retyped else {}
        names = [name for name in types if name in retyped]
        narrow = [name for name in names if self._is_narrower(name, "inputs")]
        for name in narrow:
            dtype = dtype_name(types[name].tensor_type.elem_type)
            yield f"input {name}: both models ran on values of {dtype}, to which they were cast"

    def recast_warnings(self, given: Sequence[Inputs]) -> Iterator[str]:
        """Yield which inputs of those given were changed by a cast to an integer, or overflowed."""
        changed = Counter[str]()
        for feeds in given:
            for name, value in self.accepted(feeds).items():
                changed[name] += _misfits(np.asarray(feeds[name]), value)
        for name, number in changed.items():
            if number:
                yield (
                    f"input {name}: {count(number, 'element')} given cannot be given in the new "
                    "dtype; the models were compared on what a cast makes of them"
                )

    def range_remarks(self) -> Iterator[str]:
        """Yield the ends of the stated ranges at which the models ran."""
        for name in self.stated:
            values = [run.feeds[name] for run in self._at_ends() if name in run.feeds]
            if any(value.size for value in values):
                ends = [int(end) for v in values if v.size for end in (v.min(), v.max())]
                yield f"input {name}: run at {min(ends)} and {max(ends)}, as its range is stated"
            elif name not in self.sources[Side.REFERENCE].inputs:
                ran = self._sizes(name).intersection(self.stated[name])
                if ran:
                    yield f"dimension {name}: run at {listed([str(size) for size in sorted(ran)])}"

    def range_warnings(self, given: Sequence[Inputs]) -> Iterator[str]:
        """Yield which stated ranges the models did not run at, and which inputs lie beyond one."""
        inputs = self.sources[Side.REFERENCE].inputs
        ran = self._at_ends()
        for name, (low, high) in self.stated.items():
            said = f"--assume-range {name}={low}:{high}"
            sizes = self._sizes(name) if name not in inputs else set()
            if sizes:
                if not {low, high} <= sizes:
                    yield f"{said} is taken as stated: the models did not run at both its ends"
            elif name not in inputs:
                yield f"{said} is taken as stated: no input is drawn at its ends, as it is computed"
            elif all(name in feeds for feeds in given):
                values = [np.asarray(feeds[name]) for feeds in given]
                beyond = sum(int(np.sum((item < low) | (item > high))) for item in values)
                if beyond:
                    yield f"{said} does not hold: {count(beyond, 'element')} given lie beyond it"
            elif not any(run.feeds[name].size for run in ran):
                yield f"{said} is taken as stated: the models did not run at its ends"

    def _sizes(self, key: str) -> set[int]:
        """Return the sizes at which the models ran of a dimension of their inputs."""
        places = [
            (name, axis)
            for name, proto in self.sources[Side.REFERENCE].inputs.items()
            for axis, dim in enumerate(proto.tensor_type.shape.dim)
            if dim.dim_param == key
        ]
        runs = [run for run in self.runs if run.accepted]
        return {run.feeds[name].shape[axis] for run in runs for name, axis in places}

    def _at_ends(self) -> list[Run]:
        return [run for run in self.runs if run.values == ENDS and run.accepted]

    def trials(self) -> Iterator[Trial]:
        """Yield each set of inputs for the report."""
        for number, run in enumerate(self.runs):
            yield Trial(number, run.values, _shapes(run.feeds))

    def why_void(self, number: int) -> str:
        """Return why no outputs could be compared on a set of inputs."""
        reasons = [item.failure for item in self.runs[number].outcomes.values() if item.failure]
        return reasons[0] if reasons else "no two results to compare"

    def executor_runs(self) -> Iterator[ExecutorRun]:
        """Yield the runs of each model in each executor for the report."""
        for side, source in self.sources.items():
            for executor in self.executors:
                key = (side, executor)
                outcomes = [run.outcomes[key] for run in self.runs if key in run.outcomes]
                failures = [outcome.failure for outcome in outcomes if outcome.failure]
                reason = self.reasons.get(key, failures[0] if failures else "")
                ran = sum(outcome.values is not None for outcome in outcomes)
                yield ExecutorRun(source.label, executor, ran, reason)


class _PlannedTrial(NamedTuple):
    """A trial to come.

    Attributes:
        given: the inputs that are not drawn.
        values: the value profile of the others; ``given`` where there are none.
        level: of the profile `LEVEL`, which value, and on which side of it; of `ENDS`, which end.
        size: the choice of shapes that the trial is for; None for any.
    """

    given: Inputs
    values: str
    level: int = 0
    size: ShapeChoice | None = None


def _misfits(before: Any, after: Any) -> int:
    """Return how many numbers are others after a cast there and back, rounding left aside."""
    if not isinstance(after, np.ndarray) or before.dtype.kind in "OSU":
        return 0
    if is_float(before.dtype):
        with np.errstate(all="ignore"):
            return int(np.sum(np.isfinite(before) & (np.abs(after - before) > np.abs(before) / 4)))
    return int(np.sum(before != after))


def _wanted(
    drawer: Drawer,
    plan: list[_PlannedTrial],
    seed: int,
    accepted: Callable[[Inputs], dict[str, Any]],
) -> Iterator[InputRequest]:
    """Yield the requests for inputs, each with random numbers of its own.

    Args:
        drawer: of the model.
        plan: the trials.
        seed: of the numbers.
        accepted: replaces values that the second model cannot be given.
    """
    for number, item in enumerate(plan):
        rng = RandomArrays(seed, number)
        choices = list(drawer.choices(number, rng))
        if item.size is not None:
            yield InputRequest(
                ORDINARY, [item.size], _Draw(drawer, item, rng, accepted), optional=True
            )
            continue
        if item.values == "given":
            choices = choices[:1]
        before = drawer.many_rows(choices[0]) if item.values in OF_MANY_ROWS else []
        draw = _Draw(drawer, item, rng, accepted)
        # Where the model does not accept such values, ordinary ones take their place.
        times = 2 if item.values in BY_THE_MODEL else 1
        yield InputRequest(item.values, choices, draw, times, before)


class _Draw:
    """Draws the inputs of a trial.

    Args:
        drawer: of the model.
        planned: the trial.
        rng: where the numbers come from.
        accepted: replaces values that the second model cannot be given.
    """

    def __init__(
        self,
        drawer: Drawer,
        planned: _PlannedTrial,
        rng: RandomArrays,
        accepted: Callable[[Inputs], dict[str, Any]],
    ) -> None:
        self._accepted = accepted
        self._drawer = drawer
        self._planned = planned
        self._rng = rng
        self._last: ShapeChoice | None = None

    def __call__(self, choice: ShapeChoice) -> dict[str, Any] | None:
        """Draw inputs, ordinary ones the second time; None where they would be too large."""
        given, values, level, _ = self._planned
        fitting = _with_small_batch(self._drawer, choice)
        if not given and self._drawer.elements(fitting) > _MOST:
            return None
        if self._last == choice:
            values = ORDINARY
        self._last = choice
        return self._accepted(self._drawer.draw(fitting, values, self._rng, given, level=level))


def _plan(
    given: list[Inputs], drawer: Drawer, source: ModelSource, trials: int | None, special: bool
) -> list[_PlannedTrial]:
    """Return the trials: those asked for, and those that what the model compares asks for."""
    plan: list[_PlannedTrial] = []
    if trials is None:
        trials = OF_LARGE if drawer.is_large else len(PROFILES)
    for inputs in given:
        if source.inputs and set(source.inputs) <= set(inputs):
            plan.append(_PlannedTrial(inputs, "given"))
        elif not source.inputs:
            plan.append(_PlannedTrial(inputs, ORDINARY))
        else:
            plan += [_PlannedTrial(inputs, values) for values in profiles(trials, special)]
            plan += [_PlannedTrial(inputs, LEVEL, level) for level in range(drawer.levels)]
            if any(name not in inputs for name in drawer.stated):
                plan += [_PlannedTrial(inputs, ENDS, level) for level in range(3)]
            sizes = () if inputs else (*drawer.stated_sizes(), *drawer.sizes())
            plan += [_PlannedTrial(inputs, ORDINARY, size=size) for size in sizes]
    return plan


def _too_large(drawer: Drawer, choices: Sequence[ShapeChoice]) -> InputError:
    return InputError(
        f"inputs of {drawer.elements(choices[0]):,} elements are too large to draw; "
        "say smaller sizes: --dim NAME=SIZE, or give inputs: -i NAME=FILE.npy"
    )


def _with_small_batch(drawer: Drawer, choice: ShapeChoice) -> ShapeChoice:
    """Return a choice of shapes, with a batch of one where tensors would be large."""
    if drawer.elements(choice) <= _MANY:
        return choice
    first = [name for name in drawer.symbols if name not in choice.sizes][:1]
    return choice._replace(sizes={**dict.fromkeys(first, 1), **choice.sizes})


def _unfit(drawer: Drawer, plan: list[_PlannedTrial]) -> str:
    """Return the advice where a model accepts no inputs."""
    if all(item.values == "given" for item in plan):
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
