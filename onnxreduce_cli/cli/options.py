"""The options of comparing models, which `verify` and `convert --verify` share."""

from __future__ import annotations

import click

from onnxreduce_cli.cli.completing import dims as dim_names
from onnxreduce_cli.cli.stacks import each_of


def _dims(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    """``batch=4`` and its like as sizes by name."""
    found: dict[str, int] = {}
    for value in values:
        name, _sign, size = value.partition("=")
        if not name or not size.isdecimal():
            raise click.BadParameter(f"{value!r} is not of the form name=size, as batch=1")
        if found.setdefault(name, int(size)) != int(size):
            raise click.BadParameter(f"it says both {found[name]} and {int(size)} for {name}")
    return found


def _limit(_: click.Context, __: click.Parameter, value: float | None) -> float | None:
    """A tolerance as it is; NaN and what is below 0 would let nothing, or anything, agree."""
    if value is not None and not value >= 0:
        raise click.BadParameter(f"{value} is not 0 or more")
    return value


_OPTIONS = (
    click.option(
        "-i", "--input", "pairs", multiple=True, metavar="NAME=FILE.npy", help="Real data."
    ),
    click.option(
        "--inputs",
        type=click.Path(),
        metavar="PATH",
        help="Real data: an .npz file or a test_data_set folder.",
    ),
    click.option(
        "--dim",
        "dims",
        multiple=True,
        shell_complete=dim_names,
        callback=_dims,
        metavar="NAME=SIZE",
        help="Fix a dimension.",
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


#: Gives a command `pairs`, `inputs`, `dims`, `trials`, `seed`, `rtol` and `atol`.
comparing_options = each_of(_OPTIONS)
