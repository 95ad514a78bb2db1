"""The `onnxreduce` command and its subcommands.

Nothing heavy is imported before a subcommand runs.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from importlib import import_module

import click

from onnxreduce_cli import __version__
from onnxreduce_cli.cli.streams import prepare, say
from onnxreduce_cli.text import joined

#: Subcommands, by the module of this package that holds them.
_COMMANDS = {
    "convert": "convert",
    "inspect": "inspect",
    "ops": "ops",
    "run": "run",
    "verify": "verify",
}

_SUMMARIES = {
    "convert": "Move a model to another opset.",
    "inspect": "Show a model's opsets and operators, and which opsets it can reach.",
    "ops": "Show the versions of operators and the steps between them.",
    "run": "Run a model with ONNX Runtime or the built-in NumPy executor.",
    "verify": "Check whether two models are the same function.",
}


#: New objects after which the garbage collector looks for cycles among them; usually 700.
_COLLECTED_AFTER = 100_000


class _Group(click.Group):
    """Subcommands whose modules are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"onnxreduce_cli.cli.{_COMMANDS[cmd_name]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_SUMMARIES.items()))


@click.command(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="onnxreduce")
def cli() -> None:
    """Move ONNX models between opsets: nothing lost, nothing guessed.

    Exit codes: 0 done; 1 cannot be converted, or not equivalent; 2 wrong usage or unreadable
    input; 3 nothing could run the model, so nothing is known.
    """


def program() -> None:
    """Run the command line as a program of its own, which starts and ends quickly.

    The interpreter would free what is left object by object, some seconds' work after a model of
    a million nodes, and the collector would look through everything that is imported many times.
    """
    gc.set_threshold(_COLLECTED_AFTER)
    # SIGTERM ends it as an exception does: temporary files are removed, processes stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        main()
    except SystemExit as end:
        atexit._run_exitfuncs()
        try:
            for stream in filter(None, (sys.stdout, sys.stderr)):
                stream.flush()
        except (OSError, ValueError):
            raise end from None  # A closed stream, say; the interpreter knows what to do then.
        os._exit(end.code if isinstance(end.code, int) else 1)


def main() -> None:
    """Run the command line; errors become one line each on stderr and an exit code."""
    prepare()
    try:
        # Without its standalone mode click gives the code of an early exit back.
        sys.exit(cli(standalone_mode=False) or 0)
    except click.ClickException as error:
        _show(error)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        say("interrupted", err=True)
        sys.exit(130)
    except Exception as error:
        _fail(error)


def _show(error: click.ClickException) -> None:
    """Print what is wrong with the command line, as click does, which prints names as they are."""
    if isinstance(error, click.UsageError) and error.ctx is not None:
        say(f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} -h' for help.\n", err=True)
    say(joined([f"Error: {error.format_message()}"]), err=True)


def _fail(error: Exception) -> None:
    from onnxreduce_cli.report.failures import failure

    found = failure(error)
    say(found.text, err=True)
    sys.exit(found.code)


if __name__ == "__main__":
    program()
