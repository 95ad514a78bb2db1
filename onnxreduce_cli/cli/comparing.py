"""The options of comparing models, which `verify` and `convert --verify` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _dims(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    """``batch=4`` and its like as sizes by name."""
    found = {}
    for value in values:
        name, _sign, size = value.partition("=")
        if not name or not size.isdigit():
            raise click.BadParameter(f"{value!r} is not of the form name=size")
        found[name] = int(size)
    return found


def _limit(_: click.Context, __: click.Parameter, value: float | None) -> float | None:
    """A tolerance as it is; NaN and what is below 0 would let nothing, or anything, agree."""
    if value is not None and not value >= 0:
        raise click.BadParameter(f"{value} is not 0 or more")
    return value


#: In the order in which help shows them.
_OPTIONS = (
    click.option(
        "-i", "--input", "pairs", multiple=True, metavar="NAME=FILE.npy", help="Real data."
    ),
    click.option(
        "--inputs", metavar="PATH", help="Real data: an .npz file or a test_data_set folder."
    ),
    click.option(
        "--dim", "dims", multiple=True, callback=_dims, metavar="NAME=SIZE", help="Fix a dimension."
    ),
    click.option(
        "--trials",
        type=click.IntRange(1),
        default=5,
        show_default=True,
        help="How many sets of inputs to draw.",
    ),
    click.option(
        "--seed", type=click.IntRange(0), default=0, show_default=True, help="Of what is drawn."
    ),
    click.option(
        "--rtol",
        type=float,
        callback=_limit,
        help="Relative tolerance; by default it depends on the dtype.",
    ),
    click.option(
        "--atol",
        type=float,
        callback=_limit,
        help="Absolute tolerance; by default it depends on the dtype.",
    ),
)


def comparing_options(command: _Command) -> _Command:
    """Give a command the options: `pairs`, `inputs`, `dims`, `trials`, `seed`, `rtol`, `atol`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
