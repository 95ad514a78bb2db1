"""How long a model may run, and how much memory it may take, on the command line."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from onnxreduce_cli.cli.size import size
from onnxreduce_cli.verification.limits import Limits, limited


def limit_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``--timeout`` and ``--memory``, within which the command then runs models."""

    @click.option(
        "--timeout",
        type=click.FloatRange(0, min_open=True),
        default=Limits.timeout,
        show_default=True,
        metavar="SECONDS",
        help="How long a whole model may take to load, and to run once.",
    )
    @click.option(
        "--memory",
        callback=size,
        default="8GB",
        show_default=True,
        metavar="SIZE",
        help="How much memory running a whole model may take.",
    )
    @wraps(command)
    def within(*args: Any, timeout: float, memory: int, **options: Any) -> None:
        with limited(Limits(timeout, memory)):
            command(*args, **options)

    return within
