"""The results of each command as data: texts, JSON, JUnit and pages are renderings of it."""

from __future__ import annotations

from dataclasses import dataclass

from onnxreduce_cli.api.file_conversion import Converted
from onnxreduce_cli.engine.description import Plan
from onnxreduce_cli.engine.inspection import Inspection
from onnxreduce_cli.engine.runtime_reach import Runtimes
from onnxreduce_cli.errors import Blocker
from onnxreduce_cli.model.file.digest import FileDigest, digests
from onnxreduce_cli.report.contents import ModelContents
from onnxreduce_cli.report.failures import failure
from onnxreduce_cli.report.inspection import opsets_by_blockers
from onnxreduce_cli.report.plan import remarks
from onnxreduce_cli.report.verdict import verdict_text
from onnxreduce_cli.serializable import Serializable
from onnxreduce_cli.verification.sites.report import SiteReport
from onnxreduce_cli.verification.whole.passes import WholeCheck
from onnxreduce_cli.verification.whole.results import VerifyReport


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a command, or one of the models that it was given, failed.

    Attributes:
        state: the result, in a few words.
        message: what is wrong and what to do; one line or several.
        blockers: the nodes in the way, if that is the reason.
    """

    state: str
    message: str
    blockers: tuple[Blocker, ...] = ()


@dataclass(frozen=True, slots=True)
class WrongUsage:
    """The result where no command was named: ``problem`` says what is wrong."""


@dataclass(frozen=True, slots=True)
class ConvertedModel:
    """The result for one model.

    Attributes:
        source: its path; ``-`` for standard input.
        target: the path of the output; ``-`` for standard output, empty if none was written.
        state: the result, in a few words.
        exit_code: the exit code that the model would have on its own.
        plan: what changes, and what is in the way; null if it was not planned.
        checks: the results of running the nodes that change; null if none was run.
        verified: the comparison of the whole models; null if there was none.
        whole: the check of the whole model that options changed; null if there was none.
        sizes: the sizes in bytes of the file that was read and of the one that was written.
        warnings: warnings and remarks, a line each.
        problem: what is wrong; null if nothing is.
        files: what was read and written, with SHA-256, as far as it got.
        seconds: how long it took.
        verdict: what became of it and what is not known, in one line; empty if it was not planned.
    """

    source: str
    target: str
    state: str
    exit_code: int
    plan: Plan | None = None
    checks: SiteReport | None = None
    verified: VerifyReport | None = None
    whole: WholeCheck | None = None
    sizes: tuple[int, int] | None = None
    warnings: tuple[str, ...] = ()
    problem: Problem | None = None
    files: tuple[FileDigest, ...] = ()
    seconds: float = 0.0
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Conversions:
    """The results of `convert`.

    Attributes:
        dry_run: whether it only planned.
        models: each model, in the order that they were given in.
    """

    dry_run: bool
    models: tuple[ConvertedModel, ...]


@dataclass(frozen=True, slots=True)
class BlockedOpsets:
    """Opsets that a model cannot reach for the same reasons.

    Attributes:
        opsets: the opsets.
        blockers: what stands in the way.
    """

    opsets: tuple[int, ...]
    blockers: tuple[Blocker, ...]


@dataclass(frozen=True)
class InspectedModel(Serializable):
    """The results of `inspect`.

    Attributes:
        model: the model's path.
        contents: what it holds beside its nodes.
        found: its opsets, operators and nodes.
        reachable: the opsets that it can reach.
        blocked: the others.
        runtimes: which runtimes take it.
    """

    model: str
    contents: ModelContents
    found: Inspection
    reachable: tuple[int, ...]
    blocked: tuple[BlockedOpsets, ...]
    runtimes: Runtimes


def problem(error: Exception) -> Problem:
    """Return the state, message and blockers of an exception that ended a command."""
    found = failure(error)
    return Problem(found.state, found.text, tuple(getattr(error, "blockers", ())))


def converted_model(done: Converted, *, dry_run: bool, seconds: float) -> ConvertedModel:
    """Return the result for a model that was converted or, in a dry run, planned."""
    plan = done.plan
    state = "unchanged" if done.data.unchanged else "converted"
    if dry_run:
        state = "can be converted"
    reason = None
    if plan.blockers:
        state = "cannot be converted"
        reason = Problem(state, f"{done.source} {state} {plan.aim}", plan.blockers)
    return ConvertedModel(
        done.source,
        "" if dry_run else done.target,
        state,
        1 if plan.blockers else 0,
        plan,
        done.checks,
        done.verified,
        done.whole,
        done.sizes,
        tuple(remarks(done)),
        reason,
        done.files,
        seconds,
        verdict_text(done, dry_run=dry_run),
    )


def failed_model(
    source: str, error: Exception, *, seconds: float, digested: bool = False
) -> ConvertedModel:
    """Return the result for a model that could not be converted, as far as it got.

    Args:
        source: its path.
        error: what ended its conversion.
        seconds: how long that took.
        digested: whether the result has the digest of the file, though it is no model.
    """
    so_far: Converted | None = getattr(error, "so_far", None)
    checks, verified = None if so_far is None else so_far.checks, None
    report = getattr(error, "report", None)
    if isinstance(report, SiteReport):
        checks = report
    elif isinstance(report, VerifyReport):
        verified = report
    found = problem(error)
    files = () if so_far is None else so_far.files
    return ConvertedModel(
        source,
        "",
        found.state,
        failure(error).code,
        None if so_far is None else so_far.plan,
        checks,
        verified,
        problem=found,
        files=files or (digests([source], "read") if digested else ()),
        seconds=seconds,
    )


def inspected_model(found: Inspection, held: ModelContents, model: str) -> InspectedModel:
    """Return the results of `inspect`; opsets with the same blockers are put together."""
    return InspectedModel(
        model,
        held,
        found,
        tuple(opset for opset, blockers in found.reach.items() if not blockers),
        tuple(
            BlockedOpsets(tuple(opsets), blockers)
            for opsets, blockers in opsets_by_blockers(found.reach)
        ),
        found.runtimes,
    )
