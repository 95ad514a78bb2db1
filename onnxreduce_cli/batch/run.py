"""Converting many models: one's failure does not stop the others."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import onnx

from onnxreduce_cli import __version__
from onnxreduce_cli.api.file_conversion import Converted, convert_file
from onnxreduce_cli.batch.pool import Died, Pool, call_apart
from onnxreduce_cli.batch.record import Made, Record, digest, stamps
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.errors import OutOfMemoryError, blocker_lines
from onnxreduce_cli.model.files import make_folder
from onnxreduce_cli.report.failures import failure
from onnxreduce_cli.report.plan import headline, proofs, remarks
from onnxreduce_cli.text import joined, printable
from onnxreduce_cli.verification.running.limits import byte_text

if TYPE_CHECKING:
    from onnxreduce_cli.engine.conversion import Conversion
    from onnxreduce_cli.report.data import ConvertedModel
    from onnxreduce_cli.report.drawing import Picture
    from onnxreduce_cli.verification.sites.report import SiteReport

#: What is told of each model beside the result: nothing, all data, or pictures as well.
Telling = Literal["", "data", "pictures"]

#: Options that decide whether an output may be written, not what it holds.
_PERMISSIONS = ("dry_run", "force", "in_place")


@dataclass(frozen=True, slots=True)
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
        model: all that is told of it; None where it is not wanted, or there is no more.
        picture: what a page shows of it; None as before.
    """

    source: str
    target: str
    code: int
    state: str
    detail: str
    notes: tuple[str, ...] = ()
    made: Made | None = None
    model: ConvertedModel | None = None
    picture: Picture | None = None

    def told(self) -> ConvertedModel:
        """All that is told of it."""
        from onnxreduce_cli.report.data import ConvertedModel, Problem

        problem = Problem(self.state, "\n".join(self.notes) or self.detail) if self.code else None
        if self.model is not None and self.model.exit_code == self.code:
            return self.model
        return ConvertedModel(self.source, self.target, self.state, self.code, problem=problem)


@dataclass(frozen=True, slots=True)
class _Task:
    """One model to convert, as it goes to a process.

    Attributes:
        source: its path.
        target: the path of the output; None for a name made of source and opset.
        folder: where all outputs go; None where none is named.
        options: how.
        recipe: what else decides what the output holds.
        made: how an earlier run made it; None to convert it in any case.
        telling: what is wanted beside the result.
    """

    source: str
    target: str | None
    folder: str | None
    options: Options
    recipe: dict[str, Any]
    made: Made | None = None
    telling: Telling = ""


def convert_many(
    sources: Sequence[str],
    targets: Sequence[str | None],
    options: Options,
    pool: Pool,
    *,
    out_dir: str | None = None,
    resume: bool = False,
    telling: Telling = "",
) -> Generator[Outcome]:
    """Convert models, each in a process that may crash; outcomes come as they are ready.

    A model may get a second outcome, which then holds: models that share external data share it in
    their new folder too, and one that fails takes along what it had brought.

    Args:
        sources: the models' paths.
        targets: for each the path of its output; None for a name made of source and opset.
        options: how.
        pool: where; it is shut down at the end.
        out_dir: the folder of all outputs, where what was made is noted.
        resume: leave out what is done according to those notes, and make again what is noted but
            not, or no longer, done.
        telling: whether outcomes have all the data of a model, or pictures of it, too.

    Raises:
        OSError: the folder, or the notes in it, cannot be read or written.
    """
    if out_dir is not None and not options.dry_run:
        make_folder(out_dir)
    record = None if out_dir is None else Record(out_dir)
    drawn = _tasks(
        sources, targets, options, out_dir, record, resume=resume, repeating=pool.repeats
    )
    tasks = (replace(task, telling=telling) for task in drawn)
    done: list[Outcome] = []
    # Closed at once when this is left early: else processes go on, and are waited for.
    with closing(call_apart(_convert, tasks, pool)) as results:
        for task, result in results:
            outcome = _crashed(task, result) if isinstance(result, Died) else result
            _note(record, task, outcome)
            done += [outcome] if outcome.made is not None else []
            yield outcome
    for outcome in done:
        if outcome.made is not None and not outcome.made.is_there(out_dir or ""):
            yield _spoilt(outcome)


def _note(record: Record | None, task: _Task, outcome: Outcome) -> None:
    """Record how an output was made, or that none was."""
    if record is None or task.target is None:
        return
    output = os.path.relpath(task.target, task.folder)
    if outcome.made is not None:
        record.finish(output, outcome.made)
    elif not os.path.lexists(task.target):
        record.withdraw(output)


def _tasks(
    sources: Sequence[str],
    targets: Sequence[str | None],
    options: Options,
    out_dir: str | None,
    record: Record | None,
    *,
    resume: bool,
    repeating: bool,
) -> Iterator[_Task]:
    """Yield a task for each model; records its output as begun when it is drawn.

    Where tasks may be done again, as their worker was lost, what is there by then is its output.
    """
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
                if repeating:
                    task = replace(task, options=replace(options, force=True))
        yield task


def memory_needed(task: _Task) -> int:
    """The bytes of memory that converting a model takes at most, as its file lets expect.

    Measured: 0.1 GB, and 3 times the model's size where whole models are compared.
    """
    try:
        size = os.path.getsize(task.source)
    except OSError:
        size = 0
    return 500_000_000 + size * (3 if task.options.verify else 1)


def _recipe(options: Options) -> dict[str, Any]:
    """Return the options and versions that determine an output, as JSON would give them back."""
    found = {name: value for name, value in asdict(options).items() if name not in _PERMISSIONS}
    for name in ("expand", "contract", "allow_ops"):
        found[name] = sorted(found[name])
    found |= {"onnxreduce": __version__, "onnx": onnx.__version__}
    read_back: dict[str, Any] = json.loads(json.dumps(found))
    return read_back


def _convert(task: _Task) -> Outcome:
    """Convert one model; runs in a separate process."""
    source, target = task.source, task.target or ""
    pictures: list[Picture] = []

    def draw(conversion: Conversion, sites: SiteReport | None) -> None:
        from onnxreduce_cli.report.drawing import conversion_picture

        pictures.append(conversion_picture(conversion, sites))

    try:
        if task.made is not None and task.made.is_of(source, task.recipe, task.folder or ""):
            return Outcome(source, target, 0, "skipped", "done before")
        # Before it is read: what changes in between is then noticed the next time.
        known = digest(source) if task.folder is not None and not task.options.dry_run else ""
        seen = draw if task.telling == "pictures" else None
        done = convert_file(source, task.target, task.options, seen=seen)
        found = _converted(task, done, known)
    except Exception as error:
        found = _failed(task, error)
    return replace(found, picture=pictures[0]) if pictures else found


def _converted(task: _Task, done: Converted, known: str) -> Outcome:
    model = _model(task, done)
    if task.options.dry_run:
        return replace(_planned(done), model=model)
    detail = "; ".join([headline(done.plan), *proofs(done)])
    made = None
    if task.folder is not None:
        read = stamps({path: path for path in done.data.read})
        outputs = (done.target, *done.data.files)
        written = stamps({os.path.relpath(path, task.folder): path for path in outputs})
        made = Made(task.recipe, known, read, written)
    notes = tuple(joined([f"{done.source}: {line}"]) for line in remarks(done))
    return Outcome(done.source, done.target, 0, "converted", detail, notes, made, model)


def _model(task: _Task, done: Converted) -> ConvertedModel | None:
    if not task.telling:
        return None
    from onnxreduce_cli.report.data import converted_model

    return converted_model(done, dry_run=task.options.dry_run)


def _planned(done: Converted) -> Outcome:
    blockers = done.plan.blockers
    if not blockers:
        detail = "; ".join([headline(done.plan), *proofs(done)])
        return Outcome(done.source, "", 0, "can be converted", detail)
    notes = tuple(joined([f"{done.source}: {line}"]) for line in blocker_lines(blockers))
    return Outcome(done.source, "", 1, "cannot be converted", f"{len(blockers)} in the way", notes)


def _failed(task: _Task, error: Exception) -> Outcome:
    source, model = task.source, None
    if task.telling:
        from onnxreduce_cli.report.data import failed_model

        model = failed_model(source, error)
    found = failure(error)
    first, *more = found.text.removeprefix("Error: ").splitlines()
    blockers = len(getattr(error, "blockers", ()))
    detail = f"{blockers} in the way" if blockers else first
    note = first if printable(source) in first else joined([f"{source}: {first}"])
    return Outcome(source, "", found.code, found.state, detail, (note, *more), model=model)


def _spoilt(outcome: Outcome) -> Outcome:
    detail = "its external data is gone again, with another model that failed; use --resume"
    note = joined([f"{outcome.source}: {detail}"])
    return Outcome(outcome.source, outcome.target, 2, "incomplete", detail, (note,))


def _crashed(task: _Task, how: Died) -> Outcome:
    if how.room is not None:
        what = (
            f"it takes more than {byte_text(how.room)} of memory, which is what one of many models "
            "of its size may take; convert it by itself"
        )
        return _failed(task, OutOfMemoryError(what))
    detail = f"the process that converted it ended with {how.how}"
    advice = "if that was ONNX Runtime checking the changed nodes, --no-check does without"
    note = joined([f"{task.source}: {detail}; {advice}"])
    return Outcome(task.source, "", 1, "crashed", detail, (note,))


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """Return the command's exit code: 1 if any model cannot be converted, else the highest."""
    codes = {outcome.code for outcome in outcomes}
    return 1 if 1 in codes else max(codes, default=0)
