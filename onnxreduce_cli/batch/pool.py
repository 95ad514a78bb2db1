"""Calls on many items, in processes of this machine or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

#: The seconds to wait for a result before signals are handled.
_PAUSE = 0.5

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class CrashedCall:
    """The result of a call whose process ended during it.

    Attributes:
        cause: how the process ended, such as ``SIGSEGV`` or ``exit code 1``.
        memory: the limit of memory in bytes, if the process was ended for exceeding it.
    """

    cause: str
    memory: int | None = None


class Pool(Executor):
    """An executor that returns `CrashedCall` for a call that ends its process, and goes on.

    With ``cancel_futures``, `shutdown` stops running calls too.

    Attributes:
        ahead: how many calls to submit before the first of them is done: as many as keep all of its
            processes busy.
        repeats: whether a call is made again if its machine is lost.
    """

    ahead: int
    repeats: bool = False


def call_apart(
    function: Callable[[Item], Result], items: Iterable[Item], pool: Pool
) -> Generator[tuple[Item, Result | CrashedCall]]:
    """Call a function on each item in a pool, which is shut down at the end.

    Items are drawn when the pool can take them, and results are yielded as they are ready. Leaving
    early stops the calls, and each cleans up first.

    Args:
        function: a function of a module, which is sent to another process by its name.
        items: the items; they and the results must be picklable.
        pool: the pool.
    """
    waiting = iter(items)
    under_way: dict[Future[Any], Item] = {}
    # Not `wait`, which scans all running calls each time that one is done.
    done: SimpleQueue[Future[Any]] = SimpleQueue()
    try:
        while True:
            # `ahead` may be lower than before, if a machine was lost.
            for item in islice(waiting, max(0, pool.ahead - len(under_way))):
                future = pool.submit(function, item)
                under_way[future] = item
                future.add_done_callback(done.put)
            if not under_way:
                return
            future = _next_done(done)
            yield under_way.pop(future), future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _next_done(done: SimpleQueue[Future[Any]]) -> Future[Any]:
    """Wait until a call is done, and return it.

    A signal that comes just before the wait does not end it: without a timeout it would be handled
    only once a call is done, which may be much later.
    """
    while True:
        try:
            return done.get(timeout=_PAUSE)
        except Empty:
            continue
