"""How long a model may run, and how much memory it may take, on the command line."""

from __future__ import annotations

import click

from onnxreduce_cli.cli.size import size
from onnxreduce_cli.cli.stacks import each_of

_OPTIONS = (
    click.option(
        "--timeout",
        type=click.FloatRange(0, min_open=True),
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="How long a whole model may take to load, and to run once.",
    ),
    click.option(
        "--memory",
        callback=size,
        default="8GB",
        show_default=True,
        metavar="SIZE",
        help="How much memory running a whole model may take.",
    ),
)

#: Gives a command `timeout` and `memory`, within which it runs whole models.
limit_options = each_of(_OPTIONS)
