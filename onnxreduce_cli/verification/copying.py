"""A process that is a copy of this one, with all that it has imported.

That starts in a tenth of the time of a new one. It is for a process of one thread: of others a
copy has their locks, and not what would open them.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

#: Of more processes that check at once each would save little, and may take gigabytes.
_MOST = 8


def can_be_copied() -> bool:
    """Return whether this process can: with one thread, on a system whose libraries allow it."""
    if sys.platform != "linux":
        return False
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False  # Without /proc nothing tells.


def at_once() -> int:
    """How many processes should work side by side: each takes a processor, and memory."""
    return min(len(os.sched_getaffinity(0)), _MOST)


class Copy:
    """A copy of this process that does one thing and ends; as `subprocess.Popen`, with pipes.

    Attributes:
        pid: its number.
        stdin: what it reads.
        stdout: what it writes. What it prints to standard error is not seen.
        returncode: how it has ended, as far as that is known: as `subprocess.Popen` says it.
    """

    def __init__(self, main: Callable[[], None]) -> None:
        """Let a copy call `main` with this process's number as the only argument of the command.

        Raises:
            OSError: the system starts no process.
        """
        requests, to_requests = os.pipe()
        from_replies, replies = os.pipe()
        number = os.getpid()
        try:
            self.pid = os.fork()
        except OSError:
            for end in (requests, to_requests, from_replies, replies):
                os.close(end)
            raise
        if not self.pid:
            os.close(to_requests)
            os.close(from_replies)
            _serve(main, number, requests, replies)
        os.close(requests)
        os.close(replies)
        self.stdin = os.fdopen(to_requests, "wb")
        self.stdout = os.fdopen(from_replies, "rb")
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return how it has ended; None if it has not."""
        return self._wait(os.WNOHANG)

    def wait(self) -> int:
        """Wait until it has ended; return how."""
        found = self._wait(0)
        assert found is not None
        return found

    def kill(self) -> None:
        """End it, whatever it does."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def _wait(self, options: int) -> int | None:
        if self.returncode is None:
            number, status = os.waitpid(self.pid, options)
            if number:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def _serve(main: Callable[[], None], parent: int, requests: int, replies: int) -> None:
    """Do what a copy is for, and end it, so that nothing of what was copied goes on."""
    import fcntl

    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        ends = requests, replies, os.open(os.devnull, os.O_WRONLY)
        # Where this process was given no standard streams, the ends have their numbers.
        aside = [fcntl.fcntl(end, fcntl.F_DUPFD, 3) for end in ends]
        for number, end in enumerate(aside):
            os.dup2(end, number)
        # Those of a copy's own copy take their place, and must not be closed with them.
        sys.stdin = os.fdopen(0, closefd=False)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        sys.argv = ["", str(parent)]
        main()
        code = 0
    finally:
        os._exit(code)
