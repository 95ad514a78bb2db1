"""A limit of time for runs, looked at after each node."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from onnxreduce_cli.executor.errors import UnsupportedError

_END: ContextVar[float | None] = ContextVar("end", default=None)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Let runs of models in this thread end soon after so many seconds."""
    token = _END.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _END.reset(token)


def end() -> float | None:
    """When runs have to end, by `time.monotonic`; None where nothing limits them."""
    return _END.get()


def late() -> UnsupportedError:
    """Build the error for a run that has not ended in time."""
    return UnsupportedError("it takes longer than it may")
