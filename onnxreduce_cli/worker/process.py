"""The worker from the caller's side: a process that makes calls one after the other.

It is started by `subprocess`, never as a copy of this process, and never by `multiprocessing`,
which runs the caller's script again. Calls and answers are pickles, sent by pipes.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

# Not `-m`, which would import modules of the current folder first. The worker gets this process's
# `sys.path`.
_START = "import sys; sys.path[:] = {!r}; from onnxreduce_cli.worker.server import serve; serve()"

#: The seconds between two checks of a call's time and memory.
_PAUSE = 0.02

#: The seconds after which a call's memory is checked: importing psutil for that takes as long as
#: many calls, and none fills the memory before.
_SOON = 0.1

#: The seconds that a worker may take to clean up after SIGTERM.
_PATIENCE = 5

#: A function that a module defines, and its arguments.
Call = tuple[Callable[..., Any], tuple[Any, ...]]


class EndedError(Exception):
    """The worker ended before it answered; the message says how, such as ``SIGABRT``."""


class UnansweredError(EndedError):
    """The worker ended before it began the call, which may be sent to another worker."""


class LateError(EndedError):
    """The worker was ended because the call took longer than allowed."""


class TooLargeError(EndedError):
    """The worker was ended because the call took more memory than allowed."""


class Reply:
    """The answer to a call, now or later.

    Attributes:
        seconds: how long the call may take once the worker has begun it; None for no limit.
        memory: the bytes of memory that the worker may have meanwhile; None for no limit.
        since: when the call was sent, or the worker began it.
    """

    def __init__(self, seconds: float | None = None, memory: int | None = None) -> None:
        self.seconds, self.memory = seconds, memory
        self.since = time.monotonic()
        self._arrived = threading.Event()
        self._found: Any = None
        self._error: Exception | None = None

    def result(self) -> Any:
        """Wait for the answer, and return or raise it."""
        self._arrived.wait()
        if self._error is not None:
            raise self._error
        return self._found

    def settle(self, found: Any, error: Exception | None = None) -> None:
        """Set the answer, once."""
        self._found, self._error = found, error
        self._arrived.set()


class _Connection:
    """The state that a worker shares with the two threads that receive from it and watch it.

    Attributes:
        process: the worker's process.
        hello: the answer once the worker has made its imports, whose time counts for no call.
        pending: the calls that are not answered yet, in order.
        changed: guards `pending`, `closed` and `cause`, and is notified when they change.
        closed: whether no further answer will come.
        cause: why this process ended the worker, if it did.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.hello = Reply()
        self.pending: deque[Reply] = deque([self.hello])
        self.changed = threading.Condition()
        self.closed = False
        self.cause: EndedError | None = None

    def receive(self) -> None:
        """Receive answers until the worker ends; then fail all pending calls."""
        assert self.process.stdout is not None
        try:
            with self.process.stdout as answers, suppress(EOFError, OSError, pickle.PickleError):
                while True:
                    found, error = pickle.load(answers)
                    with self.changed:
                        if self.cause is not None:
                            return
                        reply = self.pending.popleft()
                        if self.pending:
                            self.pending[0].since = time.monotonic()
                    reply.settle(found, error)
                    del reply, found, error  # It may be large, and nothing may come for long.
        finally:
            how = self.cause or EndedError(_exit_text(_wait(self.process)))
            with self.changed:
                self.closed = True
                self.changed.notify_all()
            begun = True
            for reply in self.pending:
                reply.settle(None, how if begun else UnansweredError())
                # A worker that cannot start must not be started again and again.
                begun = reply is self.hello

    def watch(self) -> None:
        """End the worker once its current call exceeds its limits."""
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.pending or self.closed)
                if self.closed:
                    return
                reply = self.pending[0]
            cause = _exceeded_limit(reply, self.process)
            with self.changed:
                # The call may have been answered meanwhile.
                if cause is not None and self.pending and self.pending[0] is reply:
                    self.cause = cause
                    self.process.kill()
                    return
            del reply
            time.sleep(_PAUSE)


def _exceeded_limit(reply: Reply, process: subprocess.Popen[bytes]) -> EndedError | None:
    """Return the error for the limit that the current call exceeds; None if it exceeds none."""
    spent = time.monotonic() - reply.since
    if reply.seconds is not None and spent > reply.seconds:
        return LateError()
    if reply.memory is not None and spent > _SOON and _resident_bytes(process) > reply.memory:
        return TooLargeError()
    return None


def _resident_bytes(process: subprocess.Popen[bytes]) -> int:
    """Return the bytes of memory that a process has; 0 if it has ended."""
    import psutil

    try:
        return int(psutil.Process(process.pid).memory_info().rss)
    except psutil.Error:
        return 0


class Worker:
    """A process that makes calls for this one.

    It ends with the last reference to this object, and with this process.

    Attributes:
        deferred: calls without answers, which are made before the next call.
    """

    def __init__(
        self,
        modules: Sequence[str] = (),
        *,
        environment: Mapping[str, str] | None = None,
        folder: str | None = None,
        quiet: bool = True,
    ) -> None:
        """Start it; calls can be sent at once.

        Args:
            modules: the modules that it imports before the first call.
            environment: variables that it gets beside those of this process.
            folder: its current folder; None for that of this process.
            quiet: whether its standard error is discarded.

        Raises:
            OSError: the system starts no process.
        """
        self.deferred: list[Call] = []
        self._killed = False
        self._owner = os.getpid()
        with _interrupts_blocked():
            process = subprocess.Popen(
                [sys.executable, "-c", _START.format(sys.path), *modules],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL if quiet else None,
                cwd=folder,
                env={**os.environ, **(environment or {})},
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
            and not self._killed
            and not self._connection.closed
            and self._process.poll() is None
        )

    @property
    def pid(self) -> int:
        """The identifier of its process."""
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
            function: a function of a module; it and the arguments must be picklable.
            arguments: the arguments of the call.
            seconds: how long the call may take; None for no limit.
            memory: the bytes of memory that the worker may have meanwhile; None for no limit.
        """
        reply = Reply(seconds, memory)
        deferred, self.deferred = self.deferred, []
        with self._connection.changed:
            if self._connection.closed:
                reply.settle(None, UnansweredError())
                return reply
            self._connection.pending.append(reply)
            self._connection.changed.notify_all()
        requests = self._process.stdin
        assert requests is not None
        try:
            pickle.dump([*deferred, (function, arguments)], requests, pickle.HIGHEST_PROTOCOL)
            requests.flush()
        except OSError:
            pass  # The worker has ended, which waiting for the reply reports.
        except BaseException:
            self._end()  # Else it would read the next call as the rest of this one.
            raise
        return reply

    def call(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        seconds: float | None = None,
        memory: int | None = None,
    ) -> Any:
        """Make a call and wait for its result; see `send`.

        Raises:
            EndedError: the worker ended during the call.
            Exception: the function raised it.
        """
        return self.result(self.send(function, *arguments, seconds=seconds, memory=memory))

    def result(self, reply: Reply) -> Any:
        """Wait for the result of a call.

        Raises:
            EndedError: the worker ended during the call.
            Exception: the function raised it.
        """
        try:
            return reply.result()
        except Exception:
            raise
        except BaseException:
            self.end()  # After an interrupt the next call would wait for this one.
            raise

    def stop(self) -> None:
        """Ask the worker to clean up and end."""
        self._process.terminate()

    def kill(self) -> None:
        """End the worker at once, and do not wait until it has ended."""
        self._killed = True
        self._process.kill()

    def end(self) -> None:
        """End the worker at once, and wait until it has ended."""
        self._end()

    def wait(self) -> None:
        """Wait until the worker has ended after `stop`; end it if that takes long."""
        _wait(self._process)
        self.end()


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() != owner:
        return  # In a fork of the process that started it, which goes on with it.
    process.kill()
    process.wait()
    assert process.stdin is not None
    with suppress(OSError):  # A call that the worker has not read completely is lost.
        process.stdin.close()


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait until a process ends by itself, or end it; return its exit code."""
    try:
        return process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _exit_text(code: int) -> str:
    """Return how a process has ended: the signal, or the exit code."""
    try:
        name = signal.Signals(-code).name
    except ValueError:
        return f"exit code {code}"
    return f"{name}, as when memory runs out" if name == "SIGKILL" else name


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block SIGINT in a process that starts, as it would end with a traceback.

    An interrupt is sent to all processes of a terminal: the caller handles it, and ends the worker.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # The new process inherits the mask; in this one an interrupt is delivered afterwards.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_local = threading.local()


def current_worker(
    modules: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> Worker:
    """Return the worker of this thread; a new one if there is none, or it has ended.

    Args:
        modules: the modules that a new worker imports before its first call.
        environment: variables that a new worker gets beside those of this process.

    Raises:
        OSError: the system starts no process.
    """
    found: Worker | None = getattr(_local, "worker", None)
    if found is None or not found.alive:
        found = _local.worker = Worker(modules, environment=environment)
    return found


def running_worker() -> Worker | None:
    """Return the worker of this thread; None if there is none."""
    found: Worker | None = getattr(_local, "worker", None)
    return found if found is not None and found.alive else None


def kill_current() -> None:
    """End the worker of this thread, and do not wait; `end_current` waits until it has ended."""
    found = running_worker()
    if found is not None:
        found.kill()


def end_current() -> None:
    """End the worker of this thread, whatever it is doing."""
    found: Worker | None = _local.__dict__.pop("worker", None)
    if found is not None:
        found.end()
