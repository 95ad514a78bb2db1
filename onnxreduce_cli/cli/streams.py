"""Standard streams, which may be closed, full, or read by somebody who stops.

On a terminal they have colours, and bars that show progress.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO

import click

from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.model.progress import Progress
from onnxreduce_cli.text import printable

#: What stands for our own signs where a stream's encoding lacks them, as on Windows in a pipe.
_REPLACEMENTS = {"→": "->", "√": "sqrt"}
_HANDLER = "onnxreduce-plainly"


def _replace_sign(error: UnicodeError) -> tuple[str | bytes, int]:
    """Write a sign in others, or as its number where it is none of ours."""
    if (
        isinstance(error, UnicodeEncodeError)
        and (sign := error.object[error.start]) in _REPLACEMENTS
    ):
        return _REPLACEMENTS[sign], error.start + 1
    return codecs.backslashreplace_errors(error)


codecs.register_error(_HANDLER, _replace_sign)


def prepare_streams() -> None:
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
            stream.reconfigure(errors=_HANDLER)


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


def coloured(line: str) -> str:
    """A line with its first word that tells how something ended in colour."""
    for pattern, colour in _COLOURS:
        found = re.search(pattern, line)
        if found:
            text = click.style(found[0], fg=colour, bold=True)
            return f"{line[: found.start()]}{text}{line[found.end() :]}"
    return line


def _wants_colours() -> bool | None:
    """False where the user wants no colours; None where the stream decides: a pipe has none."""
    return False if os.environ.get("NO_COLOR") else None


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
        shown = "\n".join(coloured(printable(line)) for line in text.split("\n"))
        click.echo(f"{_CLEAR}{shown}" if over_bar else shown, err=err, color=_wants_colours())
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


@contextmanager
def progress_bar(label: str) -> Iterator[Progress | None]:
    """A progress bar on stderr, drawn from the first report on; None if that is no terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    with ExitStack() as stack:
        bar = click.progressbar(length=1, label=label, file=sys.stderr)

        def progress(done: int, total: int, _: str) -> None:
            if not drawn:
                stack.enter_context(bar)
                drawn.append(True)
            bar.length = total
            bar.update(done - bar.pos)

        drawn: list[bool] = []
        yield progress
