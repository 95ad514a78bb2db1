"""Converting many models: one's failure does not stop the others."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import onnx

from onnxreduce_cli import __version__
from onnxreduce_cli.api.convert_file import Converted, Options, convert_file
from onnxreduce_cli.batch.processes import Died, call_apart
from onnxreduce_cli.batch.record import Made, Record, digest, stamps
from onnxreduce_cli.report.failures import failure
from onnxreduce_cli.report.plan import headline, remarks
from onnxreduce_cli.text import joined, printable

#: Options that decide whether an output may be written, not what it holds.
_PERMISSIONS = ("dry_run", "force", "in_place", "make_folders")


@dataclass(frozen=True)
class Outcome:
    """The result of one model.

    Attributes:
        source: its path.
        target: the path of the output; empty if there is none.
        code: the exit code that the model would have on its own.
        state: the result, in a few words.
        detail: the changes, or what is wrong, in one line.
        notes: errors, or remarks that a user should read; for stderr.
        made: the entry of the output in the record, if there is one.
    """

    source: str
    target: str
    code: int
    state: str
    detail: str
    notes: tuple[str, ...] = ()
    made: Made | None = None


@dataclass(frozen=True)
class _Task:
    """One model to convert, as it goes to a process.

    Attributes:
        source: its path.
        target: the path of the output; None for a name made of source and opset.
        folder: where all outputs go; None where none is named.
        options: how.
        recipe: what else decides what the output holds.
        made: how an earlier run made it; None to convert it in any case.
    """

    source: str
    target: str | None
    folder: str | None
    options: Options
    recipe: dict[str, Any]
    made: Made | None = None


def convert_many(
    sources: Sequence[str],
    targets: Sequence[str | None],
    options: Options,
    *,
    out_dir: str | None = None,
    resume: bool = False,
    jobs: int = 1,
) -> Iterator[Outcome]:
    """Convert models, each in a process that may crash; outcomes come as they are ready.

    A model may get a second outcome, which then holds: models that share external data share it in
    their new folder too, and one that fails takes along what it had brought.

    Args:
        sources: the models' paths.
        targets: for each the path of its output; None for a name made of source and opset.
        options: how.
        out_dir: the folder of all outputs, where what was made is noted.
        resume: leave out what is done according to those notes, and make again what is noted but
            not, or no longer, done.
        jobs: how many models there are at work at once.

    Raises:
        OSError: the folder, or the notes in it, cannot be read or written.
    """
    if out_dir is not None and not options.dry_run:
        os.makedirs(out_dir, exist_ok=True)
    record = None if out_dir is None else Record(out_dir)
    tasks = _tasks(sources, targets, options, out_dir, record, resume=resume)
    done: list[Outcome] = []
    for task, result in call_apart(_convert, tasks, jobs):
        outcome = _crashed(task, result) if isinstance(result, Died) else result
        if record is not None and task.target is not None:
            output = os.path.relpath(task.target, out_dir)
            if outcome.made is not None:
                record.finish(output, outcome.made)
                done.append(outcome)
            elif not os.path.lexists(task.target):
                record.withdraw(output)
        yield outcome
    for outcome in done:
        if outcome.made is not None and not outcome.made.is_there(out_dir or ""):
            yield _spoilt(outcome)


def _tasks(
    sources: Sequence[str],
    targets: Sequence[str | None],
    options: Options,
    out_dir: str | None,
    record: Record | None,
    *,
    resume: bool,
) -> Iterator[_Task]:
    """Yield a task for each model; records its output as begun when it is drawn."""
    recipe = _recipe(options)
    for source, target in zip(sources, targets, strict=True):
        task = _Task(source, target, out_dir, options, recipe)
        if record is not None and target is not None:
            output = os.path.relpath(target, out_dir)
            if resume and record.may_replace(output):
                task = replace(
                    task, options=replace(options, force=True), made=record.made.get(output)
                )
            elif not options.dry_run and (options.force or not os.path.lexists(target)):
                record.begin(output)
        yield task


def _recipe(options: Options) -> dict[str, Any]:
    """Return the options and versions that determine an output, as JSON would give them back."""
    found = {name: value for name, value in asdict(options).items() if name not in _PERMISSIONS}
    found["expand"] = sorted(options.expand)
    found["comparing"]["pairs"] = list(options.comparing.pairs)
    return {**found, "onnxreduce": __version__, "onnx": onnx.__version__}


def _convert(task: _Task) -> Outcome:
    """Convert one model; runs in a separate process."""
    source, target = task.source, task.target or ""
    try:
        if task.made is not None and task.made.is_of(source, task.recipe, task.folder or ""):
            return Outcome(source, target, 0, "skipped", "done before")
        # Before it is read: what changes in between is then noticed the next time.
        known = digest(source) if task.folder is not None and not task.options.dry_run else ""
        return _converted(task, convert_file(source, task.target, task.options), known)
    except Exception as error:
        return _failed(source, error)


def _converted(task: _Task, done: Converted, known: str) -> Outcome:
    if task.options.dry_run:
        return _planned(done)
    detail = headline(done.plan)
    if done.sites is not None:
        detail = f"{detail}; {done.sites.summary()}"
    made = None
    if task.folder is not None:
        read = stamps({path: path for path in done.data.read})
        outputs = (done.target, *done.data.files)
        written = stamps({os.path.relpath(path, task.folder): path for path in outputs})
        made = Made(task.recipe, known, read, written)
    notes = tuple(joined([f"{done.source}: {line}"]) for line in remarks(done))
    return Outcome(done.source, done.target, 0, "converted", detail, notes, made)


def _planned(done: Converted) -> Outcome:
    blockers = done.plan.blockers
    if not blockers:
        return Outcome(done.source, "", 0, "can be converted", headline(done.plan))
    notes = tuple(joined([f"{done.source}: {blocker}"]) for blocker in blockers)
    return Outcome(done.source, "", 1, "cannot be converted", f"{len(blockers)} in the way", notes)


def _failed(source: str, error: Exception) -> Outcome:
    found = failure(error)
    first, *more = found.text.removeprefix("Error: ").splitlines()
    blockers = len(getattr(error, "blockers", ()))
    detail = f"{blockers} in the way" if blockers else first
    note = first if printable(source) in first else joined([f"{source}: {first}"])
    return Outcome(source, "", found.code, found.state, detail, (note, *more))


def _spoilt(outcome: Outcome) -> Outcome:
    detail = "its external data is gone again, with another model that failed; use --resume"
    note = joined([f"{outcome.source}: {detail}"])
    return Outcome(outcome.source, outcome.target, 2, "incomplete", detail, (note,))


def _crashed(task: _Task, how: Died) -> Outcome:
    detail = f"the process that converted it ended with {how.how}"
    advice = "if that was ONNX Runtime checking the changed nodes, --no-check does without"
    note = joined([f"{task.source}: {detail}; {advice}"])
    return Outcome(task.source, "", 1, "crashed", detail, (note,))


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """Return the command's exit code: 1 if any model cannot be converted, else the highest."""
    codes = {outcome.code for outcome in outcomes}
    return 1 if 1 in codes else max(codes, default=0)
