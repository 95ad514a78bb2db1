"""Standard streams, which may be closed, full, or read by somebody who stops."""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import IO

import click

from onnxreduce_cli.cli.colours import painted
from onnxreduce_cli.cli.colours import wanted as colours_wanted
from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.text import printable

#: What stands for our own signs where a stream's encoding lacks them, as on Windows in a pipe.
_PLAIN = {"→": "->", "√": "sqrt"}
_PLAINLY = "onnxreduce-plainly"


def _plainly(error: UnicodeError) -> tuple[str | bytes, int]:
    """Write a sign in others, or as its number where it is none of ours."""
    if isinstance(error, UnicodeEncodeError) and (sign := error.object[error.start]) in _PLAIN:
        return _PLAIN[sign], error.start + 1
    return codecs.backslashreplace_errors(error)


codecs.register_error(_PLAINLY, _plainly)


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
            stream.reconfigure(errors=_PLAINLY)


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
        shown = "\n".join(painted(printable(line)) for line in text.split("\n"))
        click.echo(f"{_CLEAR}{shown}" if over_bar else shown, err=err, color=colours_wanted())
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
