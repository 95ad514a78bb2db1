"""How much memory this process may take, where Linux runs it: allocations beyond that fail."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_LINUX = sys.platform == "linux"

#: The columns of ``/proc/self/statm``: what is in memory, and what the limit on data counts.
RESIDENT, _DATA = 1, 5


def limit_data(memory: int | None) -> None:
    """Let allocations fail beyond so many bytes; None for no limit but that of the system.

    Files that are mapped to be read don't count.
    """
    if not _LINUX:
        return
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = most if memory is None else memory
    if most != resource.RLIM_INFINITY:
        limit = min(limit, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, most))


@contextmanager
def data_limited(room: int) -> Iterator[None]:
    """Let allocations of this process fail once it has so many bytes more.

    What limits there were hold on. Where nothing tells how many it has, there is no other.
    """
    taken = counted(_DATA)
    if taken is None:
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    limit = taken + room
    limit_data(limit if before[0] == resource.RLIM_INFINITY else min(limit, before[0]))
    try:
        yield
    except MemoryError:
        _give_back()
        raise
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def counted(column: int) -> int | None:
    """The bytes that a column of Linux's ``statm`` counts of this process; None if none is there.

    It may not be: without ``/proc``, and for a process that has given up its rights.
    """
    if not _LINUX:
        return None
    import resource

    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[column]) * resource.getpagesize()
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
