"""A pool of the workers of a Dask cluster, which share their files with this machine.

Each worker makes its calls in processes of its own, so a model that crashes its process ends no
worker. If a worker is lost, its processes end too, and Dask gives its calls to another one.
"""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from typing import Any

import onnx

from onnxreduce_cli import __version__
from onnxreduce_cli.batch.pool import CrashedCall, Pool
from onnxreduce_cli.batch.processes import Processes
from onnxreduce_cli.errors import UsageError

#: The seconds within which the scheduler and a worker must answer; on busy machines they take ten.
_PATIENCE = 30

#: How many calls are sent ahead for each thread of the cluster, and the seconds after which threads
#: are counted again, as workers come and go.
_AHEAD = 4
_COUNTED = 5


class Cluster(Pool):
    """A pool of the workers of a Dask cluster.

    Attributes:
        dashboard: the address of Dask's dashboard.
    """

    repeats = True

    def __init__(self, address: str, memory: Callable[[Any], int]) -> None:
        """Connect to the scheduler.

        Args:
            address: the scheduler's address, such as ``tcp://host:8786``.
            memory: returns the bytes of memory that a call on an item may take.

        Raises:
            UsageError: Dask is not installed, or no scheduler or worker answers.
        """
        try:
            from distributed import Client
        except ImportError:
            raise UsageError(
                "--cluster needs Dask: pip install distributed, here and on each worker"
            ) from None
        # Its logs have tracebacks; failures are reported here, in one line.
        for name in ("distributed", "distributed.client"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        self._address, self._memory = address, memory
        try:
            self._client = Client(address, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"no scheduler answers at {address} within {_PATIENCE} seconds ({error}); "
                "dask scheduler starts one, and says its address"
            ) from error
        self.dashboard: str = self._client.dashboard_link
        self._limits: dict[str, int] = {}
        self._counted, self._threads = 0.0, 1
        self._folder = os.getcwd()

    @property
    def ahead(self) -> int:  # type: ignore[override] # Workers come and go.
        """How many calls are sent before the first of them is done."""
        if time.monotonic() - self._counted > _COUNTED:
            self._threads = max(sum(self._client.nthreads().values()), 1)
            self._counted = time.monotonic()
        return _AHEAD * self._threads

    def check(self, sources: Sequence[str], out_dir: str | None) -> None:
        """Check that the workers see the files of this machine and have the same versions.

        Raises:
            UsageError: a worker lacks the models or the folder of outputs, or has another version
                of onnxreduce or onnx; or there is no worker. A worker that is lost meanwhile is not
                checked.
        """
        from distributed import TimeoutError as LateError

        try:
            self._client.wait_for_workers(1, timeout=_PATIENCE)
        except (LateError, TimeoutError) as error:
            raise UsageError(
                f"the scheduler at {self._address} has no workers; "
                f"dask worker {self._address} starts one"
            ) from error
        files = {os.path.abspath(path): _size(path) for path in sources[:1]}
        with _probe_file(out_dir) as probe:
            files |= {path: _size(path) for path in probe}
            self._check_versions()
            found = self._call_on_workers(describe_worker, files)
        for worker, seen in found.items():
            if problem := _worker_problem(seen, files):
                raise UsageError(f"worker {worker} {problem}")
            self._limits[worker] = seen["memory"]

    def _call_on_workers(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """Call a function on each worker, and return the results of those that are not lost.

        Raises:
            UsageError: all workers are lost.
        """
        found: dict[str, Any] = self._client.run(function, *arguments, on_error="return")
        answers = {
            worker: answer for worker, answer in found.items() if not isinstance(answer, Exception)
        }
        for answer in found.values():
            # Dask reports a lost worker as an OSError; all other errors are the function's.
            if isinstance(answer, Exception) and not isinstance(answer, OSError):
                raise answer
        if not answers:
            raise UsageError(
                f"the scheduler at {self._address} has no workers any more: all were lost while "
                f"they were called; dask worker {self._address} starts one"
            )
        return answers

    def _check_versions(self) -> None:
        """Check that all workers have this version of onnxreduce, which their calls need."""

        def version() -> str:  # A local function, so that its code is sent to the worker.
            try:
                from onnxreduce_cli import __version__ as found
            except ImportError:
                return ""
            return found

        for worker, there in self._call_on_workers(version).items():
            if there != __version__:
                seen = f"onnxreduce {there}" if there else "no onnxreduce"
                raise UsageError(
                    f"worker {worker} has {seen}, here it is {__version__}; install the same on "
                    "each"
                )

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Call a function of a module on some worker; function and arguments must be picklable."""
        assert not named
        need = self._memory(*arguments)
        answer = self._client.get_executor(pure=False, **self._placement_options(need)).submit(
            convert_model, self._folder, need, function, arguments
        )
        result: Future[Any] = Future()
        answer.add_done_callback(lambda done: self._settle(done, result))
        return result

    def _placement_options(self, need: int) -> dict[str, Any]:
        """Return the workers for a call: those with enough memory, else the one with the most."""
        enough = [worker for worker, limit in self._limits.items() if limit >= need]
        if not enough and self._limits:
            enough = [max(self._limits, key=lambda worker: self._limits[worker])]
        if len(enough) == len(self._limits):
            return {}
        # If these are lost, any other worker is better than none.
        return {"workers": enough, "allow_other_workers": True}

    def _settle(self, done: Future[Any], result: Future[Any]) -> None:
        """Set the result of a call that Dask has made, or has given up."""
        from distributed import KilledWorker

        if done.cancelled():
            result.set_exception(
                UsageError(
                    f"the scheduler at {self._address} is gone; once it is there again, --resume "
                    "goes on"
                )
            )
        elif isinstance(error := done.exception(), KilledWorker):
            result.set_result(CrashedCall("its worker, as did each that was given it afterwards"))
        elif error is not None:
            result.set_exception(error)
        else:
            result.set_result(done.result())

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster; calls that have begun end by themselves, the others are not made."""
        self._client.close(timeout=_PATIENCE)


def _worker_problem(seen: dict[str, Any], files: dict[str, int]) -> str:
    """Return what is wrong with a worker; empty if nothing is."""
    for name, here in _versions().items():
        if (there := seen["versions"][name]) != here:
            return f"has {name} {there}, here it is {here}; install the same on each"
    for path, size in files.items():
        if seen["files"][path] != size:
            return (
                f"does not see {path} as it is here; the folders of models and of outputs must be "
                "shared, by the same path"
            )
    return ""


@contextmanager
def _probe_file(folder: str | None) -> Iterator[list[str]]:
    """Write a temporary file into an existing folder, which shows which workers share it."""
    if folder is None or not os.path.isdir(folder):
        yield []
        return
    with tempfile.NamedTemporaryFile(prefix=".onnxreduce-", dir=folder) as file:
        yield [os.path.abspath(file.name)]


def _versions() -> dict[str, str]:
    return {"onnx": onnx.__version__}


def _size(path: str) -> int:
    """Return a file's size in bytes; -1 if there is none."""
    try:
        return os.path.getsize(path)
    except OSError:
        return -1


def describe_worker(files: dict[str, int], dask_worker: Any) -> dict[str, Any]:
    """Return a worker's versions, memory and sizes of files; called on the worker."""
    return {
        "versions": _versions(),
        "files": {path: _size(path) for path in files},
        "memory": dask_worker.memory_manager.memory_limit or 1 << 62,
    }


def convert_model(
    folder: str, need: int, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> Any:
    """Make a call in a process of a worker, once there is memory for it; called on the worker."""
    from distributed import get_worker

    worker = get_worker()
    limit = worker.memory_manager.memory_limit or 1 << 62
    pool = _processes(folder if os.path.isdir(folder) else None, worker.state.nthreads)
    with _reserved_memory(need, limit):
        return pool.submit_large(need, function, *arguments).result()


@cache
def _processes(folder: str | None, at_once: int) -> Processes:
    """Return the processes of this worker for callers in a folder."""
    return Processes(at_once, folder)


#: The bytes of memory that each running call of this worker may take.
_taken: list[int] = []
_freed = threading.Condition()


@contextmanager
def _reserved_memory(need: int, limit: int) -> Iterator[None]:
    """Reserve memory for a call: wait until the running calls leave enough, or there are none."""
    with _freed:
        _freed.wait_for(lambda: not _taken or sum(_taken) + need <= limit)
        _taken.append(need)
    try:
        yield
    finally:
        with _freed:
            _taken.remove(need)
            _freed.notify_all()
