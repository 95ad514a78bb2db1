"""Models that run in the worker.

ONNX Runtime ends the process on some inputs (the lowest integer divided by -1) and some models
(attention over no heads), and a loop need not end. In the worker that costs one run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import count
from typing import Any

import numpy as np
from onnx import ModelProto, ValueInfoProto

from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.verification.errors import (
    CannotRunError,
    CrashedError,
    LimitError,
    MissingError,
    RunFailedError,
)
from onnxreduce_cli.verification.running.limits import Limits, current_limits
from onnxreduce_cli.verification.running.sessions import (
    WorkerModel,
    close_models,
    full_check,
    open_model,
    run_models,
    runtime_version,
    subgraphs_not_run,
)
from onnxreduce_cli.verification.running.source import ModelSource
from onnxreduce_cli.worker import process
from onnxreduce_cli.worker.process import (
    EndedError,
    LateError,
    Reply,
    TooLargeError,
    UnansweredError,
)

#: The executors' names in messages.
EXECUTOR_NAMES = {"onnxruntime": "ONNX Runtime", "numpy": "the NumPy executor"}

#: The bytes of memory that a worker may keep when no model is open.
_KEPT = 1 << 28

_keys = count()


class IsolatedRunner:
    """A model that is open in the worker.

    It begins to open the model at once; `ready` waits until it is open.

    Attributes:
        source: the model.
        executor: what runs it.
        worker: the process that has it open.
        key: what calls to the worker name it by.
    """

    def __init__(
        self,
        source: ModelSource,
        executor: str,
        extra: Sequence[str] = (),
        *,
        limits: Limits | None = None,
        threads: int = 0,
    ) -> None:
        """Begin to open the model.

        Args:
            source: the model.
            executor: one of `runtime.EXECUTORS`.
            extra: names of values of the main graph that a run can return beside its outputs.
            limits: on opening, and on each run; by default `current_limits`.
            threads: how many threads ONNX Runtime may use; 0 for its own choice.

        Raises:
            CannotRunError: it cannot be given to another process.
        """
        self.key = next(_keys)
        self.executor = executor
        self._limits = limits or current_limits()
        self.source = source
        self._extra = tuple(extra)
        self._threads = threads
        self._mapped = 0
        self._refused: CannotRunError | None = None
        self._opening: Reply | None = self._open()

    def __del__(self) -> None:
        """Close the model in the worker too: one session in memory at a time."""
        worker = getattr(self, "worker", None)
        if worker is not None:
            # Not sent from here, which may be in the middle of sending something else.
            worker.deferred.append((close_models, ([self.key],)))

    def ready(self) -> None:
        """Wait until the model is open, in a new worker where the last one has ended.

        Raises:
            CannotRunError: the executor cannot run the model.
            LimitError: opening it takes too long or too much memory.
        """
        if self._refused is not None:
            raise self._refused
        if self._opening is None and not self.worker.alive:
            self._opening = self._open()
        while self._opening is not None:
            opening, self._opening = self._opening, None
            try:
                self._answer(opening, "this model")
            except UnansweredError:
                self._opening = self._open()
            except CrashedError as error:
                self._refused = CannotRunError(str(error))
                raise self._refused from None
            except CannotRunError as error:
                self._refused = error
                raise

    def run(self, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """Run the model once; see `runtime.Runner.run`.

        Raises:
            CrashedError: it ended the worker.
            LimitError: it takes too long, or too much memory.
            RunFailedError: it failed on these inputs.
            CannotRunError: the executor turned out not to support something.
        """
        while True:
            self.ready()
            try:
                [[found]] = self.run_with([self], [feeds], names)
            except UnansweredError:
                continue  # What came before it ended the worker.
            if isinstance(found, Exception):
                raise found
            return found

    def run_with(
        self,
        runners: Sequence[IsolatedRunner],
        sets: Sequence[Mapping[str, Any]],
        names: Sequence[str],
    ) -> list[list[dict[str, Any] | Exception]]:
        """Run open models of one worker on several sets of inputs, all within this one's limits.

        Args:
            runners: the models; each is `ready`.
            sets: inputs by name.
            names: the values wanted.

        Returns:
            for each set of inputs and each model its outputs, or the exception that `run` raises.

        Raises:
            CrashedError: some run ended the worker.
            LimitError: the runs take too long, or too much memory.
            UnansweredError: the worker ended before.
        """
        keys = [runner.key for runner in runners]
        plain = [{name: _plain(value) for name, value in feeds.items()} for feeds in sets]
        reply = self._send(run_models, keys, plain, list(names))
        results = self._answer(reply, "these inputs")
        return [[self._result(item) for item in row] for row in results]

    def subgraphs_not_run(self) -> list[tuple[str, str]]:
        """Return the subgraphs that no run has needed, as node's name and attribute.

        None are known in ONNX Runtime, nor after the worker ended.
        """
        try:
            found: list[tuple[str, str]] = self._answer(
                self._send(subgraphs_not_run, self.key), "this model"
            )
        except (UnansweredError, RunFailedError, CannotRunError):
            return []
        return found

    def _open(self) -> Reply:
        model = _worker_model(self.source, self.executor, self._extra)
        self._mapped = model.mapped
        try:
            self.worker = process.current_worker()
        except OSError as error:
            raise CannotRunError(f"no process can be started for it: {error.strerror}") from error
        return self._send(open_model, self.key, self.executor, model, self._threads)

    def _send(self, function: Any, *arguments: Any) -> Reply:
        memory = self._limits.memory + self._mapped
        return self.worker.send(function, *arguments, seconds=self._limits.timeout, memory=memory)

    def _answer(self, reply: Reply, what: str) -> Any:
        """Wait for an answer about a model, or about inputs.

        Raises:
            UnansweredError: the worker ended before.
            CrashedError: this ended it.
            LimitError: it takes too long, or too much memory.
            CannotRunError, RunFailedError: what the worker raises.
        """
        try:
            return self.worker.result(reply)
        except UnansweredError:
            raise
        except LateError:
            raise LimitError(self._limits.timeout_message) from None
        except TooLargeError:
            raise LimitError(self._limits.memory_message) from None
        except EndedError as error:
            called = EXECUTOR_NAMES[self.executor]
            raise CrashedError(f"{called} ended with {error} on {what}") from None
        except MemoryError as error:
            raise self._too_large(error) from None

    def _result(self, found: dict[str, Any] | Exception) -> dict[str, Any] | Exception:
        return self._too_large(found) if isinstance(found, MemoryError) else found

    def _too_large(self, error: MemoryError) -> LimitError:
        return LimitError(f"{self._limits.memory_message} ({error})")


def _plain(value: Any) -> Any:
    """Return a value in this machine's byte order, with strings as objects."""
    if value is None:
        return None
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    array = np.asarray(value, order="C")
    if array.dtype.kind in "OUS":
        texts = [str(item) for item in array.reshape(-1)]
        # The last keeps NumPy from looking into texts.
        return np.array([*texts, None], object)[:-1].reshape(array.shape)
    if not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("="))
    return array


def _worker_model(source: ModelSource, executor: str, extra: Sequence[str]) -> WorkerModel:
    """Return a model to send to the worker, with inner values as outputs beside its own.

    ONNX Runtime gives outputs only. They are appended to the model's bytes without parsing it, as
    protobuf merges messages that follow each other. A large file's weights are mapped for that,
    as the model is opened again for other values; without `extra` the file itself is opened.

    Raises:
        CannotRunError: protobuf has no form for a model of 2 GB and more.
    """
    path, base_dir, mapped, content = source.path, source.base_dir, source.mapped, b""
    if source.model is not None:
        try:
            content = source.model.SerializeToString()
        except ValueError as error:
            raise CannotRunError(
                f"it cannot be given to {EXECUTOR_NAMES[executor]}: {error}"
            ) from error
    suffix = ModelProto()
    if executor == "onnxruntime":
        more = [name for name in extra if name not in source.outputs]
        suffix.graph.output.extend(ValueInfoProto(name=name) for name in more)
    if suffix.graph.output:
        if path is not None and source.in_place is not None:
            mapped = os.path.getsize(path)
            path, (content, base_dir) = None, source.in_place
        content += suffix.SerializeToString()
    return WorkerModel(path, base_dir, mapped, content)


def open_isolated(
    source: ModelSource,
    executor: str,
    *,
    extra: Sequence[str] = (),
) -> IsolatedRunner:
    """Open a model in the worker, where it can neither end nor hold up this process.

    It runs within `current_limits`.

    Args:
        source: the model.
        executor: one of `runtime.EXECUTORS`.
        extra: names of values of the main graph that a run can return beside its outputs.

    Raises:
        CannotRunError: the executor cannot run the model, or not within the limits.
        UsageError: there is no such executor.
    """
    if executor not in EXECUTOR_NAMES:
        raise UsageError(
            f"there is no executor {executor!r}; there are {', '.join(EXECUTOR_NAMES)}"
        )
    runner = IsolatedRunner(source, executor, extra)
    runner.ready()
    return runner


def full_check_error(source: ModelSource) -> str:
    """Return what onnx's full check, in the worker, finds wrong with a model; empty if nothing.

    Raises:
        CannotRunError: the check cannot be made, or not within the limits.
    """
    model = _worker_model(source, "onnxruntime", ())
    return _call(full_check, model, mapped=model.mapped, what="onnx")


def runtime_problem() -> str:
    """Return why ONNX Runtime cannot run anything, after its name; empty if it can."""
    try:
        installed_version()
    except MissingError as error:
        return str(error).removeprefix("it ")
    except CannotRunError:
        return ""  # That is said where it is to run something.
    return ""


@cache
def installed_version() -> str:
    """Return the version of the ONNX Runtime that the worker imports.

    Raises:
        CannotRunError: it cannot be imported.
    """
    return _call(runtime_version, what="ONNX Runtime")


def _call(function: Callable[..., str], *arguments: Any, mapped: int = 0, what: str) -> str:
    """Call a function in the worker, within the limits of a model.

    Args:
        function: the function, and its arguments.
        mapped: the bytes of files that it maps.
        what: what may end the process.

    Raises:
        CannotRunError: it cannot be called, or not within the limits, or it raises that.
    """
    limits = current_limits()
    while True:
        try:
            worker = process.current_worker()
            memory = limits.memory + mapped
            found: str = worker.call(function, *arguments, seconds=limits.timeout, memory=memory)
        except UnansweredError:
            continue  # What came before it ended the worker.
        except LateError:
            raise LimitError(limits.timeout_message) from None
        except TooLargeError:
            raise LimitError(limits.memory_message) from None
        except EndedError as error:
            raise CannotRunError(f"{what} ended with {error}") from None
        except OSError as error:
            raise CannotRunError(f"no process can be started for it: {error.strerror}") from error
        return found


def close_unused_models() -> None:
    """Wait until this thread's worker has closed the models that are no longer used.

    Windows neither replaces nor removes a file that is open.
    """
    worker = process.running_worker()
    if worker is not None and worker.deferred:
        with suppress(EndedError):
            worker.call(close_models, [])


def end_large_worker() -> None:
    """End this thread's worker if it has much memory left once its models are closed.

    Allocators return little of it to the system.
    """
    close_unused_models()
    worker = process.running_worker()
    if worker is not None and worker.memory > _KEPT:
        worker.end()
