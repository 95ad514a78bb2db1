"""Conversion of many models: the failure of one does not stop the others."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

import onnx

from onnxreduce_cli import __version__
from onnxreduce_cli.api.file_conversion import Converted, convert_file
from onnxreduce_cli.batch.pool import CrashedCall, Pool, call_apart
from onnxreduce_cli.batch.record import OutputEntry, OutputRecord, digest, stamps
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.errors import Blocker, OutOfMemoryError, blocker_lines
from onnxreduce_cli.model.file.document import make_folder
from onnxreduce_cli.report.failures import failure, reasons
from onnxreduce_cli.report.plan import remarks
from onnxreduce_cli.report.table import table
from onnxreduce_cli.report.verdict import verdict_text
from onnxreduce_cli.text import count, joined, printable
from onnxreduce_cli.verification.running.limits import byte_text

if TYPE_CHECKING:
    from onnxreduce_cli.engine.conversion import Conversion
    from onnxreduce_cli.report.data import ConvertedModel
    from onnxreduce_cli.report.drawing import ModelPicture
    from onnxreduce_cli.verification.sites.report import SiteReport

#: The data for a report beside each model's result: none, all data, or pictures as well.
ReportDetail = Literal["", "data", "pictures"]

#: Options that decide whether an output may be written, not what it holds.
_PERMISSIONS = ("dry_run", "force", "in_place")


@dataclass(frozen=True, slots=True)
class ModelResult:
    """The result of converting one model of many.

    Attributes:
        source: its path.
        target: the path of the output; empty if there is none.
        code: the exit code of the model's own conversion.
        state: the result, in a few words.
        detail: the changes, or the problem, in one line.
        notes: errors, or remarks that a user should read; for stderr.
        blockers: the nodes in the way, if that is the problem.
        entry: the entry of the output in the record, if there is one.
        model: the data for a report; None if not requested, or if there is no more.
        picture: the picture for a page; None as before.
    """

    source: str
    target: str
    code: int
    state: str
    detail: str
    notes: tuple[str, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    entry: OutputEntry | None = None
    model: ConvertedModel | None = None
    picture: ModelPicture | None = None

    def as_converted_model(self) -> ConvertedModel:
        """Return the data for a report."""
        from onnxreduce_cli.report.data import ConvertedModel, Problem

        problem = Problem(self.state, "\n".join(self.notes) or self.detail) if self.code else None
        if self.model is not None and self.model.exit_code == self.code:
            return self.model
        return ConvertedModel(self.source, self.target, self.state, self.code, problem=problem)


@dataclass(frozen=True, slots=True)
class _Task:
    """One model to convert, as it is sent to a process.

    Attributes:
        source: its path.
        target: the path of the output; None for a name made of source and opset.
        folder: the folder of all outputs; None if none is named.
        options: the options of the conversion.
        recipe: the options and versions that decide what the output holds.
        entry: the entry of an earlier run; None to convert the model in any case.
        report_detail: the data to return beside the result.
        digested: whether these have the digests of files.
    """

    source: str
    target: str | None
    folder: str | None
    options: Options
    recipe: dict[str, Any]
    entry: OutputEntry | None = None
    report_detail: ReportDetail = ""
    digested: bool = False


def convert_many(
    sources: Sequence[str],
    targets: Sequence[str | None],
    options: Options,
    pool: Pool,
    *,
    out_dir: str | None = None,
    resume: bool = False,
    report_detail: ReportDetail = "",
    digested: bool = False,
) -> Generator[ModelResult]:
    """Convert models, each in a process that may crash, and yield results as they are ready.

    A model may get a second result, which replaces the first: models that share external data share
    it in their new folder too, and a model that fails removes the data that it had brought.

    Args:
        sources: the models' paths.
        targets: the path of each output; None for a name made of source and opset.
        options: the options of the conversion.
        pool: the pool of processes; it is shut down at the end.
        out_dir: the folder of all outputs, which has a record of them.
        resume: skip outputs that are finished according to the record, and make those again that
            are not finished or no longer there.
        report_detail: whether results have all the data of a model, or pictures of it, too.
        digested: whether that data has the digests of files.

    Raises:
        OSError: the folder, or its record, cannot be read or written.
    """
    if out_dir is not None and not options.dry_run:
        make_folder(out_dir)
    record = None if out_dir is None else OutputRecord(out_dir)
    drawn = _tasks(
        sources, targets, options, out_dir, record, resume=resume, repeating=pool.repeats
    )
    tasks = (replace(task, report_detail=report_detail, digested=digested) for task in drawn)
    done: list[ModelResult] = []
    # Closed at once when this is left early: else processes go on, and have to be waited for.
    with closing(call_apart(_convert, tasks, pool)) as results:
        for task, result in results:
            outcome = _crash_result(task, result) if isinstance(result, CrashedCall) else result
            _update_record(record, task, outcome)
            done += [outcome] if outcome.entry is not None else []
            yield outcome
    for outcome in done:
        if outcome.entry is not None and not outcome.entry.is_there(out_dir or ""):
            yield _incomplete_result(outcome)


def _update_record(record: OutputRecord | None, task: _Task, outcome: ModelResult) -> None:
    """Add to the record that an output was finished, or that none was written."""
    if record is None or task.target is None:
        return
    output = os.path.relpath(task.target, task.folder)
    if outcome.entry is not None:
        record.finish(output, outcome.entry)
    elif not os.path.lexists(task.target):
        record.withdraw(output)


def _tasks(
    sources: Sequence[str],
    targets: Sequence[str | None],
    options: Options,
    out_dir: str | None,
    record: OutputRecord | None,
    *,
    resume: bool,
    repeating: bool,
) -> Iterator[_Task]:
    """Yield a task for each model, and record its output as begun.

    If a lost worker's tasks are repeated, a task may overwrite the output of its first attempt.
    """
    recipe = _recipe(options)
    for source, target in zip(sources, targets, strict=True):
        task = _Task(source, target, out_dir, options, recipe)
        if record is not None and target is not None:
            output = os.path.relpath(target, out_dir)
            if resume and record.may_replace(output):
                task = replace(
                    task, options=replace(options, force=True), entry=record.entries.get(output)
                )
            elif not options.dry_run and (options.force or not os.path.lexists(target)):
                record.begin(output)
                if repeating:
                    task = replace(task, options=replace(options, force=True))
        yield task


def memory_needed(task: _Task) -> int:
    """Return the bytes of memory that converting a model is expected to take, by its file's size.

    Measured: 0.1 GB, and 3 times the model's size if whole models are compared.
    """
    try:
        size = os.path.getsize(task.source)
    except OSError:
        size = 0
    return 500_000_000 + size * (3 if task.options.verify else 1)


def _recipe(options: Options) -> dict[str, Any]:
    """Return the options and versions that decide what an output holds, as read back from JSON."""
    found = {name: value for name, value in asdict(options).items() if name not in _PERMISSIONS}
    for name in ("expand", "contract", "allow_ops"):
        found[name] = sorted(found[name])
    found |= {"onnxreduce": __version__, "onnx": onnx.__version__}
    read_back: dict[str, Any] = json.loads(json.dumps(found))
    return read_back


def _convert(task: _Task) -> ModelResult:
    """Convert one model; runs in a separate process."""
    source, target = task.source, task.target or ""
    pictures: list[ModelPicture] = []
    begun = perf_counter()

    def draw(conversion: Conversion, sites: SiteReport | None) -> None:
        from onnxreduce_cli.report.drawing import conversion_picture

        pictures.append(conversion_picture(conversion, sites))

    try:
        if task.entry is not None and task.entry.is_of(source, task.recipe, task.folder or ""):
            return ModelResult(source, target, 0, "skipped", "done before")
        # Before the source is read, so that a change in between is noticed the next time.
        known = digest(source) if task.folder is not None and not task.options.dry_run else ""
        observer = draw if task.report_detail == "pictures" else None
        done = convert_file(
            source, task.target, task.options, observer=observer, digested=task.digested
        )
        found = _conversion_result(task, done, known, perf_counter() - begun)
    except Exception as error:
        found = _failure_result(task, error, perf_counter() - begun)
    return replace(found, picture=pictures[0]) if pictures else found


def _conversion_result(task: _Task, done: Converted, known: str, seconds: float) -> ModelResult:
    model = _report_data(task, done, seconds)
    if task.options.dry_run:
        return replace(_plan_result(done), model=model)
    detail = verdict_text(done, dry_run=False)
    made = None
    if task.folder is not None:
        read = stamps({path: path for path in done.data.read})
        outputs = (done.target, *done.data.files)
        written = stamps({os.path.relpath(path, task.folder): path for path in outputs})
        made = OutputEntry(task.recipe, known, read, written)
    notes = tuple(joined([f"{done.source}: {line}"]) for line in remarks(done))
    state = "unchanged" if done.data.unchanged else "converted"
    return ModelResult(done.source, done.target, 0, state, detail, notes, entry=made, model=model)


def _report_data(task: _Task, done: Converted, seconds: float) -> ConvertedModel | None:
    if not task.report_detail:
        return None
    from onnxreduce_cli.report.data import converted_model

    return converted_model(done, dry_run=task.options.dry_run, seconds=seconds)


def _plan_result(done: Converted) -> ModelResult:
    blockers = done.plan.blockers
    if not blockers:
        detail = verdict_text(done, dry_run=True)
        return ModelResult(done.source, "", 0, "can be converted", detail)
    lines = blocker_lines(blockers)
    notes = tuple(joined([f"{done.source}: {line}"]) for line in lines)
    return ModelResult(done.source, "", 1, "cannot be converted", _reason(lines), notes, blockers)


def _failure_result(task: _Task, error: Exception, seconds: float = 0.0) -> ModelResult:
    source, model = task.source, None
    if task.report_detail:
        from onnxreduce_cli.report.data import failed_model

        model = failed_model(source, error, seconds=seconds, digested=task.digested)
    found = failure(error)
    lines = found.text.removeprefix("Error: ").splitlines()
    first, *more = lines
    note = first if printable(source) in first else joined([f"{source}: {first}"])
    blockers = tuple(getattr(error, "blockers", ()))
    why = reasons(lines, blocked=bool(blockers))
    detail = _reason(why) if blockers else why[0]
    return ModelResult(
        source, "", found.code, found.state, detail, (note, *more), blockers, model=model
    )


def _reason(lines: Sequence[str]) -> str:
    """Return the first of several reasons, and how many others there are."""
    others = len(lines) - 1
    return f"{lines[0]} (and {count(others, 'other reason')})" if others else lines[0]


def _incomplete_result(outcome: ModelResult) -> ModelResult:
    detail = "its external data is gone again, with another model that failed; use --resume"
    note = joined([f"{outcome.source}: {detail}"])
    return ModelResult(outcome.source, outcome.target, 2, "incomplete", detail, (note,))


def _crash_result(task: _Task, crash: CrashedCall) -> ModelResult:
    if crash.memory is not None:
        what = (
            f"it takes more than {byte_text(crash.memory)} of memory, the limit for a model of its "
            "size among many; convert it by itself"
        )
        return _failure_result(task, OutOfMemoryError(what))
    detail = f"the process that converted it ended with {crash.cause}"
    advice = "if that was ONNX Runtime checking the changed nodes, --no-check does without"
    note = joined([f"{task.source}: {detail}; {advice}"])
    return ModelResult(task.source, "", 1, "crashed", detail, (note,))


def exit_code(outcomes: Sequence[ModelResult]) -> int:
    """Return the command's exit code: 1 if any model cannot be converted, else the highest."""
    codes = {outcome.code for outcome in outcomes}
    return 1 if 1 in codes else max(codes, default=0)


def summary_text(outcomes: Sequence[ModelResult]) -> str:
    """Return a table with a line for each model, and the number of models by result.

    Those that failed come first.
    """
    rows = [("MODEL", "RESULT", "")]
    ordered = sorted(outcomes, key=lambda item: item.code == 0)
    rows += [(item.source, item.state, item.detail) for item in ordered]
    states = Counter(item.state for item in ordered)
    counts = ", ".join(f"{number} {state}" for state, number in states.items())
    return f"{table(rows)}\n{count(len(outcomes), 'model')}: {counts or 'nothing to do'}"
