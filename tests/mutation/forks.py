"""Forks of this process, which do something and tell what came of it."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

#: The bytes of memory that a fork may have: some changes ask for any amount.
_MEMORY = 12 << 30


def start(work: Callable[[], Any], *, quiet: bool = True) -> tuple[int, int]:
    """Do something in a fork; return its process and where to read what it gives.

    A quiet one prints nothing, and what it starts is ended with it.
    """
    read, write = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child:
        os.close(write)
        return child, read
    code = 1
    try:
        os.close(read)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        if quiet:
            os.setpgid(0, 0)
            null = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(null, stream)
        given = pickle.dumps(work())
        with os.fdopen(write, "wb") as file:
            file.write(given)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(code)


def _given(child: int, read: int) -> tuple[bool, Any]:
    """Whether a fork came to an end by itself, and what it gave; what it started is ended."""
    with os.fdopen(read, "rb") as file:
        given = file.read()
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return bool(given), pickle.loads(given) if given else None


def apart(work: Callable[[], Any]) -> Any:
    """What something gives, done in a fork."""
    child, read = start(work, quiet=False)
    whole, given = _given(child, read)
    os.waitpid(child, 0)
    if not whole:
        raise SystemExit(1)
    return given


def each(works: Iterable[tuple[Any, Callable[[], Any]]], jobs: int) -> Iterator[tuple[Any, Any]]:
    """Do many things, some at a time.

    Args:
        works: what each is about, and what is to be done.
        jobs: how many are done at the same time.

    Yields:
        What it is about with what that gave, as it comes; an exception where the fork was killed.
    """
    running: dict[int, tuple[Any, int]] = {}

    def ended() -> tuple[Any, Any]:
        child, status = os.wait()
        about, read = running.pop(child)
        whole, given = _given(child, read)
        return about, given if whole else ChildProcessError(f"status {status}")

    for about, work in works:
        while len(running) >= jobs:
            yield ended()
        child, read = start(work)
        running[child] = about, read
    while running:
        yield ended()
