"""A pool of workers on this machine: a call that crashes does not affect the others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from onnxreduce_cli.batch.pool import CrashedCall, Pool
from onnxreduce_cli.worker.process import EndedError, TooLargeError, Worker

#: The limit of a call's memory, as a multiple of the memory that it is expected to take.
_ROOM = 8


class Processes(Pool):
    """A pool of threads, each of which has a worker.

    Args:
        at_once: the number of workers.
        folder: the workers' current folder; None for that of this process.
        memory: returns the bytes of memory that a call is expected to take; None for no limit.
    """

    def __init__(
        self,
        at_once: int,
        folder: str | None = None,
        memory: Callable[..., int] | None = None,
    ) -> None:
        self.ahead = at_once
        self._folder = folder
        self._memory = memory
        self._threads = ThreadPoolExecutor(at_once)
        self._own = threading.local()
        self._workers: set[Worker] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Call a function of a module in a worker; function and arguments must be picklable."""
        assert not named
        need = None if self._memory is None else self._memory(*arguments)
        return self.submit_large(need, function, *arguments)

    def submit_large(
        self, need: int | None, function: Callable[..., Any], /, *arguments: Any
    ) -> Future[Any]:
        """Call a function that is expected to take `need` bytes of memory; see `submit`."""
        return self._threads.submit(self._call, need, function, arguments)

    def _call(
        self, need: int | None, function: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> Any:
        with self._lock:
            if self._stopped:
                return CrashedCall("SIGTERM")
            worker: Worker | None = getattr(self._own, "worker", None)
            if worker is None:
                worker = self._own.worker = Worker(folder=self._folder, quiet=False)
                self._workers.add(worker)
        room = None if need is None else _ROOM * need
        try:
            return worker.call(function, *arguments, memory=room)
        except EndedError as error:
            with self._lock:
                self._workers.discard(worker)
                self._own.worker = None
            if isinstance(error, TooLargeError):
                assert room is not None
                return CrashedCall("SIGKILL", room)
            return CrashedCall(str(error))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers: once all calls are done, or at once with `cancel_futures`."""
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
