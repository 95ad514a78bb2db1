"""The types of values on the command line."""

from __future__ import annotations

import click


def _types(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """``y=uint8`` and its like as types by name; of a name, too, ``=`` may be part."""
    found: dict[str, str] = {}
    for value in values:
        name, _sign, text = value.rpartition("=")
        if not name or not text:
            raise click.BadParameter(f"{value!r} is not of the form NAME=DTYPE")
        if found.setdefault(name, text) != text:
            raise click.BadParameter(f"it says both {found[name]} and {text} of {name!r}")
    return found


#: Adds ``--type``, as ``types``.
type_option = click.option(
    "--type",
    "types",
    multiple=True,
    callback=_types,
    metavar="NAME=DTYPE[DIM,...]",
    help="Take a value to be of this type where nothing else tells, as in y=uint8 or "
    "y=float[N,3,224]. May be given several times.",
)
