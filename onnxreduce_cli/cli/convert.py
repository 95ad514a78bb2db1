"""`onnxreduce convert`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onnxreduce_cli.errors import ConversionError

if TYPE_CHECKING:
    from onnxreduce_cli.conversion import Conversion
    from onnxreduce_cli.model.files import Document


def _ir_version(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """The option's value for `Conversion`: None to leave it, 0 for the least."""
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
    from onnxreduce_cli.checking import check
    from onnxreduce_cli.conversion import Conversion
    from onnxreduce_cli.model.files import STREAM, load
    from onnxreduce_cli.report.plan import changes_text, plan_text
    from onnxreduce_cli.schemas import newest_opset

    if opset is None and not expand and ir_version is None:
        raise click.UsageError("say which opset to reach: --opset N")
    if opset is not None and not 1 <= opset <= newest_opset():
        raise click.BadParameter(
            f"there is no opset {opset}; the installed onnx knows 1 to {newest_opset()}",
            param_hint="--opset",
        )
    document = load(model, sys.stdin.buffer if model == STREAM else None)
    target = opset if opset is not None else _own_opset(document)
    path = _output_path(model, output, target, in_place=in_place)
    if not dry_run:
        _check_output(model, path, force=force, in_place=in_place)
    try:
        conversion = Conversion(
            document.model,
            target,
            expand=expand,
            target_ir_version=ir_version,
            base_dir=document.base_dir,
        )
    except ValueError as error:
        if isinstance(error, click.ClickException) or type(error) is not ValueError:
            raise
        raise click.UsageError(str(error)) from error
    plan = conversion.plan()
    if dry_run:
        click.echo(plan_text(plan, model))
        for blocker in plan.blockers:
            click.echo(str(blocker), err=True)
        sys.exit(0 if plan.possible else 1)
    if plan.blockers:
        raise ConversionError(
            f"{model} cannot be converted to opset {target}; nothing was written:", plan.blockers
        )
    report = None if no_check else check(conversion)
    verdict = _write(document, conversion, path, verify=verify)
    if not quiet:
        click.echo(changes_text(plan, model, path), err=path == STREAM)
        for line in filter(None, [report and report.summary(), verdict]):
            click.echo(f"  {line}", err=path == STREAM)
        for item in report.unchecked if report else ():
            click.echo(f"warning: not checked: {item}", err=True)
        for remark in report.remarks if report else ():
            click.echo(f"remark: {remark}", err=True)
        for change in plan.changes:
            for warning in change.warnings:
                click.echo(f"warning: {change.op_type} node {change.node}: {warning}", err=True)


def _own_opset(document: Document) -> int:
    from onnxreduce_cli.model.domains import default_opset

    own = default_opset(document.model)
    if own is None:
        raise click.UsageError("the model imports no default domain; say which opset: --opset N")
    return own


def _output_path(model: str, output: str | None, target: int, *, in_place: bool) -> str:
    from onnxreduce_cli.model.files import STREAM

    if output is not None:
        return output
    if in_place:
        return model
    if model == STREAM:
        return STREAM
    source = Path(model)
    return str(source.with_name(f"{source.stem}.opset{target}{source.suffix}"))


def _check_output(model: str, path: str, *, force: bool, in_place: bool) -> None:
    from onnxreduce_cli.model.files import STREAM

    if path == STREAM:
        if in_place:
            raise click.UsageError("--in-place needs a file")
        if sys.stdout.isatty():
            raise click.UsageError("a model is binary; send it to a file: -o FILE")
        return
    if os.path.isdir(path):
        raise click.UsageError(
            f"{path} is a folder; name a file: -o {os.path.join(path, 'x.onnx')}"
        )
    if not os.path.exists(path):
        if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
            raise click.UsageError(f"there is no folder {os.path.dirname(path)}")
        return
    if model != STREAM and os.path.exists(model) and os.path.samefile(model, path):
        if not in_place:
            raise click.UsageError(f"{path} is the input; to overwrite it say --in-place")
    elif not force:
        raise click.UsageError(f"{path} exists; to overwrite it say --force")


def _write(document: Document, conversion: Conversion, path: str, *, verify: bool) -> str:
    """Apply the conversion and write the result, its external data first.

    Returns:
        the verdict of comparing the whole models; empty if that was not asked for.
    """
    from onnxreduce_cli.model.files import STREAM, format_of, replacing, serialize

    form = "protobuf" if path == STREAM else format_of(path)
    if conversion.changes_nothing and form == document.format:
        content = document.content
    else:
        conversion.apply()
        content = serialize(document.model, form)
    if path == STREAM:
        verdict = _verify(document, content) if verify else ""
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return verdict
    _bring_data(document, os.path.dirname(os.path.abspath(path)))
    with replacing(path) as file:
        file.write(content)
        file.flush()
        return _verify(document, content, os.path.dirname(file.name)) if verify else ""


def _bring_data(document: Document, folder: str) -> None:
    """Copy a model's external data to the folder that it is written to, if that is another."""
    from onnxreduce_cli.model.files import copy_file, data_files

    if os.path.realpath(folder) == os.path.realpath(document.base_dir or folder):
        return
    for location, source in data_files(document):
        target = os.path.join(folder, location)
        if not os.path.exists(target):
            copy_file(source, target)
        elif not os.path.samefile(source, target):
            raise click.UsageError(f"{target} exists, and the model's external data would go there")


def _verify(document: Document, content: bytes, folder: str | None = None) -> str:
    """Compare the model as read with the one to be written; stops where they are not equal.

    Both are put beside the data that they refer to, under temporary names.
    """
    from tempfile import NamedTemporaryFile

    from onnxreduce_cli.cli.verify import run_verify, show

    with (
        NamedTemporaryFile(dir=document.base_dir or None, suffix=".onnx") as before,
        NamedTemporaryFile(dir=folder, suffix=".onnx") as after,
    ):
        for file, data in ((before, document.content), (after, content)):
            file.write(data)
            file.flush()
        report = run_verify(before.name, after.name)
    if report.exit_code:
        show(report, err=True)
        click.echo("nothing was written", err=True)
        raise click.exceptions.Exit(report.exit_code)
    told = sum(not trial.void for trial in report.trials)
    return f"verified: the whole models agree on {told} inputs"
