"""The `onnxreduce` command and its subcommands.

Nothing heavy is imported before a subcommand runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module

import click

from onnxreduce_cli.cli.call import note_call, versions
from onnxreduce_cli.cli.help import write_examples
from onnxreduce_cli.cli.reporting import report_usage_error
from onnxreduce_cli.cli.streams import prepare_streams, say
from onnxreduce_cli.text import joined, nearest, wrapped

#: The subcommands: the module of this package that each is in, and its help.
_COMMANDS = {
    "convert": ("convert", "Convert a model to another opset, or for a runtime."),
    "diff": ("showing", "Show what differs between two models as graphs."),
    "inspect": ("showing", "Show a model's opsets and operators, and which opsets it can reach."),
    "ops": ("showing", "Show the versions of operators and the steps between them."),
    "run": ("run", "Run a model with ONNX Runtime or the built-in NumPy executor."),
    "targets": ("showing", "Show what runtimes take, and what they get wrong."),
    "verify": ("verify", "Check whether two models are the same function."),
}


#: What commands are called in other tools, with what to type here after ``onnxreduce``.
_MEANT = {
    "upgrade": "convert MODEL --opset N",
    "downgrade": "convert MODEL --opset N",
    "simplify": "convert MODEL --fold",
    "optimize": "convert MODEL --fold",
    "info": "inspect MODEL",
    "show": "inspect MODEL",
    "compare": "verify A B",
    "check": "verify MODEL",
    "runtimes": "targets",
    "operators": "ops",
}


class _Group(click.Group):
    """Subcommands whose modules are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"onnxreduce_cli.cli.{_COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            say(ctx.get_help(), err=True)
            ctx.exit(2)
        typed = [*args]
        note_call(ctx, typed)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name
            if any(name in option.opts for option in self._options_of_commands(ctx)):
                text = f"{name} goes after its command: onnxreduce COMMAND {name}"
                raise _refused(click.UsageError(text, ctx), typed) from None
            raise _refused(error, typed) from None
        except click.UsageError as error:
            raise _refused(error, typed) from None

    def _options_of_commands(self, ctx: click.Context) -> Iterator[click.Parameter]:
        for name in _COMMANDS:
            command = self.get_command(ctx, name)
            assert command is not None
            yield from command.params

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = nearest(args[0], _COMMANDS, 1)
            meant = f"Did you mean {near[0]}?" if near else f"There are {', '.join(_COMMANDS)}."
            if args[0] in _MEANT:
                meant = f"It is here: onnxreduce {_MEANT[args[0]]}"
            elif os.path.exists(args[0]) or args[0].endswith(".onnx"):
                import shlex

                meant = f"A command comes before a model: onnxreduce convert {shlex.join(args)}"
            refused = click.UsageError(f"{error.message} {meant}", ctx)
            raise _refused(refused, args) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples("", formatter)


def _refused(error: click.UsageError, typed: list[str]) -> click.UsageError:
    """Print the report of wrong usage of the program itself, if one is requested."""
    report_usage_error("onnxreduce", typed, error)
    return error


def _show_versions(context: click.Context, _: click.Parameter, value: bool) -> None:
    """Print the versions that a bug report needs."""
    if not value or context.resilient_parsing:
        return
    found = versions()
    python, system = found.pop("python"), found.pop("platform")
    for name, version in found.items():
        say(f"{name} {version}")
    say(f"Python {python} on {system}")
    context.exit()


@click.command(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-V",
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_versions,
    help="Show the version, and those of what it is built on.",
)
def cli() -> None:
    """Move ONNX models between opsets: nothing lost, nothing guessed.

    Exit codes: 0 done; 1 cannot be converted, not equivalent, or different; 2 wrong usage or
    unreadable input; 3 nothing could run the model, so nothing is known.
    """


def main() -> None:
    """Run the command line; errors become one line each on stderr and an exit code."""
    prepare_streams()
    if "_ONNXREDUCE_COMPLETE" in os.environ:
        import_module("onnxreduce_cli.cli.bash")
    try:
        # Without its standalone mode click returns the code of an early exit.
        sys.exit(cli(prog_name="onnxreduce", standalone_mode=False) or 0)
    except click.ClickException as error:
        _show(error)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        say("interrupted", err=True)
        sys.exit(130)
    except Exception as error:
        _fail(error)


def _show(error: click.ClickException) -> None:
    """Print an error of usage as click does, but with names made printable."""
    if isinstance(error, click.UsageError) and error.ctx is not None:
        say(f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} -h' for help.\n", err=True)
    say(joined([f"Error: {error.format_message()}"]), err=True)


def _fail(error: Exception) -> None:
    from onnxreduce_cli.report.failures import failure

    found = failure(error)
    first, *more = found.text.split("\n")
    blocked = bool(getattr(error, "blockers", ()))
    say(f"{first}\n{wrapped(more)}" if blocked else found.text, err=True)
    sys.exit(found.code)
