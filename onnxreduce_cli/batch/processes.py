"""Calls in separate processes, so that one that crashes does not affect the others."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import Any, BinaryIO

from onnxreduce_cli.batch.pool import Died, Pool

#: The time in seconds that a process may take to clear up after SIGTERM.
_PATIENCE = 5

# Not `-m`, which would look for modules in the current folder. Nor `multiprocessing`, which starts
# nothing in the workers of Dask, whose children might outlive them: these end with their caller.
_START = "import sys; sys.path[:] = {!r}; from onnxreduce_cli.batch.processes import serve; serve()"


class _Worker:
    """A process that answers one call after another."""

    def __init__(self, folder: str | None) -> None:
        # Started anew, not forked: ONNX Runtime's threads would not be in a copy, but its locks.
        with _interruption_blocked():
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START.format(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=folder,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Return what the function gives, or `Died`."""
        request = pickle.dumps((function, arguments))
        try:
            # Twice, so that it can be received as it is and understood afterwards.
            pickle.dump(request, self._requests)
            self._requests.flush()
            return pickle.load(self._answers)
        except (EOFError, OSError, pickle.UnpicklingError):
            return Died(_how(self._process.wait()))

    def stop(self) -> None:
        self._process.terminate()

    def wait(self) -> None:
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Processes(Pool):
    """A pool of processes on this machine.

    Args:
        at_once: how many there may be.
        folder: their current folder; None for that of this process.
    """

    def __init__(self, at_once: int, folder: str | None = None) -> None:
        self.ahead = at_once
        self._folder = folder
        # Each waits for a process.
        self._threads = ThreadPoolExecutor(at_once)
        self._workers: set[_Worker] = set()
        self._idle: list[_Worker] = []
        self._lock = threading.Lock()
        self._stopped = False

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Call a function of a module in one of the processes; all must be picklable."""
        assert not named
        return self._threads.submit(self._call, function, arguments)

    def _call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        with self._lock:
            if self._stopped:
                return Died("SIGTERM")
            worker = self._idle.pop() if self._idle else _Worker(self._folder)
            self._workers.add(worker)
        found = worker.call(function, arguments)
        with self._lock:
            if isinstance(found, Died):
                self._workers.remove(worker)
            else:
                self._idle.append(worker)
        return found

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes: once all calls are done, or at once if these are cancelled."""
        if not cancel_futures:
            self._threads.shutdown(wait)
        with self._lock:
            self._stopped = True
            workers = list(self._workers)
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.wait()
        self._threads.shutdown(wait, cancel_futures=True)


def serve() -> None:
    """Answer calls, as the main loop of a process, until nobody is there who makes them."""
    # An interruption goes to the whole group; the caller handles it, and then ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # As an exception, so that temporary files are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    answers = os.fdopen(os.dup(1), "wb")
    # What native code prints there is no answer.
    os.dup2(2, 1)
    calls: SimpleQueue[bytes] = SimpleQueue()
    requests = os.fdopen(0, "rb", closefd=False)
    threading.Thread(target=_receive, args=(requests, calls), daemon=True).start()
    with suppress(OSError):
        while request := calls.get():
            function, arguments = pickle.loads(request)
            answer = pickle.dumps(function(*arguments))
            answers.write(answer)
            answers.flush()


def _receive(requests: BinaryIO, calls: SimpleQueue[bytes]) -> None:
    """Receive calls; once the caller is no more, end this process, whatever it is doing."""
    with suppress(EOFError, OSError, pickle.UnpicklingError):
        while True:
            calls.put(pickle.load(requests))
    # Should the signal come just before it begins to wait for a call, it would be waiting on.
    calls.put(b"")
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def _interruption_blocked() -> Iterator[None]:
    """Block SIGINT in a process while it starts, when it would end with a traceback."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Processes inherit it; here an interruption is delivered at the end.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _how(code: int) -> str:
    if code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"
