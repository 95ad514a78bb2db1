"""How much memory this process may take, where Linux runs it: allocations beyond that fail."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_LINUX = sys.platform == "linux"

#: The column of ``/proc/self/statm`` of what the limit on data counts.
_DATA = 5


@contextmanager
def data_limited(room: int) -> Iterator[None]:
    """Let allocations of this process fail once it has so many bytes more.

    What limits there were hold on. Where nothing tells how many it has, there is no other.
    """
    taken = _taken()
    if taken is None:
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    bounds = [limit for limit in before if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min([taken + room, *bounds]), before[1]))
    try:
        yield
    except MemoryError:
        _give_back()
        raise
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _taken() -> int | None:
    """The bytes of data that this process has; None if nothing tells.

    It may not be: without ``/proc``, and for a process that has given up its rights.
    """
    if not _LINUX:
        return None
    import resource

    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[_DATA]) * resource.getpagesize()
    except OSError:
        return None


def _give_back() -> None:
    """Give memory that is free again back to the system, where the C library is glibc.

    It keeps it for later, and would count as taken the next time.
    """
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
