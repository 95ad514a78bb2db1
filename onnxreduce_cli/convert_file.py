"""Converting one file: what `onnxreduce convert` does with a model, but for parsing and printing.

The output is looked at before the input is converted, and is written last, whole or not at all.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, TYPE_CHECKING

from onnxreduce_cli import schemas
from onnxreduce_cli.checking import check
from onnxreduce_cli.conversion import Conversion
from onnxreduce_cli.errors import ConversionError, UsageError, VerificationError
from onnxreduce_cli.model.domains import default_opset
from onnxreduce_cli.model.files import (
    STREAM,
    Document,
    copy_file,
    data_files,
    format_of,
    load,
    replacing,
    serialize,
)
from onnxreduce_cli.plans import Plan
from onnxreduce_cli.progress import Progress
from onnxreduce_cli.steps.table import body

if TYPE_CHECKING:
    from onnxreduce_cli.verification import VerifyReport
    from onnxreduce_cli.verification.sites import SiteReport


@dataclass(frozen=True)
class Options:
    """How to convert a file.

    Attributes:
        opset: the opset to reach; None for the model's own.
        expand: operators to replace by their function bodies.
        ir_version: the IR version to write; None to raise it only where the opset needs that, 0
            for the least that opset and model allow.
        dry_run: only plan; nothing is written.
        force: whether an existing file may be overwritten.
        in_place: whether the output may be the input.
        make_folders: whether folders that the output needs are made.
        check: whether each distinct site is run, before and after.
        verify: whether the whole models are compared, too.
    """

    opset: int | None = None
    expand: tuple[str, ...] = ()
    ir_version: int | None = None
    dry_run: bool = False
    force: bool = False
    in_place: bool = False
    make_folders: bool = False
    check: bool = True
    verify: bool = False


@dataclass(frozen=True)
class Converted:
    """What became of one file.

    Attributes:
        source: the path it was read from; ``-`` for standard input.
        target: the path of the output; ``-`` for standard output.
        plan: the changes; after a dry run also the blockers.
        sites: what running each distinct site found; None if nothing was run.
        verified: how the whole models compare; None if that was not asked for.
        data: the external data that went along: from where, to where.
    """

    source: str
    target: str
    plan: Plan
    sites: SiteReport | None = None
    verified: VerifyReport | None = None
    data: tuple[tuple[str, str], ...] = ()


def convert_file(
    source: str,
    target: str | None,
    options: Options,
    *,
    stdin: IO[bytes] | None = None,
    stdout: IO[bytes] | None = None,
    progress: Progress | None = None,
) -> Converted:
    """Convert one file.

    Args:
        source: the path of a model; ``-`` for `stdin`.
        target: where to write; ``-`` for `stdout`, None for a name made of source and opset.
        options: how.
        stdin: what ``-`` is read from.
        stdout: what ``-`` is written to.
        progress: is told how far comparing whole models is.

    Raises:
        UsageError: the options make no sense here, or the output may not be written.
        InvalidModelError: the model cannot be read, or contradicts itself.
        ConversionError: it cannot be converted; nothing was written.
        CheckError: a replacement does not compute the same; nothing was written.
        VerificationError: the whole models are not equal, or nothing could tell; nothing was
            written.
        OSError: the output cannot be written; what was there is as it was.
    """
    check_options(options)
    document = load(source, stdin if source == STREAM else None)
    opset = options.opset if options.opset is not None else _own_opset(document)
    path = _output_path(source, target, opset, in_place=options.in_place)
    if not options.dry_run:
        _check_output(source, path, options, stdout)
    conversion = Conversion(
        document.model,
        opset,
        expand=options.expand,
        target_ir_version=options.ir_version,
        base_dir=document.base_dir,
    )
    plan = conversion.plan()
    if options.dry_run:
        return Converted(source, path, plan)
    if plan.blockers:
        raise ConversionError(
            f"{source} cannot be converted to opset {opset}; nothing was written:", plan.blockers
        )
    sites, verified = check(conversion) if options.check else None, None
    content = _content(document, conversion, path)
    data: list[tuple[str, str]] = []
    if path != STREAM:
        folder = os.path.dirname(os.path.abspath(path))
        if options.make_folders:
            os.makedirs(folder, exist_ok=True)
        data = _bring_data(document, folder)
    if options.verify:
        verified = _verify(document, source, content, path, progress)
    if path == STREAM:
        assert stdout is not None
        stdout.write(content)
        stdout.flush()
    else:
        with replacing(path) as file:
            file.write(content)
    return Converted(source, path, plan, sites, verified, tuple(data))


def check_options(options: Options) -> None:
    """Look the options over that make sense for all models or for none.

    Raises:
        UsageError: no such opset, no function body for an operator, or nothing to do.
    """
    if options.opset is None and not options.expand and options.ir_version is None:
        raise UsageError("say which opset to reach: --opset N")
    newest = schemas.newest_opset()
    if options.opset is not None and not 1 <= options.opset <= newest:
        raise UsageError(
            f"there is no opset {options.opset}; the installed onnx knows 1 to {newest}"
        )
    for op_type in options.expand:
        body(op_type)


def _own_opset(document: Document) -> int:
    own = default_opset(document.model)
    if own is None:
        raise UsageError("the model imports no default domain; say which opset: --opset N")
    return own


def _output_path(source: str, target: str | None, opset: int, *, in_place: bool) -> str:
    if target is not None:
        return target
    if in_place:
        return source
    if source == STREAM:
        return STREAM
    path = Path(source)
    return str(path.with_name(f"{path.stem}.opset{opset}{path.suffix}"))


def _check_output(source: str, path: str, options: Options, stdout: IO[bytes] | None) -> None:
    if path == STREAM:
        if options.in_place:
            raise UsageError("--in-place needs a file")
        if stdout is None or stdout.isatty():
            raise UsageError("a model is binary; send it to a file: -o FILE")
        return
    if os.path.isdir(path):
        raise UsageError(f"{path} is a folder; name a file: -o {os.path.join(path, 'x.onnx')}")
    if not os.path.exists(path):
        folder = os.path.dirname(os.path.abspath(path))
        if not (os.path.isdir(folder) or options.make_folders):
            raise UsageError(f"there is no folder {os.path.dirname(path)}")
        return
    if source != STREAM and os.path.exists(source) and os.path.samefile(source, path):
        if not options.in_place:
            raise UsageError(f"{path} is the input; to overwrite it say --in-place")
    elif not options.force:
        raise UsageError(f"{path} exists; to overwrite it say --force")


def _content(document: Document, conversion: Conversion, path: str) -> bytes:
    """What is to be written: the very bytes that were read, where nothing changes."""
    form = "protobuf" if path == STREAM else format_of(path)
    if conversion.changes_nothing and form == document.format:
        return document.content
    conversion.apply()
    return serialize(document.model, form)


def _bring_data(document: Document, folder: str) -> list[tuple[str, str]]:
    """Copy a model's external data to the folder that it is written to, if that is another.

    Returns:
        the files that the output needs there: from where, to where.
    """
    if os.path.realpath(folder) == os.path.realpath(document.base_dir or folder):
        return []
    pairs = [(path, os.path.join(folder, location)) for location, path in data_files(document)]
    for source, target in pairs:
        if not os.path.exists(target):
            copy_file(source, target)
        elif not os.path.samefile(source, target):
            raise UsageError(f"{target} exists, and the model's external data would go there")
    return pairs


def _verify(
    document: Document, source: str, content: bytes, path: str, progress: Progress | None
) -> VerifyReport:
    """Compare the model as read with `content`, which is to be written to `path`.

    Raises:
        VerificationError: they are not equal, or nothing could tell.
    """
    from onnxreduce_cli.verification import verify

    with ExitStack() as stack:

        def file_of(content: bytes, folder: str, name: str) -> str:
            suffix = ".onnx" if name == STREAM else Path(name).suffix
            file = stack.enter_context(NamedTemporaryFile(dir=folder or None, suffix=suffix))
            file.write(content)
            file.flush()
            return file.name

        # What refers to external data must lie beside it.
        has_data = bool(data_files(document))
        folder = document.base_dir if path == STREAM else os.path.dirname(os.path.abspath(path))
        before = source if source != STREAM else file_of(document.content, "", STREAM)
        after = file_of(content, folder if has_data else "", path)
        report = verify(before, after, progress=progress)
    if report.exit_code:
        raise VerificationError(report)
    return report
