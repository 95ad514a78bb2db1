"""The standard streams, which may be closed, full, or pipes whose reader has stopped.

On a terminal they have colours and progress bars.
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
from onnxreduce_cli.model.file.progress import Progress
from onnxreduce_cli.text import printable

#: Replacements of our own signs if a stream's encoding lacks them, as on Windows in a pipe.
_REPLACEMENTS = {"→": "->", "√": "sqrt"}
_HANDLER = "onnxreduce-plainly"


def _replace_sign(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace a sign that the encoding lacks, by others or by its number."""
    if (
        isinstance(error, UnicodeEncodeError)
        and (sign := error.object[error.start]) in _REPLACEMENTS
    ):
        return _REPLACEMENTS[sign], error.start + 1
    return codecs.backslashreplace_errors(error)


codecs.register_error(_HANDLER, _replace_sign)


def prepare_streams() -> None:
    """Make closed standard streams and any encoding safe to use."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Else the next file that is opened gets the number of the closed stream, and a library
            # that prints would write into it.
            os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names of files and nodes may have signs that the encoding lacks.
            stream.reconfigure(errors=_HANDLER)


#: Patterns of the results of commands at the beginning of lines, and of models in cells of tables.
#: Names of models are in quotes, after a colon, or further on, so that they do not match.
_GOOD = r"EQUIVALENT|Ready|Converted|Unchanged|Can be converted"
_BAD = r"NOT EQUIVALENT|NOT VERIFIED|Cannot be converted|Error"
_COLOURS = (
    (rf"^(?:{_BAD})(?=:|\b)", "red"),
    (rf"^(?:{_GOOD})(?=:|\b)", "green"),
    (r"^(?:Written(?= for )| *[Ww]arning(?=:))", "yellow"),
    (r"(?<=  )(?:converted|unchanged|can be converted|skipped|ok)(?=  |$)", "green"),
    (r"(?<=  )(?:cannot be converted|unreadable|crashed|failed|DIFFERENT)(?=  |$)", "red"),
)


def coloured(line: str) -> str:
    """Return a line with the first result in it, such as ``EQUIVALENT``, in colour."""
    for pattern, colour in _COLOURS:
        found = re.search(pattern, line)
        if found:
            text = click.style(found[0], fg=colour, bold=True)
            return f"{line[: found.start()]}{text}{line[found.end() :]}"
    return line


def _wants_colours() -> bool | None:
    """Return False if the user wants no colours; None if the stream decides: a pipe has none."""
    return False if os.environ.get("NO_COLOR") else None


#: Moves the cursor to the beginning of the line and clears it, as for a progress bar.
_CLEAR = "\r\x1b[K"


#: The variables that runners of GitHub, Azure and TeamCity set; these read commands in the output.
_RUNNERS = ("GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION")


def _without_command(line: str) -> str:
    """Return a line in which no name of a model or file is a command for a runner.

    It takes a line that begins with ``::``, or has ``##[`` or ``##name[`` anywhere. The escapes are
    those of JSON too, in which the text stays the same.
    """
    if not any(map(os.environ.get, _RUNNERS)):
        return line
    return re.sub(r"^( *):(?=:)", r"\1\\u003a", re.sub(r"##(?=\w*\[)", r"#\\u0023", line))


def say(text: str, *, err: bool = False, over_bar: bool = False, command: bool = False) -> None:
    """Print a text on standard output or error, without control characters except newlines.

    If a reader closes the pipe early, the rest is dropped, and the exit code does not change.

    Args:
        text: lines, in which quoted names have no newlines: see `onnxreduce_cli.text.joined`.
        err: whether it goes to standard error.
        over_bar: whether it replaces a progress bar.
        command: whether it is one line, and a command for GitHub's runner.

    Raises:
        OSError: the stream cannot be written.
    """
    try:
        lines = [printable(line) for line in text.split("\n")]
        shown = "\n".join(lines if command else map(coloured, map(_without_command, lines)))
        click.echo(f"{_CLEAR}{shown}" if over_bar else shown, err=err, color=_wants_colours())
    except BrokenPipeError:
        stream = sys.stderr if err else sys.stdout
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except OSError as error:
        name = "standard error" if err else "standard output"
        raise OSError(error.errno, error.strerror, name) from error


def standard_input() -> IO[bytes]:
    """Return standard input as bytes.

    Raises:
        UsageError: it is closed.
    """
    if sys.stdin is None:
        raise UsageError("standard input is closed; name a file")
    return sys.stdin.buffer


def standard_output() -> IO[bytes] | None:
    """Return standard output as bytes; None if it is closed."""
    return None if sys.stdout is None else sys.stdout.buffer


@contextmanager
def progress_bar(label: str) -> Iterator[Progress | None]:
    """Show a progress bar on stderr from the first call on; None if that is no terminal."""
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
