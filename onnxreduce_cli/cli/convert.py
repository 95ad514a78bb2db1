"""`onnxreduce convert`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from onnxreduce_cli.cli.comparing import comparing_options
from onnxreduce_cli.cli.limits import limit_options
from onnxreduce_cli.cli.placing import placement_options
from onnxreduce_cli.cli.progress import progress_bar
from onnxreduce_cli.cli.stating import type_option
from onnxreduce_cli.cli.streams import say, standard_input, standard_output
from onnxreduce_cli.errors import about
from onnxreduce_cli.text import joined

if TYPE_CHECKING:
    from onnxreduce_cli.api.convert_file import Converted, Options
    from onnxreduce_cli.api.save import Placement
    from onnxreduce_cli.model.ir_version import Wanted


def _ir_version(_: click.Context, __: click.Parameter, value: str) -> Wanted:
    """The option's value for `Options`."""
    if value == "auto":
        return "auto"
    if value == "keep":
        return "keep"
    from onnx import IR_VERSION

    if not value.isdigit() or not 3 <= int(value) <= IR_VERSION:
        raise click.BadParameter(f"give a number from 3 to {IR_VERSION}, auto, or keep")
    return int(value)


def _prepared(command: Callable[..., None]) -> Callable[..., None]:
    """Let the process that checks start while this one imports what a command needs."""

    @wraps(command)
    def call(**options: Any) -> None:
        if not (options["dry_run"] or options["no_check"]):
            from onnxreduce_cli.verification.process import prepare

            prepare("onnxruntime")
        command(**options)

    return call


@click.command(name="convert")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option("--opset", type=int, help="The opset to reach; by default the model's own.")
@click.option(
    "-o", "--output", help="Where to write; by default MODEL.opsetN.onnx. - is standard output."
)
@click.option("--out-dir", metavar="DIR", help="Where to write several models, by their own names.")
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
    default="auto",
    show_default=True,
    metavar="auto|keep|N",
    help="The IR version of a model that changes; auto is the one that its opset came with, or the "
    "least that it needs.",
)
@type_option
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--in-place", is_flag=True, help="Allow the output to be the input.")
@click.option("--no-check", is_flag=True, help="Do not run each changed node, before and after.")
@click.option("--strict", is_flag=True, help="Refuse a model of which some node is not checked.")
@click.option("--verify", is_flag=True, help="Also compare the whole model, before and after.")
@comparing_options
@placement_options
@click.option("--jobs", type=click.IntRange(min=1), help="How many models at once; by default 1.")
@click.option("--resume", is_flag=True, help="Skip what an earlier run into --out-dir has done.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@limit_options
@_prepared
def command(
    models: tuple[str, ...],
    opset: int | None,
    output: str | None,
    out_dir: str | None,
    dry_run: bool,
    expand: tuple[str, ...],
    ir_version: Wanted,
    types: dict[str, str],
    force: bool,
    in_place: bool,
    no_check: bool,
    strict: bool,
    verify: bool,
    placement: Placement,
    jobs: int | None,
    resume: bool,
    quiet: bool,
    **comparing: Any,
) -> None:
    """Move each MODEL (a file, a pattern, or - for standard input) to another opset.

    Nothing is written if any node cannot get there: each is named on stderr with its reason, and
    the exit code is 1; so it is if one that changes, run before and after, computes something else.
    Of several models, each is converted by itself; a table shows what became of them. The exit
    code is then 1 if any cannot be converted, else 2 if any cannot be read or written.
    """
    from onnxreduce_cli.api.convert_file import Comparing, Options

    options = Options(
        opset,
        expand,
        ir_version,
        types,
        dry_run=dry_run,
        force=force,
        in_place=in_place,
        make_folders=out_dir is not None,
        check=not no_check,
        strict=strict,
        verify=verify,
        comparing=Comparing(**comparing),
        placement=placement,
    )
    sources = _sources(models, output, out_dir, options)
    if len(sources) == 1 and out_dir is None and jobs is None and not resume:
        _convert_one(sources[0], output, options, quiet=quiet)
    _convert_many(sources, output, out_dir, options, jobs=jobs or 1, resume=resume, quiet=quiet)


def _sources(
    models: tuple[str, ...], output: str | None, out_dir: str | None, options: Options
) -> list[str]:
    """The models, patterns expanded; options that contradict each other are refused."""
    from onnxreduce_cli.api.convert_file import check_options
    from onnxreduce_cli.batch.layout import matching

    check_options(options)
    if "" in (*models, output, out_dir):
        raise click.UsageError("a name is empty; is some variable not set?")
    return matching(models, out_dir)


def _check_many(
    sources: list[str], output: str | None, out_dir: str | None, options: Options, *, resume: bool
) -> None:
    """Refuse what cannot be done with several models."""
    if output is not None:
        raise click.UsageError("-o names one file; for several models name a folder: --out-dir DIR")
    if "-" in sources:
        raise click.UsageError("standard input is one model; convert it by itself")
    if resume and out_dir is None:
        raise click.UsageError("--resume needs the folder of an earlier run: --out-dir DIR")
    if options.in_place and out_dir is not None:
        raise click.UsageError("say either --in-place or --out-dir")


def _convert_one(source: str, output: str | None, options: Options, *, quiet: bool) -> None:
    from onnxreduce_cli.api.convert_file import convert_file

    with (
        about(source),
        progress_bar("copying data") as copying,
        progress_bar("verifying") as progress,
    ):
        done = convert_file(
            source,
            output,
            options,
            stdin=standard_input() if source == "-" else None,
            stdout=standard_output(),
            progress=progress,
            copying=copying,
        )
    if options.dry_run:
        _show_plan(done, quiet=quiet)
    elif not quiet:
        _show(done)
    sys.exit(0 if done.plan.possible else 1)


def _show_plan(done: Converted, *, quiet: bool) -> None:
    from onnxreduce_cli.report.plan import plan_text

    if not quiet:
        say(plan_text(done.plan, done.source))
    for blocker in done.plan.blockers:
        say(joined([str(blocker)]), err=True)


def _show(done: Converted) -> None:
    from onnxreduce_cli.report.plan import changes_text, remarks

    # Standard output is for the model where it goes there.
    to_stream = done.target == "-"
    say(changes_text(done.plan, done.source, done.target), err=to_stream)
    if done.sites is not None:
        say(f"  {done.sites.summary()}", err=to_stream)
    if done.verified is not None:
        compared = sum(not trial.void for trial in done.verified.trials)
        agreed = f"the whole models agree on {compared} inputs, by {done.verified.by}"
        say(f"  verified: {agreed}", err=to_stream)
    for line in remarks(done):
        say(joined([line]), err=True)


def _convert_many(
    sources: list[str],
    output: str | None,
    out_dir: str | None,
    options: Options,
    *,
    jobs: int,
    resume: bool,
    quiet: bool,
) -> None:
    _check_many(sources, output, out_dir, options, resume=resume)
    from onnxreduce_cli.batch.layout import targets
    from onnxreduce_cli.batch.run import convert_many, exit_code
    from onnxreduce_cli.batch.summary import summary_text

    places = targets(sources, out_dir) if out_dir is not None else [None] * len(sources)
    outcomes = {}
    with progress_bar("converting") as progress:
        if progress is not None:
            progress(0, len(sources), "")
        for outcome in convert_many(
            sources, places, options, out_dir=out_dir, resume=resume, jobs=jobs
        ):
            outcomes[outcome.source] = outcome
            if outcome.code or not quiet:
                for note in outcome.notes:
                    # In place of the progress bar, which is drawn again below.
                    say(note, err=True, over_bar=progress is not None)
            if progress is not None:
                progress(len(outcomes), len(sources), outcome.source)
    found = [outcomes[source] for source in sources]
    if not quiet:
        say(summary_text(found))
    sys.exit(exit_code(found))
