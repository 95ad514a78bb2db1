"""Calls in separate processes, so that one that crashes does not affect the others."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

#: The time in seconds that a process may take to clear up after SIGTERM.
_PATIENCE = 5


@dataclass(frozen=True)
class Died:
    """A process ended in the middle of a call.

    Attributes:
        how: what ended it, such as ``SIGSEGV`` or ``exit code 1``.
    """

    how: str


class _Worker(Generic[Item, Result]):
    """A process that answers one call after another."""

    def __init__(self, function: Callable[[Item], Result]) -> None:
        # Spawned, not forked: ONNX Runtime's threads would not be in a copy, but its locks would.
        context = multiprocessing.get_context("spawn")
        self.connection, remote = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=_serve, args=(remote, function), daemon=True
        )
        with _interruption_blocked():
            self._process.start()
        # So that the process's end is the end of what can be received.
        remote.close()

    def send(self, item: Item) -> None:
        with suppress(OSError):  # Where it has ended, `receive` tells.
            self.connection.send(item)

    def receive(self) -> Result | Died:
        try:
            result: Result = self.connection.recv()
        except (EOFError, OSError):
            self._process.join()
            self.connection.close()
            return Died(_how(self._process.exitcode or 0))
        return result

    def stop(self) -> None:
        self._process.terminate()

    def wait(self) -> None:
        self._process.join(_PATIENCE)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self.connection.close()


def call_apart(
    function: Callable[[Item], Result], items: Iterable[Item], at_once: int
) -> Iterator[tuple[Item, Result | Died]]:
    """Call a function on each item in processes, several at once.

    Items are drawn when a process is free for them. Results come as they are ready. Leaving early
    stops the processes: each gets to clear up what it was doing.

    Args:
        function: a function of a module, as its name goes to the process.
        items: what it is called on; they and results must be picklable.
        at_once: how many processes there may be.
    """
    waiting = iter(items)
    idle: list[_Worker[Item, Result]] = []
    busy: dict[Connection, tuple[_Worker[Item, Result], Item]] = {}
    try:
        while True:
            for item in islice(waiting, at_once - len(busy)):
                worker = idle.pop() if idle else _Worker(function)
                busy[worker.connection] = worker, item
                worker.send(item)
            if not busy:
                return
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                worker, item = busy.pop(connection)
                result = worker.receive()
                if not isinstance(result, Died):
                    idle.append(worker)
                yield item, result
    finally:
        workers = [*idle, *(worker for worker, _ in busy.values())]
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.wait()


def _serve(connection: Connection, function: Callable[[Any], Any]) -> None:
    """Answer calls, as the main loop of a process, until the connection is closed."""
    # An interruption goes to the whole group; the caller handles it, and then ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # As an exception, so that temporary files are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with suppress(EOFError, OSError):
        while True:
            connection.send(function(connection.recv()))


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
