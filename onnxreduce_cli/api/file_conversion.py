"""Conversion of one file, as `onnxreduce convert` does it, without parsing and printing.

The output's path is checked before the input is converted. The output is written last, whole or not
at all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from onnxreduce_cli.api.checks import check_conversion, prepare_checks, runtime_problem
from onnxreduce_cli.api.conversion import planned_conversion
from onnxreduce_cli.api.save import SavedData, check_data_path, save, try_out
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.description import Plan
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.engine.pause import collector_paused
from onnxreduce_cli.errors import (
    CheckError,
    ConversionError,
    OnnxreduceError,
    UncheckedError,
    UsageError,
)
from onnxreduce_cli.model.file.digest import (
    DigestedStream,
    FileDigest,
    digests,
    document_digests,
)
from onnxreduce_cli.model.file.document import STREAM, Document, load, make_folder
from onnxreduce_cli.model.file.progress import Progress
from onnxreduce_cli.model.types.stated_shapes import FalseShape
from onnxreduce_cli.serializable import Serializable
from onnxreduce_cli.verification.running.limits import Limits, limited

if TYPE_CHECKING:
    from onnxreduce_cli.verification.sites.report import SiteReport
    from onnxreduce_cli.verification.whole.passes import WholeCheck
    from onnxreduce_cli.verification.whole.results import VerifyReport


#: Is called with the path of a model that was written, before it gets its own name.
Examination = Callable[[str], None]

#: Is called with a conversion that is not applied yet, and with the report of its checks; None
#: without checks.
Observer = Callable[[Conversion, "SiteReport | None"], None]


@dataclass(frozen=True)
class Converted(Serializable):
    """The result of converting one file.

    Attributes:
        source: the path of the source; ``-`` for standard input.
        target: the path of the output; ``-`` for standard output.
        plan: the changes; after a dry run also the blockers.
        checks: the report of running each distinct node that changes; None if nothing was run.
        verified: the comparison of the whole models; None if it was not requested.
        whole: the check of the whole model that passes changed; None if none did.
        data: the external data that was written.
        false_shapes: false shapes that the model stated, and that were corrected.
        sizes: the sizes of the two files in bytes, without external data; None if one is a stream.
        numpy_alone: why NumPy alone checked, after "ONNX Runtime"; empty if nothing was checked, or
            ONNX Runtime did as well.
        files: the digests of what was read and written, if they were requested.
    """

    source: str
    target: str
    plan: Plan
    checks: SiteReport | None = None
    verified: VerifyReport | None = None
    whole: WholeCheck | None = None
    data: SavedData = field(default_factory=SavedData)
    false_shapes: tuple[FalseShape, ...] = ()
    sizes: tuple[int, int] | None = None
    numpy_alone: str = ""
    files: tuple[FileDigest, ...] = ()

    def __repr__(self) -> str:
        """Return the paths and the changes in one line."""
        return f"<Converted {self.source} → {self.target}: {repr(self.plan)[1:-1]}>"

    def _repr_html_(self) -> str:
        return self.plan._repr_html_()


@collector_paused()
def convert_file(
    source: str,
    target: str | None,
    options: Options,
    *,
    stdin: IO[bytes] | None = None,
    stdout: IO[bytes] | None = None,
    progress: Progress | None = None,
    copying: Progress | None = None,
    observer: Observer | None = None,
    digested: bool = False,
) -> Converted:
    """Convert one file.

    Args:
        source: the path of a model; ``-`` for `stdin`.
        target: where to write; ``-`` for `stdout`, None for a name made of source and opset.
        options: the options of the conversion.
        stdin: the stream that ``-`` is read from.
        stdout: the stream that ``-`` is written to.
        progress: called with the steps of the comparison done, the number of all, and the current.
        copying: called with the bytes of external data copied, the number of all, and the file.
        observer: called with the conversion before it is applied, and with the report of its
            checks.
        digested: whether the result has the digests of all files, which takes seconds for large
            ones.

    Raises:
        UsageError: the options do not fit the model, or the output may not be written.
        InputError: inputs or dimensions to compare with do not fit the model.
        InvalidModelError: the model cannot be read, or contradicts itself.
        ConversionError: the model cannot be converted; nothing was written.
        CheckError, UncheckedError: a replacement does not compute the same, or could not be
            checked, with `strict`; nothing was written.
        VerificationError: the whole models are not equivalent, or no executor could run them.
        OSError: the output cannot be written; an existing file is as it was.
    """
    options.validate()
    if options.check and not options.only_plans:
        prepare_checks()
        if options.strict:
            runtime_problem(strict=True)
    document = load(source, stdin if source == STREAM else None)
    path = output_path(source, target, options.opset_of(document.model), options)
    if not options.dry_run:
        check_path(source, path, options, stdout)
        check_data_path(path, options)
    files = _digests_read(document, source, options) if digested else ()
    comparison = None
    if options.verify:
        from onnxreduce_cli.api.comparison import ConversionVerifier

        comparison = ConversionVerifier(document, source, options, progress)
    with planned_conversion(document, options) as conversion:
        planned = Converted(source, path, conversion.plan(), files=files)
        checked = _check(planned, conversion, options, observer)
        if options.contract:
            checked = replace(checked, plan=conversion.plan())  # Its check may have changed it.
        if options.only_plans or (options.dry_run and checked.plan.blockers):
            return checked
        examined: Examination | None = comparison
        passes = conversion.passes if options.check else ()
        if passes:
            from onnxreduce_cli.api.comparison import PassChecker

            examined = checker = PassChecker(document, source, options, passes, comparison)
        with _with_partial_result(checked):
            if options.dry_run:
                done = _try_out(checked, document, conversion, options, examined)
            else:
                noted = DigestedStream(stdout) if digested and stdout is not None else None
                output = stdout if noted is None else cast("IO[bytes]", noted)
                done = _write(checked, document, conversion, options, examined, output, copying)
                if digested:
                    done = replace(done, files=(*files, *_digests_written(done, noted)))
        done = replace(
            done,
            verified=None if comparison is None else comparison.report,
            whole=checker.report if passes else None,
        )
        if done.checks is None and done.verified is None and done.whole is None:
            return done
        return replace(done, numpy_alone=runtime_problem(strict=False))


def _digests_read(document: Document, source: str, options: Options) -> tuple[FileDigest, ...]:
    """Return the digests of a model, its external data, and real data to compare with."""
    found = document_digests(document, source)
    if not (options.pairs or options.inputs):
        return found
    from onnxreduce_cli.verification.inputs.files import input_files

    return (*found, *digests(input_files(options.pairs, options.inputs), "read"))


def _digests_written(done: Converted, output: DigestedStream | None) -> tuple[FileDigest, ...]:
    """Return the digests of what was written: to files, or to standard output."""
    if done.target == STREAM and output is not None:
        return (output.digest(STREAM),)
    return digests((done.target, *done.data.files), "written")


@contextmanager
def _with_partial_result(done: Converted) -> Iterator[None]:
    """Attach the result so far to an error that stops a conversion."""
    try:
        yield
    except OnnxreduceError as error:
        error.so_far = done
        raise


def _check(
    done: Converted, conversion: Conversion, options: Options, observer: Observer | None
) -> Converted:
    """Check a conversion, unless it is only planned or blocked."""
    sites = None
    try:
        if options.check and not (options.only_plans or done.plan.blockers):
            with _with_partial_result(done):
                sites = check_conversion(conversion, strict=options.strict)
    except (CheckError, UncheckedError) as error:
        sites = error.report
        raise
    finally:
        if observer is not None:
            observer(conversion, sites)
    return replace(done, checks=sites)


def _try_out(
    checked: Converted,
    document: Document,
    conversion: Conversion,
    options: Options,
    examine: Examination | None,
) -> Converted:
    """Compare the whole models, and write no output.

    Raises:
        InvalidModelError: the model's external data cannot be read.
        VerificationError: the whole models are not equivalent, or no executor could run them.
    """
    assert examine is not None
    with limited(Limits(options.timeout, options.memory)):
        try_out(document, conversion, options, examine)
    return checked


def _write(
    checked: Converted,
    document: Document,
    conversion: Conversion,
    options: Options,
    examine: Examination | None,
    stdout: IO[bytes] | None,
    copying: Progress | None,
) -> Converted:
    """Apply a checked conversion, compare the whole models if requested, and write the output.

    Raises:
        InvalidModelError: the model's external data cannot be read.
        VerificationError: the whole models are not equivalent, or no executor could run them.
        OSError: the output cannot be written.
    """
    path, plan = checked.target, checked.plan
    if plan.blockers:
        what = f"{checked.source} cannot be converted {plan.aim}; nothing was written:"
        raise ConversionError(what, plan.blockers)
    if path != STREAM:
        make_folder(os.path.dirname(os.path.abspath(path)))
    given = 0 if STREAM in (checked.source, path) else os.path.getsize(checked.source)
    with limited(Limits(options.timeout, options.memory)):
        data = save(
            document,
            conversion,
            path,
            options,
            stdout=stdout,
            verify=examine,
            progress=copying,
        )
    return replace(
        checked,
        data=data,
        false_shapes=conversion.false_shapes,
        sizes=(given, os.path.getsize(path)) if given else None,
    )


# The output's path


def output_path(source: str, target: str | None, opset: int | None, options: Options) -> str:
    """Return the path of the output.

    Args:
        source: the path of the source; ``-`` for standard input.
        target: the path that the user names; None for a name made of the source's.
        opset: the opset that the model gets.
        options: the runtime, and whether the output may be the input.

    Raises:
        UsageError: the source is no file whose name could be used.
    """
    if target is not None:
        return target
    if options.in_place:
        return source
    if source == STREAM:
        return STREAM
    path = Path(source)
    if not path.is_file():
        raise UsageError(f"{source} is no regular file; name the output: -o FILE")
    runtime = options.runtime
    mark = f"opset{opset}" if runtime is None else _file_mark(runtime)
    return str(path.with_name(f"{path.stem}.{mark}{path.suffix}"))


def _file_mark(runtime: str) -> str:
    """Return a runtime as a part of a file's name: ``onnxruntime-1.8``."""
    from onnxreduce_cli.targets.requirement import find_target

    return re.sub(r"[^A-Za-z0-9.]+", "-", find_target(runtime).label).strip("-.")


def check_path(source: str, path: str, options: Options, stdout: IO[bytes] | None) -> None:
    """Refuse an output that may not be written.

    Raises:
        UsageError: the path is a folder, an existing file, or a stream that takes no model.
    """
    if path == STREAM:
        if options.in_place:
            raise UsageError("--in-place needs a file")
        if stdout is None:
            raise UsageError("standard output is closed; name a file: -o FILE")
        if stdout.isatty():
            raise UsageError("a model is binary; send it to a file: -o FILE")
        return
    if os.path.isdir(path):
        raise UsageError(f"{path} is a folder; name a file: -o {os.path.join(path, 'x.onnx')}")
    if not os.path.exists(path):
        return
    if not os.path.isfile(path):
        raise UsageError(f"{path} is no regular file; for standard output say -o -")
    if source != STREAM and os.path.exists(source) and os.path.samefile(source, path):
        if not options.in_place:
            raise UsageError(f"{path} is the input; to overwrite it say --in-place")
    elif not options.force:
        raise UsageError(f"{path} exists; to overwrite it say --force")
