"""The options of what is done to a whole model, which `convert` takes."""

from __future__ import annotations

import click

from onnxreduce_cli.cli.stacks import each_of


def _dtypes(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """``bfloat16=float`` and its like as pairs."""
    found: dict[str, str] = {}
    for value in values:
        before, sign, after = value.partition("=")
        if not (before and sign and after):
            raise click.BadParameter(f"{value!r} is not of the form FROM=TO")
        if found.setdefault(before, after) != after:
            raise click.BadParameter(f"it says both {found[before]} and {after} for {before}")
    return found


_OPTIONS = (
    click.option(
        "--strip-metadata",
        type=click.Choice(["nodes", "functions", "all"]),
        help="Drop metadata and doc strings: of nodes, of functions and all in them, or without a "
        "value of everything. PyTorch writes paths of the exporting machine into them.",
    ),
    click.option(
        "--inline-functions",
        is_flag=True,
        help="Put functions' bodies in place of their calls.",
    ),
    click.option(
        "--dtype",
        "dtypes",
        multiple=True,
        callback=_dtypes,
        metavar="FROM=TO",
        help="Change a dtype in values, weights and attributes, as in bfloat16=float.",
    ),
    click.option(
        "--keep-interface", is_flag=True, help="Inputs and outputs keep their dtypes, by Cast."
    ),
)

#: Gives a command the options of what is done to the whole model.
preparation_options = each_of(_OPTIONS)
