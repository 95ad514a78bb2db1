"""`onnxreduce verify`."""

from __future__ import annotations

import click

from onnxreduce_cli.cli.options import comparing_options, limit_options, with_settings
from onnxreduce_cli.cli.reporting import Reporter, WithOptionalValues, reporting
from onnxreduce_cli.cli.streams import progress_bar
from onnxreduce_cli.text import LINE, wrapped

#: The executors for each value of ``--executor``.
EXECUTORS = {
    "both": ("onnxruntime", "numpy"),
    "onnxruntime": ("onnxruntime",),
    "numpy": ("numpy",),
}


@click.command(name="verify", cls=WithOptionalValues)
@click.argument("a", type=click.Path())
@click.argument("b", type=click.Path(), required=False)
@comparing_options
@click.option("--special", is_flag=True, help="Add trials with NaN, infinities, denormals.")
@click.option("--ulp", type=click.IntRange(0), help="Tolerance in units in the last place.")
@click.option("--exact", is_flag=True, help="Every bit must agree.")
@click.option("--executor", type=click.Choice(list(EXECUTORS)), default="both", show_default=True)
@click.option("--save-failure", metavar="DIR", help="Keep the first inputs that differ.")
@click.option("-v", "--verbose", is_flag=True, help="Print each comparison of each output.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing: see the exit code.")
@limit_options
@with_settings
@reporting("verify", "junit", "code_quality", "html")
def verify_command(
    reporter: Reporter,
    a: str,
    b: str | None,
    pairs: tuple[str, ...],
    inputs: str | None,
    dims: dict[str, int],
    trials: int | None,
    seed: int,
    rtol: float | None,
    atol: float | None,
    special: bool,
    ulp: int | None,
    exact: bool,
    executor: str,
    save_failure: str | None,
    verbose: bool,
    quiet: bool,
    timeout: float,
    memory: int,
) -> int:
    """Check whether models A and B are the same function.

    With A alone: whether ONNX Runtime and the NumPy executor agree on it. Inputs are drawn from
    the model's own shapes and types unless they are given. Exit code 0: equivalent; 1: not; 2:
    wrong usage or unreadable; 3: nothing could run them, so nothing is known.
    """
    from onnxreduce_cli.model.file.digest import digests, model_digests
    from onnxreduce_cli.model.file.document import load
    from onnxreduce_cli.report.comparison_picture import verify_picture
    from onnxreduce_cli.report.verify import verify_text
    from onnxreduce_cli.verification.compare.values import Tolerance
    from onnxreduce_cli.verification.inputs.files import input_files, read_inputs
    from onnxreduce_cli.verification.running.limits import Limits, limited
    from onnxreduce_cli.verification.whole.equivalence import verify as compare

    reporter.used(lambda: model_digests(*filter(None, (a, b))))
    reporter.used(lambda: digests(input_files(pairs, inputs), "read"))
    given = read_inputs(load(a).model, pairs, inputs) if pairs or inputs else None
    with limited(Limits(timeout, memory)), progress_bar("verifying") as progress:
        report = compare(
            a,
            b,
            inputs=given,
            dims=dims,
            trials=trials,
            seed=seed,
            special=special,
            tolerance=Tolerance(rtol, atol, ulp, exact),
            executors=EXECUTORS[executor],
            save_failure=save_failure,
            progress=progress,
        )
    reporter.content = lambda: report
    reporter.pictures = lambda: [verify_picture(report, *[load(x).model for x in (a, b) if x])]
    if not quiet:
        reporter.say(wrapped(verify_text(report, verbose=verbose).split("\n"), LINE))
    return report.exit_code
