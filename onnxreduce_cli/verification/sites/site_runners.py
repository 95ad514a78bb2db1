"""Both sides of a site in every executor: here, and in few requests to the worker."""

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

#: What a site may take that runs in a process of its own: its tensors are small.
_LIMITS = Limits(timeout=10.0, memory=2_000_000_000, by_options=False)

#: How many seconds one site may take.
SECONDS = 30

#: The bytes of inputs and outputs that wait until one request runs them all.
_MOST = 1 << 22


class SiteRunner(IsolatedRunner):
    """One side of a site, made ready to run in another process.

    Attributes:
        lost: how it ended the process, or that it did not end; empty if it did neither. It is not
            asked again then, and says nothing about the site.
    """

    failure = ""

    def run(self, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """Run it once; see `runtime.Runner.run`."""
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
        the runners, and for those that cannot run a side the reasons.
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
    """Run one side of a site once; an executor that cannot has nothing to say on these inputs."""
    try:
        with time_limit(SECONDS):
            return run_once(runner, feeds, names)
    except CannotRunError:
        return UNSUPPORTED


def in_process(runners: Mapping[RunKey, Runner]) -> dict[RunKey, Runner]:
    """The runners in this process; none if the original does not run here."""
    found = {key: item for key, item in runners.items() if not isinstance(item, SiteRunner)}
    return found if (Side.REFERENCE, "numpy") in found else {}


def add_worker_outcomes(
    found: Iterable[Run], runners: Mapping[RunKey, Runner], names: Sequence[str]
) -> Iterator[Run]:
    """Add what the processes make of inputs that the original accepts here.

    Args:
        found: the runs; those on inputs that the original does not accept are left out.
        runners: all of the site.
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
    """The bytes of a run's tensors; strings and sequences are small."""
    values = [*run.feeds.values()]
    for outcome in run.outcomes.values():
        values += (outcome.values or {}).values()
    return sum(value.nbytes for value in values if isinstance(value, np.ndarray))


def _add(runs: list[Run], others: Mapping[RunKey, SiteRunner], names: Sequence[str]) -> None:
    """Add the outcomes of the processes to runs, in place, by one request if nothing ends."""
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
        # `ready` may have started a new process: both are opened in the last one.
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
    """Return whether some tensor is empty: then only the NumPy executor is asked.

    Kernels of ONNX Runtime divide by a size of 0 and end the process (LSTM, CumProd).
    """
    return any(isinstance(value, np.ndarray) and not value.size for value in feeds.values())


def worker_failure(runners: Mapping[RunKey, Runner], side: Side) -> str:
    """Return how running a side ended a process, or did not end; empty if neither happened."""
    found = [
        runner.failure
        for key, runner in runners.items()
        if isinstance(runner, SiteRunner) and key[0] is side and runner.failure
    ]
    return found[0] if found else ""
