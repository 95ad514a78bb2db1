"""What stands between a model and its results."""

from __future__ import annotations


class CannotRunError(Exception):
    """The executor has no way to run the model: a missing kernel, an opset that it does not know.

    This says nothing about the model.
    """


class RefusedError(CannotRunError):
    """The executor finds the model invalid."""


class RunFailedError(Exception):
    """The executor began to run the model and it failed on the inputs given."""


class InputError(ValueError):
    """Inputs that were given cannot be read, or do not fit the model."""


class UncheckableError(Exception):
    """A site cannot be run on its own; the message says why."""
