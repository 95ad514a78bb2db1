"""`onnxreduce convert`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import click

from onnxreduce_cli.cli.many import check_cluster, many_options, pool
from onnxreduce_cli.cli.options import (
    comparing_options,
    complete_contracted,
    complete_operators,
    complete_runtimes,
    limit_options,
    placement_options,
    preparation_options,
    type_option,
)
from onnxreduce_cli.cli.reporting import Telling, WithOptionalValues, reporting
from onnxreduce_cli.cli.settings import with_settings
from onnxreduce_cli.cli.streams import progress_bar, say, standard_input, standard_output
from onnxreduce_cli.errors import ConversionError, about
from onnxreduce_cli.text import LINE, joined, wrapped

if TYPE_CHECKING:
    from onnxreduce_cli.api.file_conversion import Converted
    from onnxreduce_cli.batch.pool import Pool
    from onnxreduce_cli.engine.conversion import Conversion
    from onnxreduce_cli.engine.options import Options
    from onnxreduce_cli.model.ir_version import Wanted
    from onnxreduce_cli.report.data import Conversions
    from onnxreduce_cli.report.drawing import Picture
    from onnxreduce_cli.verification.sites.report import SiteReport


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


def _names(_: click.Context, __: click.Parameter, value: str) -> tuple[str, ...]:
    """A list of names with commas between them."""
    return tuple(name.strip() for name in value.split(",") if name.strip())


def _operators(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...]:
    """What a list of operators, or a file of one, has."""
    if value is None:
        return ()
    from onnxreduce_cli.targets.allowed import operator_list_entries

    found = operator_list_entries(value)
    if not found:
        raise click.BadParameter(f"{value!r} lists no operator")
    return found


@click.command(name="convert", cls=WithOptionalValues)
@click.argument("models", nargs=-1, required=True, type=click.Path(), metavar="MODEL...")
@click.option("--opset", type=int, help="The opset to reach; by default the model's own.")
@click.option(
    "--for",
    "runtime",
    shell_complete=complete_runtimes,
    metavar="RUNTIME",
    help="Where the model is to run: onnxruntime==1.8, 'opencv>=4.6,<5', installed. Opset and IR "
    "version are ones that it takes, and what it gets wrong or refuses is written in another way; "
    "onnxreduce targets lists those that are known.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    help="Where to write; by default MODEL.opsetN.onnx or MODEL.RUNTIME.onnx. - is standard "
    "output.",
)
@click.option(
    "--out-dir",
    type=click.Path(),
    metavar="DIR",
    help="Where to write several models, by their own names.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show the plan, write nothing; with --verify the models are compared all the same.",
)
@click.option(
    "--expand",
    shell_complete=complete_operators,
    multiple=True,
    metavar="OPERATOR",
    help="Write this operator out in others. May be given several times.",
)
@click.option(
    "--contract",
    shell_complete=complete_contracted,
    callback=_names,
    default="",
    metavar="OPERATOR,...|GROUP",
    help="Put these operators in place of the nodes that exporters write for them: single ones, or "
    "normalizations, activations, attention, family, all. In ONNX Runtime on a CPU ReduceLogSumExp "
    "is 17 times slower as one node, ReduceL1, ReduceL2, ReduceSumSquare and Swish 3 times, "
    "GroupNormalization twice.",
)
@click.option(
    "--allow-ops",
    callback=_operators,
    metavar="FILE|OPERATOR,...",
    help="Write every other operator out in these: onnxreduce ops --of MODEL prints such a file. "
    "Resize@11-13 is allowed at those opsets alone.",
)
@click.option(
    "--emulate",
    is_flag=True,
    help="Accept control flow that was not there, for scatters with a reduction and sequences, and "
    "below opset 11 for the Reduce and Softmax family.",
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
@with_settings
@preparation_options
@comparing_options
@placement_options
@many_options
@click.option("-v", "--verbose", is_flag=True, help="List each change and each blocker.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@limit_options
@reporting("convert", "junit", "code_quality", "html")
def command(
    telling: Telling,
    models: tuple[str, ...],
    output: str | None,
    out_dir: str | None,
    no_check: bool,
    jobs: int | None,
    cluster: str | None,
    resume: bool,
    verbose: bool,
    quiet: bool,
    **given: Any,
) -> int:
    """Move each MODEL (a file, a pattern, or - for standard input) to another opset.

    Nothing is written if any node cannot get there: stderr says which ones and why, and the exit
    code is 1; so it is if one that changes, run before and after, computes something else.
    Of several models, each is converted by itself; a table shows what became of them. The exit
    code is then 1 if any cannot be converted, else 2 if any cannot be read or written.
    """
    from onnxreduce_cli.api.checks import prepare_checks

    alone = jobs is None and cluster is None and not resume
    alone = alone and len(models) == 1 and out_dir is None
    if alone and not no_check and (given["verify"] or not given["dry_run"]):
        prepare_checks()  # Before what takes long to import.
    from onnxreduce_cli.engine.options import Options

    options = Options(**given, check=not no_check)
    sources = _sources(models, output, out_dir, options)
    if len(sources) == 1 and alone:
        return _convert_one(telling, sources[0], output, options, verbose=verbose, quiet=quiet)
    _check_many(sources, output, out_dir, options, resume=resume)
    check_cluster(cluster, jobs, out_dir)
    chosen = _chosen(sources, out_dir)
    where = pool(jobs, cluster, list(chosen), out_dir, options, quiet=quiet)
    return _convert_many(telling, chosen, where, out_dir, options, resume=resume, quiet=quiet)


def _sources(
    models: tuple[str, ...], output: str | None, out_dir: str | None, options: Options
) -> list[str]:
    """The models, patterns expanded; options that contradict each other are refused."""
    from onnxreduce_cli.batch.layout import matching

    options.validate()
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


def _chosen(sources: list[str], out_dir: str | None) -> dict[str, str | None]:
    """Return the output path of each model; None where it lies beside the model."""
    from onnxreduce_cli.batch.layout import targets

    places = targets(sources, out_dir) if out_dir is not None else [None] * len(sources)
    return dict(zip(sources, places, strict=True))


def _convert_one(
    telling: Telling,
    source: str,
    output: str | None,
    options: Options,
    *,
    verbose: bool,
    quiet: bool,
) -> int:
    from onnxreduce_cli.api.file_conversion import convert_file

    if telling.to_stdout and source == "-" and output is None and not options.dry_run:
        # The model of a stream goes to one, too.
        raise click.UsageError("the model goes to standard output: name a file, --json FILE")
    pictures: list[Picture | None] = []

    def draw(conversion: Conversion, sites: SiteReport | None) -> None:
        from onnxreduce_cli.report.drawing import conversion_picture

        pictures.append(conversion_picture(conversion, sites))

    telling.content_of = lambda error: _told(source, error, dry_run=options.dry_run)
    telling.pictures = lambda: pictures or [None]
    with (
        _each_blocker(telling) if verbose else nullcontext(),
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
            seen=draw if telling.draws else None,
        )
    telling.content = lambda: _told(source, done, dry_run=options.dry_run)
    if options.dry_run:
        _show_plan(telling, done, verbose=verbose, quiet=quiet)
    elif not quiet:
        _show(telling, done, verbose=verbose)
    return 0 if done.plan.possible else 1


def _told(source: str, found: Converted | Exception, *, dry_run: bool) -> Conversions:
    """What became of one model, as data."""
    from onnxreduce_cli.report.data import Conversions, converted_model, failed_model

    if isinstance(found, Exception):
        return Conversions(dry_run, (failed_model(source, found),))
    return Conversions(dry_run, (converted_model(found, dry_run=dry_run),))


@contextmanager
def _each_blocker(telling: Telling) -> Iterator[None]:
    """Say each blocker, not all those of one reason together, and end the program."""
    try:
        yield
    except ConversionError as error:
        if not error.blockers:
            raise
        from onnxreduce_cli.report.plan import blockers_text

        say(joined([error.message]), err=True)
        say(blockers_text(error.blockers, verbose=True), err=True)
        telling.fail(error)
        sys.exit(error.exit_code)


def _show_plan(telling: Telling, done: Converted, *, verbose: bool, quiet: bool) -> None:
    from onnxreduce_cli.report.plan import blockers_text, plan_text

    if not quiet:
        telling.say(plan_text(done.plan, done.source, verbose=verbose))
        _show_proof(telling, done, err=False)
    if done.plan.blockers:
        say(blockers_text(done.plan.blockers, verbose=verbose), err=True)


def _show(telling: Telling, done: Converted, *, verbose: bool) -> None:
    from onnxreduce_cli.report.plan import changes_text, remarks

    # Standard output is for the model where it goes there.
    to_stream = done.target == "-"
    telling.say(changes_text(done, verbose=verbose), err=to_stream)
    _show_proof(telling, done, err=to_stream)
    for line in remarks(done):
        say(wrapped([line], LINE), err=True)


def _show_proof(telling: Telling, done: Converted, *, err: bool) -> None:
    """Say what running nodes and models found, if they were run."""
    from onnxreduce_cli.report.plan import proofs

    for line in proofs(done):
        telling.say(wrapped([f"  {line}"], LINE), err=err)


def _convert_many(
    telling: Telling,
    places: dict[str, str | None],
    where: Pool,
    out_dir: str | None,
    options: Options,
    *,
    resume: bool,
    quiet: bool,
) -> int:
    from onnxreduce_cli.batch.run import convert_many, exit_code
    from onnxreduce_cli.batch.summary import summary_text
    from onnxreduce_cli.worker.process import end_current

    end_current()  # What was started to check one model is of no use: each pool has its own.
    outcomes = {}
    results = convert_many(
        list(places),
        list(places.values()),
        options,
        where,
        out_dir=out_dir,
        resume=resume,
        telling="pictures" if telling.draws else "data" if telling.wanted else "",
    )
    # Closed where it is interrupted, so that the processes end before this one does.
    with closing(results), progress_bar("converting") as progress:
        if progress is not None:
            progress(0, len(places), "")
        for outcome in results:
            outcomes[outcome.source] = outcome
            if outcome.code or not quiet:
                for note in outcome.notes:
                    # In place of the progress bar, which is drawn again below.
                    say(note, err=True, over_bar=progress is not None)
            if progress is not None:
                progress(len(outcomes), len(places), outcome.source)
    done = [outcomes[source] for source in places]

    def found() -> Conversions:
        from onnxreduce_cli.report.data import Conversions

        return Conversions(options.dry_run, tuple(outcome.told() for outcome in done))

    telling.content = found
    telling.pictures = lambda: [outcome.picture for outcome in done]
    if not quiet:
        telling.say(summary_text(done))
    return exit_code(done)
