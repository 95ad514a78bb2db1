"""The options of where weights go, which `convert` takes."""

from __future__ import annotations

import click

from onnxreduce_cli.cli.size import size
from onnxreduce_cli.cli.stacks import each_of

_OPTIONS = (
    click.option(
        "--external-data",
        type=click.Choice(["link", "copy", "keep"]),
        default="copy",
        show_default=True,
        help="How external data goes along to another folder. onnx refuses hard links.",
    ),
    click.option(
        "--allow-outside-data",
        "allow_outside",
        is_flag=True,
        help="Data may lie outside the model's folder.",
    ),
    click.option(
        "--external-data-threshold",
        "threshold",
        callback=size,
        metavar="SIZE",
        help="Put weights of at least this size, such as 1MB, into a file beside the output.",
    ),
    click.option("--inline", is_flag=True, help="Put external data into the model's file."),
)

#: Gives a command the options of where weights go.
placement_options = each_of(_OPTIONS)
