"""The errors of running models and of comparing their results."""

from __future__ import annotations

from onnxreduce_cli.errors import OnnxreduceError


class CannotRunError(OnnxreduceError):
    """The executor does not support the model: it lacks a kernel, or does not know the opset.

    The model itself may well be valid.
    """

    exit_code = 3
    state = "cannot be run"


class RefusedError(CannotRunError):
    """The executor finds the model invalid."""


class MissingError(CannotRunError):
    """The executor cannot be imported; the message begins with "it"."""


class LimitError(CannotRunError):
    """The model takes more time or memory than it may."""

    state = "stopped"


class RunFailedError(OnnxreduceError):
    """The executor began to run the model and it failed on the inputs given."""

    state = "failed to run"


class CrashedError(RunFailedError):
    """The executor ended its own process on the inputs given."""


class InputError(OnnxreduceError, ValueError):
    """Inputs that were given cannot be read, or do not fit the model."""

    exit_code = 2
    state = "refused"
