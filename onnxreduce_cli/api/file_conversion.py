"""Converting one file: what `onnxreduce convert` does with a model, but for parsing and printing.

The output is looked at before the input is converted, and is written last, whole or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING

from onnxreduce_cli.api.checks import check_conversion, prepare_checks
from onnxreduce_cli.api.conversion import converting
from onnxreduce_cli.api.output import check_path, output_path
from onnxreduce_cli.api.save import SavedData, check_placement, save, try_out
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.description import Plan
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.engine.pause import collector_paused
from onnxreduce_cli.errors import (
    CheckError,
    ConversionError,
    OnnxreduceError,
    UncheckedError,
)
from onnxreduce_cli.model.files import STREAM, Document, load, make_folder
from onnxreduce_cli.model.progress import Progress
from onnxreduce_cli.model.stated_shapes import FalseShape
from onnxreduce_cli.told import Told
from onnxreduce_cli.verification.running.limits import Limits, limited

if TYPE_CHECKING:
    from onnxreduce_cli.api.comparison import Comparison
    from onnxreduce_cli.verification.sites.report import SiteReport
    from onnxreduce_cli.verification.whole.results import VerifyReport


#: Looks at a conversion while its model is as it was, and at what checking its sites found; None
#: where they were not checked.
Seen = Callable[[Conversion, "SiteReport | None"], None]


@dataclass(frozen=True)
class Converted(Told):
    """The result of converting one file.

    Attributes:
        source: the path it was read from; ``-`` for standard input.
        target: the path of the output; ``-`` for standard output.
        plan: the changes; after a dry run also the blockers.
        checks: what running each distinct node that changes found, before against after; None if
            nothing was run.
        verified: the comparison of the whole models; None if it was not requested.
        data: the external data that was written.
        false_shapes: what the model stated of shapes that is not so, and is mended.
        sizes: the bytes of the file that was read and of the one that was written, without their
            external data; None where one is a stream.
    """

    source: str
    target: str
    plan: Plan
    checks: SiteReport | None = None
    verified: VerifyReport | None = None
    data: SavedData = field(default_factory=SavedData)
    false_shapes: tuple[FalseShape, ...] = ()
    sizes: tuple[int, int] | None = None

    def __repr__(self) -> str:
        """From where to where, and what changed."""
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
    seen: Seen | None = None,
) -> Converted:
    """Convert one file.

    Args:
        source: the path of a model; ``-`` for `stdin`.
        target: where to write; ``-`` for `stdout`, None for a name made of source and opset.
        options: how.
        stdin: what ``-`` is read from.
        stdout: what ``-`` is written to.
        progress: called with the steps of comparing that are done, those in all, and the current.
        copying: called with the bytes of external data copied, those in all, and the file.
        seen: called with the conversion before it is applied, and with what checking it found.

    Raises:
        UsageError: the options make no sense here, or the output may not be written.
        InputError: inputs or dimensions to compare with do not fit the model.
        InvalidModelError: the model cannot be read, or contradicts itself.
        ConversionError: it cannot be converted; nothing was written.
        CheckError, UncheckedError: a replacement does not compute the same, or could not be
            checked, with `strict`; nothing was written.
        VerificationError: the whole models are not equal, or nothing could tell.
        OSError: the output cannot be written; what was there is as it was.
    """
    options.validate()
    if options.check and not options.only_plans:
        prepare_checks()
    document = load(source, stdin if source == STREAM else None)
    path = output_path(source, target, options.opset_of(document.model), options)
    if not options.dry_run:
        check_path(source, path, options, stdout)
        check_placement(path, options)
    comparison = None
    if options.verify:
        from onnxreduce_cli.api.comparison import Comparison

        comparison = Comparison(document, source, options, progress)
    with converting(document, options) as conversion:
        checked = _check(Converted(source, path, conversion.plan()), conversion, options, seen)
        if options.only_plans or (options.dry_run and checked.plan.blockers):
            return checked
        with _saying_how_far(checked):
            if options.dry_run:
                return _try_out(checked, document, conversion, options, comparison)
            return _write(checked, document, conversion, options, comparison, stdout, copying)


@contextmanager
def _saying_how_far(done: Converted) -> Iterator[None]:
    """Let what stops a conversion say how far that came."""
    try:
        yield
    except OnnxreduceError as error:
        error.so_far = done
        raise


def _check(
    done: Converted, conversion: Conversion, options: Options, seen: Seen | None
) -> Converted:
    """Check a conversion that is more than planned."""
    sites = None
    try:
        if options.check and not (options.only_plans or done.plan.blockers):
            with _saying_how_far(done):
                sites = check_conversion(conversion, strict=options.strict)
    except (CheckError, UncheckedError) as error:
        sites = error.report
        raise
    finally:
        if seen is not None:
            seen(conversion, sites)
    return replace(done, checks=sites)


def _try_out(
    checked: Converted,
    document: Document,
    conversion: Conversion,
    options: Options,
    comparison: Comparison | None,
) -> Converted:
    """Compare the whole models, and write none.

    Raises:
        InvalidModelError: the model's external data cannot be read.
        VerificationError: the whole models are not equal, or nothing could tell.
    """
    assert comparison is not None
    with limited(Limits(options.timeout, options.memory)):
        try_out(document, conversion, options, comparison)
    return replace(checked, verified=comparison.report)


def _write(
    checked: Converted,
    document: Document,
    conversion: Conversion,
    options: Options,
    comparison: Comparison | None,
    stdout: IO[bytes] | None,
    copying: Progress | None,
) -> Converted:
    """Apply a conversion that was checked, compare the whole models if asked to, and write.

    Raises:
        InvalidModelError: the model's external data cannot be brought along.
        VerificationError: the whole models are not equal, or nothing could tell.
        OSError: the output cannot be written.
    """
    path, plan = checked.target, checked.plan
    if plan.blockers:
        what = f"{checked.source} cannot be converted to opset {plan.target}; nothing was written:"
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
            verify=comparison,
            progress=copying,
        )
    verified = None if comparison is None else comparison.report
    return replace(
        checked,
        verified=verified,
        data=data,
        false_shapes=conversion.false_shapes,
        sizes=(given, os.path.getsize(path)) if given else None,
    )
