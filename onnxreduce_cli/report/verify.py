"""The report of a verification as text."""

from __future__ import annotations

from collections.abc import Iterator

from onnxreduce_cli.report.table import table
from onnxreduce_cli.text import count, joined
from onnxreduce_cli.verification.compare.values import Errors
from onnxreduce_cli.verification.whole.results import Comparison, Divergence, VerifyReport


def verify_text(report: VerifyReport, *, verbose: bool = False) -> str:
    """Return the report as text, with the verdict as first line.

    Args:
        report: the report.
        verbose: whether each comparison of an output gets a line, not each output.
    """
    return joined(_lines(report, verbose))


def _lines(report: VerifyReport, verbose: bool) -> Iterator[str]:
    yield _verdict(report)
    for line in report.interface:
        yield f"  {line}"
    for run in report.runs:
        if run.reason or not run.trials:
            reason = f": {run.reason}" if run.reason else ""
            yield f"  {run.executor} ran {run.model} on {run.trials} inputs{reason}"
    if verbose:
        yield from (f"  {_comparison(comparison)}" for comparison in report.comparisons)
    else:
        yield from _outputs(report)
    if report.divergence is not None:
        yield f"First difference: {_divergence(report.divergence)}"
        yield f"  made in {report.a} by: {', '.join(report.divergence.first_nodes)}"
        yield f"  made in {report.b} by: {', '.join(report.divergence.second_nodes)}"
    for item in report.disagreements:
        yield f"The executors differ on {item.model}, output {item.output!r}: {item.errors}"
        if item.divergence is not None:
            yield f"  first at {_divergence(item.divergence)}"
            yield f"  made by: {', '.join(item.divergence.first_nodes)}"
    void = [trial for trial in report.trials if trial.void]
    if void:
        yield f"{len(void)} of {len(report.trials)} inputs prove nothing: {void[0].void}"
    for warning in report.warnings:
        yield f"warning: {warning}"
    for remark in report.remarks:
        yield f"remark: {remark}"
    if report.saved is not None:
        yield f"The inputs are kept in {report.saved}; replay them with --inputs {report.saved}"


def _outputs(report: VerifyReport) -> Iterator[str]:
    """Yield a line for each output; where two models are compared, executors are not."""
    found: dict[str, list[Comparison]] = {}
    for comparison in report.comparisons:
        if (report.b is not None) == (comparison.first[0] != comparison.second[0]):
            found.setdefault(comparison.output, []).append(comparison)
    if not found:
        return
    rows = []
    for output, comparisons in found.items():
        errors = sum((item.errors for item in comparisons), Errors())
        rows.append((f"{output}:", _state(report, comparisons), str(errors)))
    yield from table(rows, indent=2).split("\n")


def _state(report: VerifyReport, comparisons: list[Comparison]) -> str:
    explained = [item.explained for item in comparisons if item.explained]
    if explained:
        return f"ok but for {explained[0]}"
    if all(item.agree for item in comparisons):
        return "ok"
    return "ok but for ONNX Runtime's deviation" if report.equivalent else "DIFFERENT"


def _verdict(report: VerifyReport) -> str:
    what = f"{report.a} and {report.b}" if report.b is not None else f"the executors on {report.a}"
    if report.interface:
        return f"NOT EQUIVALENT: the interfaces of {what} differ"
    if report.equivalent is None:
        return f"NOT VERIFIED: nothing could compare {what}, so nothing is known"
    if not report.equivalent:
        return f"NOT EQUIVALENT: {what} differ"
    compared = sum(not trial.void for trial in report.trials)
    return f"EQUIVALENT: {what} agree on {count(compared, 'input')}, by {report.by}"


def _comparison(found: Comparison) -> str:
    first, second = found.first, found.second
    if first[0] == second[0]:
        sides = f"{first[0]}, {first[1]} and {second[1]}"
    elif first[1] == second[1]:
        sides = f"both models in {first[1]}"
    else:
        sides = f"{first[0]} in {first[1]} and {second[0]} in {second[1]}"
    state = "ok" if found.agree else "DIFFERENT"
    if found.explained:
        state = f"ok but for {found.explained}"
    return f"{found.output}: {sides}: {state}, {found.errors}"


def _divergence(found: Divergence) -> str:
    return f"value {found.value!r}: {found.errors}"
