"""How long a model may run, and how much memory it may take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The time and memory that one model may take in a process of its own.

    Attributes:
        timeout: the seconds that loading it may take, and again each run.
        memory: the bytes of memory that the process may have.
        by_options: whether a user can change them by `--timeout` and `--memory`.
        mapped: the bytes of weights in files of their own, which come on top: ONNX Runtime maps
            them as writable memory, which systems count.
    """

    timeout: float = 60.0
    memory: int = 8_000_000_000
    by_options: bool = True
    mapped: int = 0

    @property
    def timeout_message(self) -> str:
        """Return the message for a model that takes longer."""
        advice = "; to wait longer, say --timeout SECONDS" if self.by_options else ""
        return f"the model did not end within {self.timeout:g} seconds{advice}"

    @property
    def memory_message(self) -> str:
        """Return the message for a model that takes more memory."""
        advice = "; to allow more, say --memory SIZE" if self.by_options else ""
        return f"the model takes more than {byte_text(self.memory)} of memory{advice}"


#: By default the limits of a user's model.
_current = ContextVar("_current", default=Limits())  # noqa: B039 - nothing changes it


def current_limits() -> Limits:
    """Return the limits of the models that this context runs."""
    return _current.get()


@contextmanager
def limited(limits: Limits) -> Iterator[None]:
    """Let models run within other limits."""
    token = _current.set(limits)
    try:
        yield
    finally:
        _current.reset(token)


def byte_text(size: int) -> str:
    """Return a number of bytes as people write it: ``8 GB``, ``1.5 MB``."""
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size} bytes"
