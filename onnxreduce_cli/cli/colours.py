"""Colours on a terminal: of the words that tell how something ended, where we say them."""

from __future__ import annotations

import os
import re

import click

#: How the lines that say how a command ended begin, or the cells of a table that say it of a model.
#: What a model is called stands in quotes, after a colon, or further in.
_GOOD = r"EQUIVALENT|can be converted"
_BAD = r"NOT EQUIVALENT|NOT VERIFIED|cannot be converted|Error"
_COLOURS = (
    (rf"^(?:{_BAD})(?=:|\b)", "red"),
    (rf"^(?:{_GOOD})(?=:|\b)", "green"),
    (r"^ *[Ww]arning(?=:)", "yellow"),
    (r"(?<=  )(?:converted|can be converted|skipped|ok)(?=  |$)", "green"),
    (r"(?<=  )(?:cannot be converted|unreadable|crashed|failed|DIFFERENT)(?=  |$)", "red"),
)


def painted(line: str) -> str:
    """A line with its first word that tells how something ended in colour."""
    for pattern, colour in _COLOURS:
        found = re.search(pattern, line)
        if found:
            text = click.style(found[0], fg=colour, bold=True)
            return f"{line[: found.start()]}{text}{line[found.end() :]}"
    return line


def wanted() -> bool | None:
    """False where the user wants no colours; None where the stream decides: a pipe has none."""
    return False if os.environ.get("NO_COLOR") else None
