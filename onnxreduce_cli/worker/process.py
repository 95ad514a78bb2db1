"""The worker as its caller sees it: a process that makes calls, one after the other.

It is started anew, by `subprocess`: never a copy of this process, and never by `multiprocessing`,
which runs the caller's script again. Calls go there and answers come back as pickles, by pipes.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any

# Not `-m`, which would import modules of the current folder first. The worker finds modules where
# this process does, however it came to know of them.
_START = "import sys; sys.path[:] = {!r}; from onnxreduce_cli.worker.server import serve; serve()"

#: The seconds between two looks at a call's time and memory.
_PAUSE = 0.02

#: The seconds that a worker may take to clear up after SIGTERM.
_PATIENCE = 5

#: A function that a module defines, and its arguments.
Call = tuple[Callable[..., Any], tuple[Any, ...]]


class EndedError(Exception):
    """The worker ended before it answered; the message is how, such as ``SIGABRT``."""


class UnansweredError(EndedError):
    """The worker ended before it began the call, which may be sent to another one."""


class LateError(EndedError):
    """The worker was ended because the call took longer than it may."""


class TooLargeError(EndedError):
    """The worker was ended because the call took more memory than it may."""


class Reply(Future[Any]):
    """The answer to a call, which may still be on its way.

    Attributes:
        seconds: how long the worker may take from when it begins the call; None for no limit.
        memory: the bytes of memory that the worker may have meanwhile; None for no limit.
        since: when the call was sent, or the worker began it.
    """

    def __init__(self, seconds: float | None = None, memory: int | None = None) -> None:
        super().__init__()
        self.seconds, self.memory = seconds, memory
        self.since = time.monotonic()


class _Connection:
    """What a worker and the two threads that look after it share.

    Attributes:
        process: the worker's.
        hello: what it answers once it has imported what it should: that counts as no call's time.
        pending: the calls that it has not answered, in order.
        changed: guards what follows and `pending`, and is notified when they change.
        closed: whether no answer will come any more.
        cause: why it was ended, if this process has.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.hello = Reply()
        self.pending: deque[Reply] = deque([self.hello])
        self.changed = threading.Condition()
        self.closed = False
        self.cause: EndedError | None = None

    def receive(self) -> None:
        """Take answers until the worker ends; then tell all who wait."""
        assert self.process.stdout is not None
        try:
            with self.process.stdout as answers, suppress(EOFError, OSError, pickle.PickleError):
                while True:
                    failed, found = pickle.load(answers)
                    with self.changed:
                        if self.cause is not None:
                            return
                        reply = self.pending.popleft()
                        if self.pending:
                            self.pending[0].since = time.monotonic()
                    if failed:
                        reply.set_exception(found)
                    else:
                        reply.set_result(found)
                    del reply, found  # It may be large, and nothing may come for long.
        finally:
            how = self.cause or EndedError(_exit_text(_wait(self.process)))
            with self.changed:
                self.closed = True
                self.changed.notify_all()
            begun = True
            for reply in self.pending:
                reply.set_exception(how if begun else UnansweredError())
                # What cannot start should not be started again and again.
                begun = reply is self.hello

    def watch(self) -> None:
        """End the worker once the call that it makes goes beyond its limits."""
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.pending or self.closed)
                if self.closed:
                    return
                reply = self.pending[0]
            cause = _exceeded_limit(reply, self.process)
            with self.changed:
                # It may have been answered meanwhile.
                if cause is not None and self.pending and self.pending[0] is reply:
                    self.cause = cause
                    self.process.kill()
                    return
            del reply
            time.sleep(_PAUSE)


def _exceeded_limit(reply: Reply, process: subprocess.Popen[bytes]) -> EndedError | None:
    """Return which limit a call that is being made goes beyond; None if neither."""
    spent = time.monotonic() - reply.since
    if reply.seconds is not None and spent > reply.seconds:
        return LateError()
    # What ends at once is not looked at.
    if reply.memory is not None and spent > _PAUSE and _resident_bytes(process) > reply.memory:
        return TooLargeError()
    return None


def _resident_bytes(process: subprocess.Popen[bytes]) -> int:
    """The bytes of memory that a process has; 0 if it has ended."""
    import psutil

    try:
        return int(psutil.Process(process.pid).memory_info().rss)
    except psutil.Error:
        return 0


class Worker:
    """A process that makes calls for this one.

    It ends with the last reference to this object, and with this process.

    Attributes:
        deferred: calls whose answers nobody needs; they are made before the next call.
    """

    def __init__(
        self, modules: Sequence[str] = (), *, folder: str | None = None, quiet: bool = True
    ) -> None:
        """Start it; calls can be sent at once.

        Args:
            modules: what it imports before the first call.
            folder: its current folder; None for that of this process.
            quiet: whether nothing that it prints is seen.

        Raises:
            OSError: the system starts no process.
        """
        self.deferred: list[Call] = []
        self._owner = os.getpid()
        with _interrupts_blocked():
            process = subprocess.Popen(
                [sys.executable, "-c", _START.format(sys.path), *modules],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL if quiet else None,
                cwd=folder,
            )
        self._process = process
        self._end = weakref.finalize(self, _end, process, self._owner)
        self._connection = line = _Connection(process)
        for target in (line.receive, line.watch):
            threading.Thread(target=target, daemon=True).start()

    @property
    def alive(self) -> bool:
        """True if calls can be sent: after a fork, only in the process that started it."""
        return (
            self._owner == os.getpid()
            and not self._connection.closed
            and self._process.poll() is None
        )

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._process.pid

    @property
    def memory(self) -> int:
        """The bytes of memory that it has."""
        return _resident_bytes(self._process)

    def send(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        seconds: float | None = None,
        memory: int | None = None,
    ) -> Reply:
        """Send a call, and return the reply at once, which `result` waits for.

        Args:
            function: what a module defines; it and the arguments must be picklable.
            arguments: what it is called with.
            seconds: how long the call may take; None for no limit.
            memory: the bytes of memory that the worker may have meanwhile; None for no limit.
        """
        reply = Reply(seconds, memory)
        deferred, self.deferred = self.deferred, []
        with self._connection.changed:
            if self._connection.closed:
                reply.set_exception(UnansweredError())
                return reply
            self._connection.pending.append(reply)
            self._connection.changed.notify_all()
        requests = self._process.stdin
        assert requests is not None
        try:
            pickle.dump([*deferred, (function, arguments)], requests, pickle.HIGHEST_PROTOCOL)
            requests.flush()
        except OSError:
            pass  # It has ended, as waiting for the reply tells.
        except BaseException:
            self._end()  # Else it would take the next call for the rest of this one.
            raise
        return reply

    def call(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        seconds: float | None = None,
        memory: int | None = None,
    ) -> Any:
        """Make a call and wait for what it returns; see `send`.

        Raises:
            EndedError: it ended the worker.
            Exception: what the function raises.
        """
        return self.result(self.send(function, *arguments, seconds=seconds, memory=memory))

    def result(self, reply: Reply) -> Any:
        """Wait for what a call returns.

        Raises:
            EndedError: it ended the worker.
            Exception: what the function raises.
        """
        try:
            return reply.result()
        except Exception:
            raise
        except BaseException:
            self.end()  # An interrupt: the call would keep the next one waiting.
            raise

    def stop(self) -> None:
        """Let it clear up what it does, and end."""
        self._process.terminate()

    def end(self) -> None:
        """End it at once, and wait until it has ended."""
        self._end()

    def wait(self) -> None:
        """Wait until it has ended after `stop`; end it if that takes long."""
        _wait(self._process)
        self.end()


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() != owner:
        return  # In a fork of the process that started it, which goes on with it.
    process.kill()
    process.wait()
    assert process.stdin is not None
    with suppress(OSError):  # A call that was not read to the end is lost with it.
        process.stdin.close()


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait until a process has ended, which it should by itself; return its exit code."""
    try:
        return process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _exit_text(code: int) -> str:
    """How a process has ended: the signal, or the exit code."""
    try:
        name = signal.Signals(-code).name
    except ValueError:
        return f"exit code {code}"
    return f"{name}, as when memory runs out" if name == "SIGKILL" else name


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block SIGINT in a process while it starts, when it would end with a traceback.

    An interrupt goes to all processes of a terminal: the caller handles it, and ends the worker.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Processes inherit it; here an interrupt is delivered at the end.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_local = threading.local()


def current_worker(modules: Sequence[str] = ()) -> Worker:
    """Return the worker of this thread; another one if the last has ended.

    Args:
        modules: what another one imports before its first call.

    Raises:
        OSError: the system starts no process.
    """
    found: Worker | None = getattr(_local, "worker", None)
    if found is None or not found.alive:
        found = _local.worker = Worker(modules)
    return found


def running_worker() -> Worker | None:
    """Return the worker of this thread if there is one."""
    found: Worker | None = getattr(_local, "worker", None)
    return found if found is not None and found.alive else None


def end_current() -> None:
    """End the worker of this thread, whatever it does."""
    found: Worker | None = _local.__dict__.pop("worker", None)
    if found is not None:
        found.end()
