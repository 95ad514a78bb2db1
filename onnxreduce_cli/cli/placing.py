"""The options of where weights go, which `convert` takes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal

import click

from onnxreduce_cli.cli.size import size


def placement_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of where weights go, as ``placement``."""

    @click.option(
        "--external-data",
        type=click.Choice(["link", "copy", "keep"]),
        default="copy",
        show_default=True,
        help="How external data goes along to another folder. onnx refuses hard links.",
    )
    @click.option(
        "--allow-outside-data", is_flag=True, help="Data may lie outside the model's folder."
    )
    @click.option(
        "--external-data-threshold",
        "threshold",
        callback=size,
        metavar="SIZE",
        help="Put weights of at least this size, such as 1MB, into a file beside the output.",
    )
    @click.option("--inline", is_flag=True, help="Put external data into the model's file.")
    @wraps(command)
    def placing(
        external_data: Literal["link", "copy", "keep"],
        allow_outside_data: bool,
        threshold: int | None,
        inline: bool,
        **options: Any,
    ) -> None:
        from onnxreduce_cli.api.save import Placement

        placement = Placement(external_data, allow_outside_data, threshold, inline)
        command(**options, placement=placement)

    return placing
