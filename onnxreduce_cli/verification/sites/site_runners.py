"""Runners of both sides of a site: in this process, and in few requests to the worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from onnxreduce_cli.executor.limit import time_limit
from onnxreduce_cli.verification.compare.loop import Run
from onnxreduce_cli.verification.compare.outcomes import (
    UNSUPPORTED,
    RunKey,
    RunOutcome,
    Side,
    run_once,
)
from onnxreduce_cli.verification.errors import (
    CannotRunError,
    CrashedError,
    LimitError,
    RunFailedError,
)
from onnxreduce_cli.verification.running.isolated import IsolatedRunner
from onnxreduce_cli.verification.running.limits import Limits
from onnxreduce_cli.verification.running.runtime import EXECUTORS, NumpyRunner, Runner
from onnxreduce_cli.verification.running.source import ModelSource
from onnxreduce_cli.worker.process import UnansweredError

#: The limits of a site in the worker: its tensors are small.
_LIMITS = Limits(timeout=10.0, memory=2_000_000_000, by_options=False)

#: How many seconds one site may take.
SECONDS = 30

#: The bytes of inputs and outputs from which on one request runs all that wait.
_MOST = 1 << 22


class SiteRunner(IsolatedRunner):
    """One side of a site that runs in the worker.

    Attributes:
        lost: how it ended the process, or that it did not end; empty if neither. It does not run
            again then, and proves nothing about the site.
    """

    failure = ""

    def run(self, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """Run the model once; see `runtime.Runner.run`."""
        if self.failure:
            raise CannotRunError(self.failure)
        try:
            return super().run(feeds, names)
        except (CrashedError, LimitError) as error:
            self.failure = str(error)
            raise CannotRunError(self.failure) from error


def open_runners(
    sources: dict[Side, ModelSource],
) -> tuple[dict[RunKey, Runner], dict[RunKey, str]]:
    """Open both sides in every executor.

    ONNX Runtime may still be opening its sides, and refuse them, when this returns, unless the
    NumPy executor lacks one.

    Returns:
        the runners, and the reasons where an executor cannot run a side.
    """
    runners: dict[RunKey, Runner] = {}
    reasons: dict[RunKey, str] = {}
    # The original may be a loop without end; what was made of it ends where it does.
    loops = sources[Side.REFERENCE].loops
    for side, source in sources.items():
        for executor in EXECUTORS:
            try:
                if executor == "onnxruntime" or loops:
                    runners[side, executor] = SiteRunner(
                        source, executor, limits=_LIMITS, threads=1
                    )
                else:
                    assert source.model is not None
                    runners[side, executor] = NumpyRunner(source.model)
            except CannotRunError as error:
                reasons[side, executor] = f"{executor}: {error}"
    for key, runner in list(runners.items()):
        if isinstance(runner, SiteRunner) and (loops or (key[0], "numpy") in reasons):
            try:
                runner.ready()
            except CannotRunError as error:
                del runners[key]
                reasons[key] = f"{key[1]}: {error}"
    return runners, reasons


def run_side(runner: Runner, feeds: Mapping[str, Any], names: Sequence[str]) -> RunOutcome:
    """Run one side of a site once; `UNSUPPORTED` where the executor cannot."""
    try:
        with time_limit(SECONDS):
            return run_once(runner, feeds, names)
    except CannotRunError:
        return UNSUPPORTED


def in_process(runners: Mapping[RunKey, Runner]) -> dict[RunKey, Runner]:
    """Return the runners in this process; none if the original does not run in it."""
    found = {key: item for key, item in runners.items() if not isinstance(item, SiteRunner)}
    return found if (Side.REFERENCE, "numpy") in found else {}


def add_worker_outcomes(
    found: Iterable[Run], runners: Mapping[RunKey, Runner], names: Sequence[str]
) -> Iterator[Run]:
    """Add the worker's outcomes to runs on inputs that the original accepts in this process.

    Args:
        found: the runs; they are left out where the original does not accept the inputs.
        runners: all runners of the site.
        names: its outputs.
    """
    others = {key: item for key, item in runners.items() if isinstance(item, SiteRunner)}
    waiting: list[Run] = []
    size = 0
    for run in (run for run in found if run.accepted):
        waiting.append(run)
        size += _size(run)
        if size > _MOST:
            _add(waiting, others, names)
            yield from waiting
            waiting, size = [], 0
    _add(waiting, others, names)
    yield from waiting


def _size(run: Run) -> int:
    """Return the bytes of a run's tensors; strings and sequences are small."""
    values = [*run.feeds.values()]
    for outcome in run.outcomes.values():
        values += (outcome.values or {}).values()
    return sum(value.nbytes for value in values if isinstance(value, np.ndarray))


def _add(runs: list[Run], others: Mapping[RunKey, SiteRunner], names: Sequence[str]) -> None:
    """Add the worker's outcomes to runs, in place, by one request unless it ends the worker."""
    runs = [
        run for run in runs if others.keys().isdisjoint(run.outcomes) and not has_empty(run.feeds)
    ]
    opened: dict[RunKey, SiteRunner] = {}
    for key, runner in others.items():
        try:
            runner.ready()
            opened[key] = runner
        except CannotRunError:
            continue
    if not runs or not opened:
        return
    try:
        # `ready` may have started a new worker: both models are opened in that.
        for runner in opened.values():
            runner.ready()
        first, sets = next(iter(opened.values())), [run.feeds for run in runs]
        found = first.run_with(list(opened.values()), sets, names)
    except (CannotRunError, CrashedError, UnansweredError):
        for run in runs:
            for key, runner in opened.items():
                run.outcomes[key] = run_side(runner, run.feeds, names)
        return
    for run, results in zip(runs, found, strict=True):
        for key, result in zip(opened, results, strict=True):
            run.outcomes[key] = _outcome(result, opened[key])


def _outcome(result: dict[str, Any] | Exception, runner: SiteRunner) -> RunOutcome:
    if isinstance(result, dict):
        return RunOutcome(result)
    if isinstance(result, RunFailedError):
        return RunOutcome(failure=str(result))
    if isinstance(result, LimitError):
        runner.failure = str(result)
    return UNSUPPORTED


def has_empty(feeds: Mapping[str, Any]) -> bool:
    """Return whether some tensor is empty: then only the NumPy executor runs.

    Kernels of ONNX Runtime divide by a size of 0 and end the process (LSTM, CumProd).
    """
    return any(isinstance(value, np.ndarray) and not value.size for value in feeds.values())


def worker_failure(runners: Mapping[RunKey, Runner], side: Side) -> str:
    """Return how a side ended the worker, or that it did not end; empty if neither."""
    found = [
        runner.failure
        for key, runner in runners.items()
        if isinstance(runner, SiteRunner) and key[0] is side and runner.failure
    ]
    return found[0] if found else ""
