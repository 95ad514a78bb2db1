"""`onnxreduce convert`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from onnxreduce_cli.cli.progress import progress_bar

if TYPE_CHECKING:
    from onnxreduce_cli.convert_file import Converted


def _ir_version(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """The option's value for `Options`: None to leave it, 0 for the least."""
    if value is None:
        return None
    if value == "auto":
        return 0
    if not value.isdigit() or int(value) < 3:
        raise click.BadParameter("give a number from 3 on, or auto")
    return int(value)


@click.command(name="convert")
@click.argument("model")
@click.option("--opset", type=int, help="The opset to reach; by default the model's own.")
@click.option(
    "-o", "--output", help="Where to write; by default MODEL.opsetN.onnx. - is standard output."
)
@click.option("--dry-run", is_flag=True, help="Show the plan, write nothing.")
@click.option(
    "--expand",
    multiple=True,
    metavar="OPERATOR",
    help="Replace this operator by its function body. May be given several times.",
)
@click.option(
    "--ir-version",
    callback=_ir_version,
    metavar="N|auto",
    help="The IR version to write; auto is the least that opset and model allow. "
    "By default it is raised only where the opset needs it.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--in-place", is_flag=True, help="Allow the output to be the input.")
@click.option("--no-check", is_flag=True, help="Do not run each changed node, before and after.")
@click.option("--verify", is_flag=True, help="Also compare the whole model, before and after.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def command(
    model: str,
    opset: int | None,
    output: str | None,
    dry_run: bool,
    expand: tuple[str, ...],
    ir_version: int | None,
    force: bool,
    in_place: bool,
    no_check: bool,
    verify: bool,
    quiet: bool,
) -> None:
    """Move MODEL (a file, or - for standard input) to another opset.

    Nothing is written if any node cannot get there: each is named on stderr with its reason, and
    the exit code is 1. Each distinct node that changes is run before and after on small inputs; one
    that computes something else stops the conversion.
    """
    from onnxreduce_cli.convert_file import Options, convert_file

    options = Options(
        opset,
        expand,
        ir_version,
        dry_run=dry_run,
        force=force,
        in_place=in_place,
        check=not no_check,
        verify=verify,
    )
    with progress_bar("verifying") as progress:
        done = convert_file(
            model,
            output,
            options,
            stdin=sys.stdin.buffer,
            stdout=sys.stdout.buffer,
            progress=progress,
        )
    if dry_run:
        _show_plan(done)
    elif not quiet:
        _show(done)


def _show_plan(done: Converted) -> None:
    from onnxreduce_cli.report.plan import plan_text

    click.echo(plan_text(done.plan, done.source))
    for blocker in done.plan.blockers:
        click.echo(str(blocker), err=True)
    sys.exit(0 if done.plan.possible else 1)


def _show(done: Converted) -> None:
    from onnxreduce_cli.report.plan import changes_text

    # Standard output is for the model where it goes there.
    to_stream = done.target == "-"
    click.echo(changes_text(done.plan, done.source, done.target), err=to_stream)
    if done.sites is not None:
        click.echo(f"  {done.sites.summary()}", err=to_stream)
        for item in done.sites.unchecked:
            click.echo(f"warning: not checked: {item}", err=True)
        for remark in done.sites.remarks:
            click.echo(f"remark: {remark}", err=True)
    if done.verified is not None:
        told = sum(not trial.void for trial in done.verified.trials)
        click.echo(f"  verified: the whole models agree on {told} inputs", err=to_stream)
    for change in done.plan.changes:
        for warning in change.warnings:
            click.echo(f"warning: {change.op_type} node {change.node}: {warning}", err=True)
