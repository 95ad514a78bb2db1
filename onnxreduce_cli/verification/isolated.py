"""Runners in a separate process.

ONNX Runtime ends the process on some inputs (the lowest integer divided by -1) and some models
(attention over no heads), and a loop need not end. Here that costs a run, not the caller.
"""

from __future__ import annotations

import itertools
import os
import pickle
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from onnxreduce_cli.verification.errors import CannotRunError, RunFailedError
from onnxreduce_cli.verification.runtime import Runner, open_runner
from onnxreduce_cli.verification.source import Source

#: How long a model with loops may run, in seconds.
LIMIT = 60.0

# Not `-m`, which would look for modules in the current folder.
_START = (
    "import sys; sys.path[:] = {!r}; from onnxreduce_cli.verification.child import main; main()"
)

_keys = itertools.count()


class _EndedError(Exception):
    """The process has ended; the message says how."""


class _LateError(_EndedError):
    """It was ended for taking too long."""


class _Child:
    """A process that runs models for the thread that started it.

    Attributes:
        forgotten: keys of the models that are no longer needed; sent with the next request.
    """

    def __init__(self) -> None:
        self.forgotten: list[int] = []
        self._owner = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START.format(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Output of native code that crashes is not for the user; its exit status is reported.
            stderr=subprocess.DEVNULL,
        )
        # It may be in a loop without end, so it is killed.
        self._end = weakref.finalize(self, _end, self._process)

    @property
    def alive(self) -> bool:
        """True if it can take requests: after a fork only those of the process that started it."""
        return self._owner == os.getpid() and self._process.poll() is None

    def ask(self, request: str, key: int, *arguments: Any, limit: float | None = None) -> Any:
        """Send a request and wait for the answer, at most `limit` seconds.

        Raises:
            _EndedError: the process has ended.
            _LateError: it took too long.
        """
        requests, replies = self._process.stdin, self._process.stdout
        assert requests is not None
        assert replies is not None
        late = threading.Event()
        watch = threading.Timer(limit or 0.0, self._stop, [late])
        forgotten, self.forgotten = self.forgotten, []
        try:
            if limit is not None:
                watch.start()
            pickle.dump((request, key, forgotten, *arguments), requests, protocol=5)
            requests.flush()
            result, problem = pickle.load(replies)
        except (OSError, EOFError, pickle.UnpicklingError):
            raise (_LateError if late.is_set() else _EndedError)(self._how()) from None
        except KeyboardInterrupt:
            self._end()
            raise
        finally:
            watch.cancel()
        if problem is not None:
            raise problem
        return result

    def _stop(self, late: threading.Event) -> None:
        late.set()
        self._process.kill()

    def _how(self) -> str:
        code = self._process.wait()
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"exit code {code}"


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        try:
            if pipe is not None:
                pipe.close()
        except OSError:
            pass  # A request that it did not read to the end is lost with it.


_local = threading.local()


def _child() -> _Child:
    """The process that serves this thread; a new one if the last has ended."""
    current: _Child | None = getattr(_local, "child", None)
    if current is None or not current.alive:
        current = _local.child = _Child()
    return current


class IsolatedRunner:
    """A model made ready to run in another process."""

    def __init__(
        self,
        source: Source,
        executor: str,
        extra: Sequence[str] = (),
        *,
        limit: float | None = None,
    ) -> None:
        """Open the model in the process.

        Args:
            source: the model.
            executor: one of `runtime.EXECUTORS`.
            extra: names of values of the main graph that a run can return beside its outputs.
            limit: how long a run may take, in seconds; None for as long as it takes.

        Raises:
            CannotRunError: the executor cannot run the model.
        """
        self._key = next(_keys)
        self._arguments = (source, executor, tuple(extra))
        self._limit = limit
        self._late = False
        self._opened_in: _Child | None = None
        self._open()

    def __del__(self) -> None:
        """Free the model in the process too: one session in memory at a time."""
        if self._opened_in is not None:
            self._opened_in.forgotten.append(self._key)

    def _open(self) -> _Child:
        child = _child()
        if child is not self._opened_in:
            try:
                child.ask("open", self._key, *self._arguments)
            except _EndedError as error:
                raise CannotRunError(f"it crashed when it read the model ({error})") from None
            self._opened_in = child
        return child

    def run(self, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """Run the model once; see `runtime.Runner.run`."""
        if self._late:
            # It would hold up every trial.
            raise RunFailedError("it is not tried again after a run that did not end")
        child = self._open()
        try:
            found: dict[str, Any] = child.ask(
                "run", self._key, dict(feeds), list(names), limit=self._limit
            )
        except _LateError:
            self._late = True
            raise RunFailedError(f"it did not end within {self._limit:.0f} seconds") from None
        except _EndedError as error:
            raise RunFailedError(f"it crashed on these inputs ({error})") from None
        return found


def open_isolated(
    source: Source, executor: str, *, extra: Sequence[str] = (), patient: bool = False
) -> Runner:
    """Make a model ready to run such that nothing it does can end or hold up this process.

    Args:
        source: the model.
        executor: one of `runtime.EXECUTORS`.
        extra: names of values of the main graph that a run can return beside its outputs.
        patient: whether a model with loops may take longer than `LIMIT`.

    Raises:
        CannotRunError: the executor cannot run the model.
    """
    limited = source.loops and not patient
    if executor == "onnxruntime" or limited:
        return IsolatedRunner(source, executor, extra, limit=LIMIT if limited else None)
    return open_runner(source, executor, extra=extra)
