"""Calls on many items, wherever they are made: one way of handing them out and of results."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

#: In seconds: so long is waited for a result before signals are looked at.
_PAUSE = 0.5

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class CrashedCall:
    """The result of a call in whose middle its process ended.

    Attributes:
        cause: what ended it, such as ``SIGSEGV`` or ``exit code 1``.
        memory: the bytes of memory that it took more than, if it was ended for that.
    """

    cause: str
    memory: int | None = None


class Pool(Executor):
    """An executor that gives `CrashedCall` for a call that ends its process, and goes on.

    With ``cancel_futures``, `shutdown` stops the calls that are at work too.

    Attributes:
        ahead: how many calls it is given before the first of them is done: no more than what keeps
            all of it at work.
        repeats: whether a call is made again that was lost with the machine that made it.
    """

    ahead: int
    repeats: bool = False


def call_apart(
    function: Callable[[Item], Result], items: Iterable[Item], pool: Pool
) -> Generator[tuple[Item, Result | CrashedCall]]:
    """Call a function on each item in a pool, which is shut down at the end.

    Items are drawn when the pool has room for them. Results come as they are ready. Leaving early
    stops the calls: each gets to clear up what it was doing.

    Args:
        function: a function of a module, as its name goes to another process.
        items: what it is called on; they and results must be picklable.
        pool: where.
    """
    waiting = iter(items)
    under_way: dict[Future[Any], Item] = {}
    # Not `wait`, which looks at all that are under way each time that one is done.
    done: SimpleQueue[Future[Any]] = SimpleQueue()
    try:
        while True:
            # There may be less room than before: a machine is lost.
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
    """Wait for a call to be done.

    A signal between the interpreter's last look and the wait ends no wait: it would be handled
    once a call is done, which may be much later.
    """
    while True:
        try:
            return done.get(timeout=_PAUSE)
        except Empty:
            continue
