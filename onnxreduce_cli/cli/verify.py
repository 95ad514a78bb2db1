"""`onnxreduce verify`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from onnxreduce_cli.cli.comparing import comparing_options
from onnxreduce_cli.cli.limits import limit_options
from onnxreduce_cli.cli.progress import progress_bar
from onnxreduce_cli.cli.streams import say

if TYPE_CHECKING:
    from onnxreduce_cli.verification import VerifyReport

#: The executors that run, for each value of ``--executor``.
EXECUTORS = {
    "both": ("onnxruntime", "numpy"),
    "onnxruntime": ("onnxruntime",),
    "numpy": ("numpy",),
}


@click.command(name="verify")
@click.argument("a")
@click.argument("b", required=False)
@comparing_options
@click.option("--special", is_flag=True, help="Also draw NaN, infinities, zeros and denormals.")
@click.option("--ulp", type=click.IntRange(0), help="Tolerance in units in the last place.")
@click.option("--exact", is_flag=True, help="Every bit must agree.")
@click.option("--executor", type=click.Choice(list(EXECUTORS)), default="both", show_default=True)
@click.option("--save-failure", metavar="DIR", help="Keep the first inputs that differ.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole report as JSON.")
@limit_options
def command(
    a: str,
    b: str | None,
    pairs: tuple[str, ...],
    inputs: str | None,
    dims: dict[str, int],
    trials: int,
    seed: int,
    rtol: float | None,
    atol: float | None,
    special: bool,
    ulp: int | None,
    exact: bool,
    executor: str,
    save_failure: str | None,
    as_json: bool,
) -> None:
    """Check whether models A and B are the same function.

    With A alone: whether ONNX Runtime and the NumPy executor agree on it. Inputs are drawn from
    the model's own shapes and types unless they are given. Exit code 0: equivalent; 1: not; 2:
    wrong usage or unreadable; 3: nothing could run them, so nothing is known.
    """
    from onnxreduce_cli.model.files import load
    from onnxreduce_cli.verification import Tolerance, read_inputs
    from onnxreduce_cli.verification import verify as compare

    given = read_inputs(load(a).model, pairs, inputs) if pairs or inputs else None
    with progress_bar("verifying") as progress:
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
    show(report, as_json=as_json)
    sys.exit(report.exit_code)


def show(report: VerifyReport, *, as_json: bool = False, err: bool = False) -> None:
    """Print a report."""
    from onnxreduce_cli.report import verify as text

    say(text.as_json(report) if as_json else text.as_text(report), err=err)
