"""The protocol of runners, and the NumPy executor in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from onnx import ModelProto

from onnxreduce_cli.model.file.document import Document
from onnxreduce_cli.model.file.weights import mappable
from onnxreduce_cli.verification.errors import (
    CannotRunError,
    LimitError,
    RefusedError,
    RunFailedError,
)

#: The executors by name, in the order in which they run.
EXECUTORS = ("onnxruntime", "numpy")


class Runner(Protocol):
    """A model made ready to run."""

    def run(self, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """Run the model once.

        Args:
            feeds: arrays by input name; lists for sequences, None for an empty optional.
            names: the values wanted.

        Raises:
            RunFailedError: it failed on these inputs.
            CannotRunError: the executor turned out not to support something.
        """


class NumpyRunner:
    """A model prepared for the NumPy executor."""

    def __init__(self, given: ModelProto | str, base_dir: str = "") -> None:
        """Prepare the model.

        Args:
            given: the model, or its path.
            base_dir: the folder that external data of a model in memory is relative to.

        Raises:
            CannotRunError: the executor cannot run some node.
            RefusedError: it finds the model invalid, or cannot read it.
        """
        from onnxreduce_cli import executor

        self._unsupported = executor.UnsupportedError
        self._failed = executor.ExecutorError
        try:
            if base_dir and isinstance(given, ModelProto):
                copy = ModelProto()
                copy.CopyFrom(given)
                given = mappable(Document(copy, base_dir=base_dir))
            self._executor = executor.Executor(given)
        except executor.UnsupportedError as error:
            raise CannotRunError(str(error)) from error
        except (executor.ExecutorError, OSError, ValueError) as error:
            raise RefusedError(str(error)) from error

    def subgraphs_not_run(self) -> list[tuple[str, str]]:
        """Return the subgraphs that no run so far has needed, as node's name and attribute."""
        return self._executor.subgraphs_not_run()

    def run(self, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """Run the model once; see `Runner.run`."""
        known = set(self._executor.input_names)
        given = {name: value for name, value in feeds.items() if name in known}
        try:
            return self._executor.run(given, outputs=names)
        except self._unsupported as error:
            raise CannotRunError(str(error)) from error
        except self._failed as error:
            raise RunFailedError(str(error)) from error
        except MemoryError as error:
            raise LimitError("it takes more memory than there is") from error
