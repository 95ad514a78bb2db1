"""Handing calls out to a pool, wherever it works."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

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
