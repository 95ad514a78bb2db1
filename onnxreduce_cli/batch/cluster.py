"""Calls on the workers of a Dask cluster, which share their files with this machine.

Each worker makes them in processes of its own, as this machine would, so a model that ends its
process ends no worker. A worker that is lost takes its processes along, and Dask gives what it was
doing to another.
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

#: How many calls a thread of the cluster is given beforehand, and the seconds after which threads
#: are counted again, as workers come and go.
_AHEAD = 4
_COUNTED = 5


class Cluster(Pool):
    """A pool of the workers of a Dask cluster.

    Attributes:
        dashboard: where Dask shows what they do.
    """

    repeats = True

    def __init__(self, address: str, memory: Callable[[Any], int]) -> None:
        """Connect to the scheduler.

        Args:
            address: the scheduler's, such as ``tcp://host:8786``.
            memory: the bytes of memory that a call on an item may take.

        Raises:
            UsageError: Dask is not installed, or no scheduler or worker answers.
        """
        try:
            from distributed import Client
        except ImportError:
            raise UsageError(
                "--cluster needs Dask: pip install 'onnxreduce[cluster]', here and on each worker"
            ) from None
        # What it logs, tracebacks among it, is told here in a line.
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
        """How many calls it is given before the first of them is done."""
        if time.monotonic() - self._counted > _COUNTED:
            self._threads = max(sum(self._client.nthreads().values()), 1)
            self._counted = time.monotonic()
        return _AHEAD * self._threads

    def check(self, sources: Sequence[str], out_dir: str | None) -> None:
        """Look whether the workers are like this machine, and have its files.

        Raises:
            UsageError: some worker lacks the models or the folder of outputs, or has another
                version of onnxreduce or onnx; or there is none. One that is lost meanwhile is not
                looked at.
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
        """Call a function on each worker; of one that is lost meanwhile nothing is known.

        Raises:
            UsageError: all are.
        """
        found: dict[str, Any] = self._client.run(function, *arguments, on_error="return")
        answers = {
            worker: said for worker, said in found.items() if not isinstance(said, Exception)
        }
        for said in found.values():
            # So Dask tells of a worker that does not answer; all else is ours.
            if isinstance(said, Exception) and not isinstance(said, OSError):
                raise said
        if not answers:
            raise UsageError(
                f"the scheduler at {self._address} has no workers any more: those it had were lost "
                f"when they were asked; dask worker {self._address} starts one"
            )
        return answers

    def _check_versions(self) -> None:
        """Look whether all workers have this onnxreduce: else nothing of it can be called there."""

        def version() -> str:  # Within this one, so that it goes to a worker as it is.
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
        """Call a function of a module on some worker; all must be picklable."""
        assert not named
        need = self._memory(*arguments)
        answer = self._client.get_executor(pure=False, **self._placement_options(need)).submit(
            convert_model, self._folder, need, function, arguments
        )
        result: Future[Any] = Future()
        answer.add_done_callback(lambda done: self._settle(done, result))
        return result

    def _placement_options(self, need: int) -> dict[str, Any]:
        """Where a call may be made: with those who have the memory, or else the most of it."""
        enough = [worker for worker, limit in self._limits.items() if limit >= need]
        if not enough and self._limits:
            enough = [max(self._limits, key=lambda worker: self._limits[worker])]
        if len(enough) == len(self._limits):
            return {}
        # Rather elsewhere than never, should they be lost.
        return {"workers": enough, "allow_other_workers": True}

    def _settle(self, done: Future[Any], result: Future[Any]) -> None:
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
        """Leave the cluster; what is not begun is not done, what is at work ends by itself."""
        self._client.close(timeout=_PATIENCE)


def _worker_problem(seen: dict[str, Any], files: dict[str, int]) -> str:
    """Say what is wrong with a worker."""
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
    """A new file in a folder that exists, which shows who shares it."""
    if folder is None or not os.path.isdir(folder):
        yield []
        return
    with tempfile.NamedTemporaryFile(prefix=".onnxreduce-", dir=folder) as file:
        yield [os.path.abspath(file.name)]


def _versions() -> dict[str, str]:
    return {"onnx": onnx.__version__}


def _size(path: str) -> int:
    """A file's size in bytes; -1 where there is none."""
    try:
        return os.path.getsize(path)
    except OSError:
        return -1


def describe_worker(files: dict[str, int], dask_worker: Any) -> dict[str, Any]:
    """Say what a worker is and sees; runs there."""
    return {
        "versions": _versions(),
        "files": {path: _size(path) for path in files},
        "memory": dask_worker.memory_manager.memory_limit or 1 << 62,
    }


def convert_model(
    folder: str, need: int, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> Any:
    """Make a call in a process of this worker, once there is memory for it; runs there."""
    from distributed import get_worker

    worker = get_worker()
    limit = worker.memory_manager.memory_limit or 1 << 62
    pool = _processes(folder if os.path.isdir(folder) else None, worker.state.nthreads)
    with _reserved_memory(need, limit):
        return pool.submit_large(need, function, *arguments).result()


@cache
def _processes(folder: str | None, at_once: int) -> Processes:
    """The processes of this worker for those who call from a folder."""
    return Processes(at_once, folder)


#: The bytes of memory that this worker's calls may take which are under way.
_taken: list[int] = []
_freed = threading.Condition()


@contextmanager
def _reserved_memory(need: int, limit: int) -> Iterator[None]:
    """Wait until the calls under way leave room for another, or there are none."""
    with _freed:
        _freed.wait_for(lambda: not _taken or sum(_taken) + need <= limit)
        _taken.append(need)
    try:
        yield
    finally:
        with _freed:
            _taken.remove(need)
            _freed.notify_all()
