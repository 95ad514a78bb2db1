"""`onnxreduce convert`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import click

from onnxreduce_cli.cli.options import (
    comparing_options,
    complete_contracted,
    complete_operators,
    complete_runtimes,
    each_of,
    limit_options,
    parse_names,
    preparation_options,
    type_option,
    weight_options,
    with_settings,
)
from onnxreduce_cli.cli.reporting import Reporter, WithOptionalValues, reporting
from onnxreduce_cli.cli.streams import progress_bar, say, standard_input, standard_output
from onnxreduce_cli.errors import ConversionError, errors_about
from onnxreduce_cli.text import LINE, joined, wrapped

if TYPE_CHECKING:
    from onnxreduce_cli.api.file_conversion import Converted
    from onnxreduce_cli.batch.pool import Pool
    from onnxreduce_cli.batch.run import ModelResult
    from onnxreduce_cli.engine.conversion import Conversion
    from onnxreduce_cli.engine.options import Options
    from onnxreduce_cli.model.graph.ir_version import Wanted
    from onnxreduce_cli.report.data import Conversions
    from onnxreduce_cli.report.drawing import ModelPicture
    from onnxreduce_cli.verification.sites.report import SiteReport


def _parse_ir_version(_: click.Context, __: click.Parameter, value: str) -> Wanted:
    """Parse ``auto``, ``keep`` or a number."""
    if value == "auto":
        return "auto"
    if value == "keep":
        return "keep"
    from onnx import IR_VERSION

    if not value.isdigit() or not 3 <= int(value) <= IR_VERSION:
        raise click.BadParameter(f"give a number from 3 to {IR_VERSION}, auto, or keep")
    return int(value)


def _parse_operators(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Parse a list of operators, or the name of a file with one."""
    if value is None:
        return ()
    from onnxreduce_cli.targets.allowed import operator_list_entries

    found = operator_list_entries(value)
    if not found:
        raise click.BadParameter(f"{value!r} lists no operator")
    return found


_MANY = (
    click.option(
        "--jobs", type=click.IntRange(min=1), help="How many models at once; by default 1."
    ),
    click.option(
        "--cluster",
        metavar="ADDRESS",
        help="Convert on the workers of the Dask scheduler at this address, tcp://host:8786, which "
        "share --out-dir and the models' folders; pip install distributed.",
    ),
    click.option(
        "--resume", is_flag=True, help="Skip what an earlier run into --out-dir has done."
    ),
)

#: Gives a command the options of many models.
_many_options = each_of(_MANY)


@click.command(name="convert", cls=WithOptionalValues)
@click.argument("models", nargs=-1, required=True, type=click.Path(), metavar="MODEL...")
@click.option("--opset", type=int, help="The opset to reach; by default the model's own.")
@click.option(
    "--ml-opset",
    type=int,
    help="The version of ai.onnx.ml to reach; by default what the runtime takes, or what was "
    "released together with an older --opset, if the model's own is newer.",
)
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
    callback=parse_names,
    multiple=True,
    metavar="OPERATOR,...",
    help="Write these operators out in others.",
)
@click.option(
    "--contract",
    shell_complete=complete_contracted,
    callback=parse_names,
    multiple=True,
    metavar="OPERATOR,...|GROUP",
    help="Put these operators in place of the nodes that exporters write for them: single ones, or "
    "normalizations, activations, attention, family, all. In ONNX Runtime on a CPU ReduceLogSumExp "
    "is 17 times slower as one node, ReduceL1, ReduceL2, ReduceSumSquare and Swish 3 times, "
    "GroupNormalization twice.",
)
@click.option(
    "--allow-ops",
    callback=_parse_operators,
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
    callback=_parse_ir_version,
    default="auto",
    show_default=True,
    metavar="auto|keep|N",
    help="The IR version of a model that changes; auto lowers it to the one that the opset came "
    "with, or the least that the model needs.",
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
@weight_options
@_many_options
@click.option(
    "-v", "--verbose", is_flag=True, help="List each change, each blocker and each source."
)
@click.option(
    "-q",
    "--quiet",
    is_flag=True,
    help="Print nothing but errors: a line for each node in the way, with its model.",
)
@limit_options
@reporting("convert", "junit", "code_quality", "html")
def convert_command(
    reporter: Reporter,
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
    """Convert each MODEL (a file, a pattern, a folder, or - for standard input) to another opset.

    Each node that changes is run before and after. If the results differ, or a node cannot be
    converted, nothing is written, stderr names the nodes and the reasons, and the exit code is 1.
    Several models are converted one by one, and a table shows what became of them. The exit code is
    then 1 if any cannot be converted, else 2 if any cannot be read or written.
    """
    from onnxreduce_cli.api.checks import import_numpy, prepare_checks

    alone = jobs is None and cluster is None and not resume
    alone = alone and len(models) == 1 and out_dir is None
    if alone and not no_check and (given["verify"] or not given["dry_run"]):
        prepare_checks(verify=given["verify"])  # Before the imports that take long.
    import_numpy()
    from onnxreduce_cli.engine.options import Options

    options = Options(**given, check=not no_check)
    sources = _sources(models, output, out_dir, options)
    if len(sources) == 1 and alone:
        return _convert_one(reporter, sources[0], output, options, verbose=verbose, quiet=quiet)
    _check_many(sources, output, out_dir, options, resume=resume)
    _check_cluster(cluster, jobs, out_dir)
    chosen = _output_paths(sources, out_dir)
    where = make_pool(jobs, cluster, list(chosen), out_dir, options, quiet=quiet)
    return _convert_many(reporter, chosen, where, out_dir, options, resume=resume, quiet=quiet)


def _sources(
    models: tuple[str, ...], output: str | None, out_dir: str | None, options: Options
) -> list[str]:
    """Return the paths of the models, patterns expanded, after checking the options."""
    from onnxreduce_cli.batch.layout import matching_files

    options.validate()
    if "" in (*models, output, out_dir):
        raise click.UsageError("a name is empty; is some variable not set?")
    sources = matching_files(models, out_dir)
    # Other tools take two names for the input and the output.
    if len(sources) == 2 and os.path.isfile(sources[0]) and not os.path.lexists(sources[1]):
        name = joined([sources[1]])
        raise click.UsageError(f"there is no model {name}; to write to that file: -o {name}")
    return sources


def _check_many(
    sources: list[str], output: str | None, out_dir: str | None, options: Options, *, resume: bool
) -> None:
    """Refuse options that do not go with several models."""
    if output is not None:
        raise click.UsageError("-o names one file; for several models name a folder: --out-dir DIR")
    if "-" in sources:
        raise click.UsageError("standard input is one model; convert it by itself")
    if resume and out_dir is None:
        raise click.UsageError("--resume needs the folder of an earlier run: --out-dir DIR")
    if options.in_place and out_dir is not None:
        raise click.UsageError("--in-place and --out-dir exclude each other: leave one out")


def _check_cluster(address: str | None, jobs: int | None, out_dir: str | None) -> None:
    """Refuse options that do not go with a cluster, which may convert a model a second time."""
    if address is None:
        return
    if jobs is not None:
        raise click.UsageError(
            "--jobs and --cluster exclude each other, as a cluster has its own number of workers: "
            "leave --jobs out"
        )
    if out_dir is None:
        raise click.UsageError("--cluster needs a folder that all workers share: --out-dir DIR")


def make_pool(
    jobs: int | None,
    address: str | None,
    sources: Sequence[str],
    out_dir: str | None,
    options: Options,
    *,
    quiet: bool,
) -> Pool:
    """Return the pool that converts the models: processes here, or a cluster, which is checked."""
    from onnxreduce_cli.batch.run import memory_needed

    if address is None:
        from onnxreduce_cli.batch.processes import Processes

        return Processes(jobs or 1, memory=memory_needed)
    from onnxreduce_cli.batch.cluster import Cluster
    from onnxreduce_cli.model.file.document import make_folder

    cluster = Cluster(address, memory_needed)
    try:
        if out_dir is not None and not options.dry_run:
            make_folder(out_dir)
        cluster.check(sources, out_dir)
    except BaseException:
        cluster.shutdown()
        raise
    if not quiet:
        say(joined([f"dashboard: {cluster.dashboard}"]), err=True)
    return cluster


def _output_paths(sources: list[str], out_dir: str | None) -> dict[str, str | None]:
    """Return the output path of each model; None if it lies beside the model."""
    from onnxreduce_cli.batch.layout import output_paths

    places = output_paths(sources, out_dir) if out_dir is not None else [None] * len(sources)
    return dict(zip(sources, places, strict=True))


def _convert_one(
    reporter: Reporter,
    source: str,
    output: str | None,
    options: Options,
    *,
    verbose: bool,
    quiet: bool,
) -> int:
    from onnxreduce_cli.api.file_conversion import convert_file

    if reporter.to_stdout and source == "-" and output is None and not options.dry_run:
        # A model from standard input is written to standard output by default.
        raise click.UsageError("the model goes to standard output: name a file, --json FILE")
    pictures: list[ModelPicture | None] = []

    def draw(conversion: Conversion, sites: SiteReport | None) -> None:
        from onnxreduce_cli.report.drawing import conversion_picture

        pictures.append(conversion_picture(conversion, sites))

    def found(result: Converted | Exception) -> Conversions:
        return _conversions(
            source,
            result,
            dry_run=options.dry_run,
            seconds=reporter.seconds,
            digested=reporter.digests,
        )

    reporter.failure_content = found
    reporter.pictures = lambda: pictures or [None]
    with (
        _each_blocker(reporter, source, quiet=quiet) if verbose or quiet else nullcontext(),
        errors_about(source),
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
            observer=draw if reporter.draws else None,
            digested=reporter.digests,
        )
    if options.check or options.verify:
        from onnxreduce_cli.worker.process import kill_current

        kill_current()  # It gives its memory back while the result is shown.
    reporter.content = lambda: found(done)
    if options.dry_run:
        _show_plan(reporter, done, verbose=verbose, quiet=quiet)
    elif not quiet:
        _show(reporter, done, verbose=verbose)
    return 0 if done.plan.possible else 1


def _conversions(
    source: str,
    found: Converted | Exception,
    *,
    dry_run: bool,
    seconds: float,
    digested: bool,
) -> Conversions:
    """Return the conversion of one model, or its failure, as data for a report."""
    from onnxreduce_cli.report.data import Conversions, converted_model, failed_model

    if isinstance(found, Exception):
        return Conversions(
            dry_run, (failed_model(source, found, seconds=seconds, digested=digested),)
        )
    return Conversions(dry_run, (converted_model(found, dry_run=dry_run, seconds=seconds),))


@contextmanager
def _each_blocker(reporter: Reporter, source: str, *, quiet: bool) -> Iterator[None]:
    """Print each blocker by itself, not grouped by reason, and end the program."""
    try:
        yield
    except ConversionError as error:
        if not error.blockers:
            raise
        from onnxreduce_cli.report.plan import blockers_text, each_blocker_text

        if quiet:
            say(each_blocker_text(source, error.blockers), err=True)
        else:
            say(joined([error.message]), err=True)
            say(blockers_text(error.blockers, verbose=True), err=True)
        reporter.fail(error)
        sys.exit(error.exit_code)


def _show_plan(reporter: Reporter, done: Converted, *, verbose: bool, quiet: bool) -> None:
    from onnxreduce_cli.report.plan import blockers_text, each_blocker_text, plan_text

    if quiet:
        if done.plan.blockers:
            say(each_blocker_text(done.source, done.plan.blockers), err=True)
        return
    reporter.say(plan_text(done, verbose=verbose))
    _show_checks(reporter, done, err=False)
    if done.plan.blockers:
        say(blockers_text(done.plan.blockers, verbose=verbose), err=True)


def _show(reporter: Reporter, done: Converted, *, verbose: bool) -> None:
    from onnxreduce_cli.report.plan import changes_text, remarks

    # If the model goes to standard output, text goes to standard error.
    to_stream = done.target == "-"
    reporter.say(changes_text(done, verbose=verbose), err=to_stream)
    _show_checks(reporter, done, err=to_stream)
    for line in remarks(done):
        say(wrapped([line], LINE), err=True)


def _show_checks(reporter: Reporter, done: Converted, *, err: bool) -> None:
    """Print the results of running nodes and models, if they were run."""
    from onnxreduce_cli.report.plan import check_lines

    for line in check_lines(done):
        reporter.say(wrapped([f"  {line}"], LINE), err=err)


def _notes(outcome: ModelResult, *, quiet: bool) -> tuple[str, ...]:
    """Return what to print of one model of many as soon as it is done."""
    from onnxreduce_cli.report.plan import each_blocker_text

    if not quiet:
        return outcome.notes
    if outcome.blockers:
        return (each_blocker_text(outcome.source, outcome.blockers),)
    return outcome.notes if outcome.code else ()


def _convert_many(
    reporter: Reporter,
    places: dict[str, str | None],
    where: Pool,
    out_dir: str | None,
    options: Options,
    *,
    resume: bool,
    quiet: bool,
) -> int:
    from onnxreduce_cli.batch.run import convert_many, exit_code, summary_text
    from onnxreduce_cli.worker.process import end_current

    end_current()  # The worker for a single model is not needed: each pool has its own.
    outcomes = {}
    results = convert_many(
        list(places),
        list(places.values()),
        options,
        where,
        out_dir=out_dir,
        resume=resume,
        report_detail="pictures" if reporter.draws else "data" if reporter.wanted else "",
        digested=reporter.digests,
    )
    # Closed after an interrupt, so that the processes end before this one does.
    with closing(results), progress_bar("converting") as progress:
        if progress is not None:
            progress(0, len(places), "")
        for outcome in results:
            outcomes[outcome.source] = outcome
            for note in _notes(outcome, quiet=quiet):
                # Over the progress bar, which is drawn again below.
                say(note, err=True, over_bar=progress is not None)
            if progress is not None:
                progress(len(outcomes), len(places), outcome.source)
    done = [outcomes[source] for source in places]

    def found() -> Conversions:
        from onnxreduce_cli.report.data import Conversions

        return Conversions(options.dry_run, tuple(outcome.as_converted_model() for outcome in done))

    reporter.content = found
    reporter.pictures = lambda: [outcome.picture for outcome in done]
    if not quiet:
        reporter.say(summary_text(done))
    return exit_code(done)
