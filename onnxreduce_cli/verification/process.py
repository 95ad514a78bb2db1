"""A process that runs models for this one, and what becomes of its requests.

NumPy is imported with the first request: until then the process has started, and imports its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from onnxreduce_cli.verification.copying import Copy
from onnxreduce_cli.verification.errors import (
    CannotRunError,
    LimitError,
    RefusedError,
    RunFailedError,
)
from onnxreduce_cli.verification.limits import Limits
from onnxreduce_cli.verification.watch import TOO_LARGE

if TYPE_CHECKING:
    from onnxreduce_cli.verification.messages import Bits

#: The modules whose processes run models, by executor.
_MODULES = {"onnxruntime": "ort_worker", "numpy": "numpy_worker"}

#: What a process may answer in place of a result.
_ERRORS = {
    "cannot": CannotRunError,
    "refused": RefusedError,
    "failed": RunFailedError,
    "bug": RuntimeError,
}

# Not `-m`, which would look for modules in the current folder.
_START = "import sys; sys.path[:] = {!r}; from onnxreduce_cli.verification.{} import main; main()"


#: In bytes: a process that keeps more, with no model open, is ended by `end_large`.
_KEPT = 1 << 24

_local = threading.local()


#: What a process is to do, and the values that it takes.
Step = tuple[Mapping[str, Any], Sequence[Any]]


class EndedError(Exception):
    """The process has ended; the message says how, such as ``SIGABRT``."""


class UnansweredError(EndedError):
    """The process has ended before it came to the request, which may be sent to another one."""


class Reply:
    """What a request gives, which may still be on its way.

    Attributes:
        small: whether it fits into a pipe, so that it keeps no process from reading what follows.
    """

    def __init__(self, process: Process, limits: Limits, *, small: bool) -> None:
        self.small = small
        self._process: Process | None = process
        self._limits = limits
        self._since = time.monotonic()
        self._results: list[Any] = []
        self._values: list[Any] = []
        self._problem: Exception | None = None

    def get(self) -> list[list[Any] | Exception]:
        """Wait for it; return for each result its values, or why there are none.

        That is a `CannotRunError`, a `LimitError` among them, or a `RunFailedError`.

        Raises:
            EndedError: the process has ended meanwhile.
            LimitError: it has, as it took too long or too much memory.
        """
        self.receive()
        if self._problem is not None:
            raise self._problem
        found: list[list[Any] | Exception] = []
        values = self._values
        for result in self._results:
            if isinstance(result, int):
                found.append(values[:result])
                values = values[result:]
            else:
                found.append(self._error(*result))
        return found

    def _error(self, kind: str, text: str) -> Exception:
        if kind == "memory":
            return LimitError(f"{self._limits.large} ({text})")
        return _ERRORS[kind](text)

    def receive(self) -> None:
        """Wait until it is here."""
        while self._process is not None:
            self._process.receive()

    def take(self, header: Mapping[str, Any], values: list[Any]) -> None:
        """Take what the process answers."""
        self._process = None
        self._results, self._values = header["results"], values

    def give_up(self, error: EndedError) -> None:
        """Take it that the process has ended."""
        process, self._process = self._process, None
        assert process is not None
        unanswered = isinstance(error, UnansweredError)
        self._problem = error if unanswered else self._how_ended(process, error)

    def _how_ended(self, process: Process, error: EndedError) -> Exception:
        """The exception for the end of the process: by a limit, or by itself."""
        code = process.exit_code
        alarm = getattr(signal, "SIGALRM", None)
        waited = time.monotonic() - self._since >= self._limits.timeout
        if (alarm is not None and code == -alarm) or (alarm is None and code == 1 and waited):
            return LimitError(self._limits.late)
        if code == TOO_LARGE:
            return LimitError(self._limits.large)
        return error


class Process:
    """A process that runs models for the thread that started it, one request after another.

    Attributes:
        forgotten: keys of the models that are no longer needed; sent with the next request.
        grown: by how many bytes it has when it answered last.
    """

    def __init__(self, executor: str, *, copied: bool = False) -> None:
        """Start it; it answers once it has imported what it needs.

        Args:
            executor: one of `runtime.EXECUTORS`.
            copied: whether it is a copy of this process, rather than a new one.

        Raises:
            CannotRunError: the system starts no process.
        """
        self.forgotten: list[int] = []
        self.grown = 0
        self._owner = os.getpid()
        try:
            self._process = _copied(executor) if copied else _new(executor)
        except OSError as error:
            raise CannotRunError(f"no process can be started for it: {error.strerror}") from error
        self._end = ends_with(self, self._process)
        self._awaited: deque[Reply] = deque()

    @property
    def alive(self) -> bool:
        """True if it can take requests: after a fork only those of the process that started it."""
        return self._owner == os.getpid() and self._process.poll() is None

    @property
    def exit_code(self) -> int:
        """Return how it has ended: minus the number of a signal, or an exit code."""
        return self._process.wait()

    def end(self) -> None:
        """End it, and wait until it has ended."""
        self._end()

    def settle(self) -> None:
        """Wait for all replies that are on their way."""
        while self._awaited:
            self.receive()

    def send(self, steps: Sequence[Step], limits: Limits, *, small: bool = False) -> Reply:
        """Send a request; whoever needs the reply waits for it.

        Args:
            steps: what to do, each with its values.
            limits: on each step.
            small: whether the reply fits into a pipe whatever happens.
        """
        from onnxreduce_cli.verification import messages

        if not all(reply.small for reply in self._awaited):
            # Else each process may wait for the other to read.
            self.settle()
        header, values = self.request(steps, limits)
        requests = self._process.stdin
        assert requests is not None
        reply = Reply(self, limits, small=small)
        self._awaited.append(reply)
        try:
            messages.write(requests, header, values)
        except OSError:
            pass  # It has ended, as reading the reply tells.
        except BaseException:
            self._end()  # Else it would take the next request for the rest of this one.
            raise
        return reply

    def request(
        self, steps: Sequence[Step], limits: Limits
    ) -> tuple[Mapping[str, Any], Sequence[Any]]:
        """What a request holds: its header, and its values. What was to be forgotten then is."""
        forgotten, self.forgotten = self.forgotten, []
        described = [{"forget": [], **step, "count": len(values)} for step, values in steps]
        described[0]["forget"] = forgotten
        memory = limits.memory + limits.mapped
        header = {"steps": described, "seconds": limits.timeout, "memory": memory}
        return header, [value for _, values in steps for value in values]

    def receive(self) -> None:
        """Read the reply that comes next."""
        from onnxreduce_cli.verification import messages

        replies = self._process.stdout
        assert replies is not None
        reply = self._awaited.popleft()
        try:
            header, values = messages.read(replies, restore)
        except (OSError, EOFError):
            reply.give_up(EndedError(ended(self.exit_code)))
            while self._awaited:
                self._awaited.popleft().give_up(UnansweredError())
        except BaseException:
            self._end()  # Such as an interrupt: the rest of the reply would be the next one's.
            raise
        else:
            self.grown = header["grown"]
            reply.take(header, values)


def _new(executor: str) -> subprocess.Popen[bytes]:
    start = _START.format(sys.path, _MODULES[executor])
    # ONNX Runtime has threads of its own; NumPy only takes tensors apart there.
    threads = {"OPENBLAS_NUM_THREADS": "1"} if executor == "onnxruntime" else {}
    return subprocess.Popen(
        [sys.executable, "-c", start, str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # What native code prints is not for the user; how the process ends is told.
        stderr=subprocess.DEVNULL,
        env={**os.environ, **threads},
    )


def _copied(executor: str) -> Copy:
    def main() -> None:
        import_module(f"{__package__}.{_MODULES[executor]}").main()

    return Copy(main)


def start(executor: str, *, copied: bool = False) -> Process:
    """Return the process of this thread that runs models; another one if the last has ended.

    It takes a while to start: whoever will need it calls this early.

    Args:
        executor: one of `runtime.EXECUTORS`.
        copied: whether another one is a copy of this process; see `copying`.

    Raises:
        CannotRunError: the system starts no process.
    """
    processes = _processes()
    current = processes.get(executor)
    if current is None or not current.alive:
        current = processes[executor] = Process(executor, copied=copied)
    return current


def use(executor: str, process: Process) -> None:
    """Let a process be the one of this thread that runs models."""
    _processes()[executor] = process


def _processes() -> dict[str, Process]:
    """Those of this thread, by executor."""
    found: dict[str, Process] = _local.__dict__.setdefault("processes", {})
    return found


def prepare(executor: str, *, copied: bool = False) -> None:
    """Let the process start in which an executor runs, before there is something to run."""
    with suppress(CannotRunError):  # Whoever needs it is told.
        start(executor, copied=copied)


def let_go() -> None:
    """Wait until this thread's processes have closed the models that nobody needs any more.

    Windows neither replaces nor removes a file that is open.
    """
    for process in _processes().values():
        if process.alive and process.forgotten:
            step = {"do": "run", "keys": [], "feeds": [], "names": []}
            process.send([(step, [])], Limits(), small=True).receive()


def end_large() -> None:
    """End this thread's processes that have much memory left once their models are closed.

    Allocators give little back, and others need it.
    """
    let_go()
    for process in _processes().values():
        if process.grown > _KEPT:
            process.end()


def end_all() -> None:
    """End this thread's processes, whatever they do."""
    for process in _local.__dict__.pop("processes", {}).values():
        process.end()


def restore(bits: Bits) -> Any:
    """A tensor of ml_dtypes' dtype from its bits."""
    import ml_dtypes
    import numpy as np

    return bits.array.view(np.dtype(getattr(ml_dtypes, bits.dtype)))


def ended(code: int) -> str:
    """Return how a process has ended: the signal, or the exit code."""
    try:
        name = signal.Signals(-code).name
    except ValueError:
        return f"exit code {code}"
    return f"{name}, as when memory runs out" if name == "SIGKILL" else name


def ends_with(user: object, process: subprocess.Popen[bytes] | Copy) -> weakref.finalize[..., Any]:
    """Return what ends a process; its user's end does, too, and the end of this process.

    It may be in a loop without end, so it is killed. A copy looks itself whether this process is
    still there: to kill it takes as long as giving its memory back.
    """
    found = weakref.finalize(user, _end, process, os.getpid())
    found.atexit = not isinstance(process, Copy)
    return found


def _end(process: subprocess.Popen[bytes] | Copy, owner: int) -> None:
    if os.getpid() != owner:
        return  # In a fork of the process that started it, which goes on with it.
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        try:
            if pipe is not None:
                pipe.close()
        except OSError:
            pass  # A request that it did not read to the end is lost with it.
