"""Sizes on the command line."""

from __future__ import annotations

import re

import click

_UNITS = {"": 1, "b": 1}
_UNITS |= {f"{prefix}b": 1000**power for power, prefix in enumerate("kmgt", 1)}
_UNITS |= {f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgt", 1)}


def size(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """A number of bytes: ``1048576``, ``1MB`` (a million), ``512KiB`` (of 1024 each)."""
    if value is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *([a-z]*)", value.strip().lower())
    if found is None or found[2] not in _UNITS:
        raise click.BadParameter(f"{value!r} is no size; give one like 1048576, 512KiB or 1MB")
    return int(float(found[1]) * _UNITS[found[2]])
