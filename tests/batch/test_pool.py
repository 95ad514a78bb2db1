"""Handing calls out to a pool, wherever it works."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from onnxreduce_cli.batch.pool import Pool, call_apart


class Shrinking(Pool):
    """A pool that has room for four calls, and for one once the first is done."""

    def __init__(self) -> None:
        self.ahead = 4
        self.shut = False
        self._waiting: list[Future[Any]] = []

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        found: Future[Any] = Future()
        self._waiting.append(found)
        if len(self._waiting) == 4 or self.ahead == 1:
            self.ahead = 1
            for future in self._waiting:
                if not future.done():
                    future.set_result(function(*arguments, **named))
        return found

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.shut = True


def test_a_pool_may_lose_room_with_calls_under_way() -> None:
    pool = Shrinking()
    found = [item for item, _ in call_apart(abs, range(7), pool)]
    assert sorted(found) == list(range(7))
    assert pool.shut


class Busy(Pool):
    """A pool whose one call takes 30 s; a signal comes that another thread is given meanwhile."""

    def __init__(self) -> None:
        self.ahead = 1
        self.future: Future[Any] = Future()
        self._threads = [
            threading.Timer(30, self.future.set_result, [None]),
            threading.Timer(0.2, self._signal),
        ]

    def _signal(self) -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        for thread in self._threads:
            thread.start()
        return self.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        for thread in self._threads:
            thread.cancel()


@pytest.mark.skipif(sys.platform == "win32", reason="its signals interrupt no waiting at all")
def test_a_signal_that_does_not_end_the_wait_ends_the_run() -> None:
    """As one does that comes just before this thread begins to wait."""

    def handle(number: int, _: object) -> None:
        raise InterruptedError(number)

    pool = Busy()
    before = signal.signal(signal.SIGUSR1, handle)
    try:
        with pytest.raises(InterruptedError):
            list(call_apart(abs, [1], pool))
        assert not pool.future.done()
    finally:
        signal.signal(signal.SIGUSR1, before)
