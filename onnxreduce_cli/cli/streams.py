"""Standard streams, which may be closed, full, or read by somebody who stops."""

from __future__ import annotations

import io
import os
import sys
from typing import IO

import click

from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.text import printable


def prepare() -> None:
    """Make the standard streams fit to use, whatever they are."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Else the next file that is opened gets the number of a stream that was closed, and
            # whatever a library prints goes into it.
            os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names of files and nodes may hold what the encoding cannot show.
            stream.reconfigure(errors="backslashreplace")


#: Where a progress bar is drawn: back to its beginning, and clear the line.
_CLEAR = "\r\x1b[K"


def say(text: str, *, err: bool = False, over_bar: bool = False) -> None:
    """Print a text on standard output or error; of control characters only newlines remain.

    A reader may close the pipe early, which does not change the exit code: the rest is dropped.

    Args:
        text: lines, in which quoted names have no newlines: see `onnxreduce_cli.text.joined`.
        err: whether it goes to standard error.
        over_bar: whether it takes the place of a progress bar.

    Raises:
        OSError: it cannot be written.
    """
    try:
        shown = "\n".join(printable(line) for line in text.split("\n"))
        click.echo(f"{_CLEAR}{shown}" if over_bar else shown, err=err)
    except BrokenPipeError:
        stream = sys.stderr if err else sys.stdout
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except OSError as error:
        name = "standard error" if err else "standard output"
        raise OSError(error.errno, error.strerror, name) from error


def standard_input() -> IO[bytes]:
    """Standard input.

    Raises:
        UsageError: it is closed.
    """
    if sys.stdin is None:
        raise UsageError("standard input is closed; name a file")
    return sys.stdin.buffer


def standard_output() -> IO[bytes] | None:
    """Standard output; None where it is closed."""
    return None if sys.stdout is None else sys.stdout.buffer
