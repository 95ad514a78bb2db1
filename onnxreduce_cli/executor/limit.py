"""A time limit for runs, checked after each node."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from onnxreduce_cli.executor.errors import UnsupportedError

_END: ContextVar[float | None] = ContextVar("end", default=None)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Limit the time of runs in this thread to about `seconds`."""
    token = _END.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _END.reset(token)


def deadline() -> float | None:
    """Return the time when runs must end, by `time.monotonic`; None without a limit."""
    return _END.get()


def too_late() -> UnsupportedError:
    """Return the exception for a run that took longer than its limit."""
    return UnsupportedError("it takes longer than it may")
