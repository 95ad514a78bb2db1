"""Runners in a separate process.

ONNX Runtime ends the process on some inputs (the lowest integer divided by -1) and some models
(attention over no heads), and a loop need not end. Here that costs a run, not the caller.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count, islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, ValueInfoProto

from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.verification.errors import CannotRunError, CrashedError
from onnxreduce_cli.verification.limits import Limits, current
from onnxreduce_cli.verification.process import (
    EndedError,
    Reply,
    Step,
    UnansweredError,
    start,
)
from onnxreduce_cli.verification.source import Source

#: The executors as people call them.
CALLED = {"onnxruntime": "ONNX Runtime", "numpy": "the NumPy executor"}

_keys = count()


class IsolatedRunner:
    """A model made ready to run in another process.

    It begins to open the model at once; `ready` waits until it is open.

    Attributes:
        source: the model.
        executor: what runs it.
        process: where.
        key: what the process knows it by.
    """

    def __init__(
        self,
        source: Source,
        executor: str,
        extra: Sequence[str] = (),
        *,
        limits: Limits | None = None,
        threads: int = 0,
    ) -> None:
        """Begin to open the model.

        Args:
            source: the model.
            executor: one of `runtime.EXECUTORS`.
            extra: names of values of the main graph that a run can return beside its outputs.
            limits: on opening, and on each run; by default the `current` ones.
            threads: how many threads ONNX Runtime may use; 0 for its own choice.

        Raises:
            CannotRunError: it cannot be given to another process.
        """
        self.key = next(_keys)
        self.executor = executor
        self._limits = limits or current()
        self.source = source
        self._extra = tuple(extra)
        self._threads = threads
        self._refused: CannotRunError | None = None
        self._opening: Reply | None = self._open()

    def __del__(self) -> None:
        """Free the model in the process too: one session in memory at a time."""
        process = getattr(self, "process", None)
        if process is not None:
            process.forgotten.append(self.key)

    def ready(self) -> None:
        """Wait until the model is open, in a new process where the last one has ended.

        Raises:
            CannotRunError: the executor cannot run the model.
            LimitError: opening it takes too long, or too much memory.
        """
        if self._refused is not None:
            raise self._refused
        if self._opening is None and not self.process.alive:
            self._opening = self._open()
        while self._opening is not None:
            opening, self._opening = self._opening, None
            try:
                _values(opening.get()[0])
            except UnansweredError:
                self._opening = self._open()
            except EndedError as error:
                what = f"{CALLED[self.executor]} ended with {error} on this model"
                self._refused = CannotRunError(what)
                raise self._refused from None
            except CannotRunError as error:
                self._refused = error
                raise

    def run(self, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """Run the model once; see `runtime.Runner.run`.

        Raises:
            CrashedError: it ended the process.
            LimitError: it takes too long, or too much memory.
            RunFailedError: it failed on these inputs.
            CannotRunError: the executor turned out not to support something.
        """
        self.ready()
        try:
            reply = self.process.send([_run_step([self], feeds, names)], self._limits)
            found = _values(reply.get()[0])
        except EndedError as error:
            raise CrashedError(
                f"{CALLED[self.executor]} ended with {error} on these inputs"
            ) from None
        return dict(zip(names, found, strict=True))

    def _open(self) -> Reply:
        form = _form(self.source, self.executor, self._extra)
        header = {
            "do": "open",
            "key": self.key,
            "path": form.path,
            "base_dir": form.base_dir,
            "threads": self._threads,
        }
        self._limits = replace(self._limits, mapped=form.mapped)
        self.process = start(self.executor)
        return self.process.send([(header, [form.content])], self._limits, small=True)


def run_all(
    runners: Sequence[IsolatedRunner],
    sets: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    limits: Limits,
) -> list[list[dict[str, Any] | Exception]]:
    """Run open models of one process on several sets of inputs, all by one request.

    Args:
        runners: the models; each is `ready`.
        sets: inputs by name.
        names: the values wanted.
        limits: on all runs for one set.

    Returns:
        for each set of inputs and each model its outputs, or the exception that `run` raises.

    Raises:
        CrashedError: some run ended the process.
        LimitError: some run takes too long.
    """
    steps = [_run_step(runners, feeds, names) for feeds in sets]
    try:
        found = iter(runners[0].process.send(steps, limits).get())
    except EndedError as error:
        raise CrashedError(f"{CALLED[runners[0].executor]} ended with {error}") from None
    return [
        [
            result if isinstance(result, Exception) else dict(zip(names, result, strict=True))
            for result in islice(found, len(runners))
        ]
        for _ in sets
    ]


def _run_step(
    runners: Sequence[IsolatedRunner], feeds: Mapping[str, Any], names: Sequence[str]
) -> Step:
    keys = [runner.key for runner in runners]
    step = {"do": "run", "keys": keys, "feeds": list(feeds), "names": list(names)}
    return step, list(feeds.values())


def _values(result: list[Any] | Exception) -> list[Any]:
    if isinstance(result, Exception):
        raise result
    return result


class _Form(NamedTuple):
    """How a model goes to a process: in a file, as content, or as both, one behind the other.

    Attributes:
        path: the file.
        base_dir: the folder that external data is relative to.
        mapped: how many bytes of external data there are.
        content: bytes.
    """

    path: str | None
    base_dir: str
    mapped: int
    content: npt.NDArray[np.uint8] | None


def _form(source: Source, executor: str, extra: Sequence[str]) -> _Form:
    """Return how a model goes to a process that is to give some values beside its outputs.

    To ONNX Runtime these are outputs, which are put behind the others without parsing its weights,
    as protobuf joins messages that follow each other. A large file's weights are mapped then: they
    are to be looked at again and again. As the file is, it is read for its outputs.

    Raises:
        CannotRunError: protobuf has no form for a model of 2 GB and more.
    """
    path, base_dir, mapped, content = source.path, source.base_dir, source.mapped, b""
    if source.model is not None:
        try:
            content = source.model.SerializeToString()
        except ValueError as error:
            raise CannotRunError(f"it cannot be given to {CALLED[executor]}: {error}") from error
    suffix = ModelProto()
    if executor == "onnxruntime":
        more = [name for name in extra if name not in source.outputs]
        suffix.graph.output.extend(ValueInfoProto(name=name) for name in more)
    if suffix.graph.output:
        if path is not None and source.in_place is not None:
            mapped = os.path.getsize(path)
            path, (content, base_dir) = None, source.in_place
        content += suffix.SerializeToString()
    return _Form(path, base_dir, mapped, np.frombuffer(content, np.uint8) if content else None)


def open_isolated(
    source: Source,
    executor: str,
    *,
    extra: Sequence[str] = (),
) -> IsolatedRunner:
    """Make a model ready to run such that nothing it does can end or hold up this process.

    It runs within the limits of `limits.current`.

    Args:
        source: the model.
        executor: one of `runtime.EXECUTORS`.
        extra: names of values of the main graph that a run can return beside its outputs.

    Raises:
        CannotRunError: the executor cannot run the model, or not within the limits.
        UsageError: there is no such executor.
    """
    if executor not in CALLED:
        raise UsageError(f"there is no executor {executor!r}; there are {', '.join(CALLED)}")
    runner = IsolatedRunner(source, executor, extra)
    runner.ready()
    return runner
