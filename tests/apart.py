"""Calls in a process of its own, reused: what they may do is end, hang, or eat memory."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any


class EndedError(Exception):
    """The process has ended amid the call."""


class LateError(Exception):
    """The call took too long, and was ended."""


class Apart:
    """A process that takes one call after the other; a new one where it has ended."""

    def __init__(self, prepare: Callable[[], None] | None = None) -> None:
        """Name what is called first in each process."""
        self._prepare = prepare
        self._pool: ProcessPoolExecutor | None = None

    def call(self, function: Callable[..., Any], *arguments: Any, seconds: float) -> Any:
        """What the function gives or raises there.

        Raises:
            EndedError: it ended the process.
            LateError: it took longer than so many seconds.
        """
        if self._pool is None:
            # Not forked: threads of native code do not come along.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, context, self._prepare)
        try:
            return self._pool.submit(function, *arguments).result(seconds)
        except BrokenProcessPool as error:
            self._pool = None
            raise EndedError(str(error)) from error
        except TimeoutError as error:
            self.end()
            raise LateError(f"not done after {seconds:.0f} seconds") from error

    def end(self) -> None:
        """End the process, whatever it does."""
        if self._pool is None:
            return
        for process in list(self._pool._processes.values()):
            process.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._pool = None
