"""Converting one file: what `onnxreduce convert` does with a model, but for parsing and printing.

The output is looked at before the input is converted, and is written last, whole or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, TYPE_CHECKING, Any

from onnxreduce_cli import schemas
from onnxreduce_cli.api.checks import check_conversion, prepare_checks
from onnxreduce_cli.api.save import Placement, SavedData, check_placement, save
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.description import Plan
from onnxreduce_cli.engine.pause import collector_paused
from onnxreduce_cli.errors import ConversionError, UsageError
from onnxreduce_cli.model.byte_ranges import write
from onnxreduce_cli.model.domains import default_opset
from onnxreduce_cli.model.files import STREAM, Document, load
from onnxreduce_cli.model.ir_version import Wanted
from onnxreduce_cli.model.progress import Progress
from onnxreduce_cli.model.stated_shapes import FalseShape
from onnxreduce_cli.model.stating import parse_type, stating
from onnxreduce_cli.steps.dispatch import body
from onnxreduce_cli.verification.limits import Limits, current, limited

if TYPE_CHECKING:
    from onnxreduce_cli.verification import VerifyReport
    from onnxreduce_cli.verification.site_report import SiteReport


@dataclass(frozen=True)
class Comparing:
    """The options of comparing the whole models.

    Attributes:
        pairs: real data, ``name=file.npy`` each.
        inputs: real data, as a path that `read_inputs` reads; None for none.
        dims: sizes by the names of open dimensions.
        trials: how many sets of inputs to draw.
        seed: of what is drawn.
        rtol: the relative tolerance; None for the dtype's own.
        atol: the absolute tolerance; None for the dtype's own.
    """

    pairs: tuple[str, ...] = ()
    inputs: str | None = None
    dims: Mapping[str, int] = field(default_factory=dict)
    trials: int = 5
    seed: int = 0
    rtol: float | None = None
    atol: float | None = None


@dataclass(frozen=True)
class Options:
    """The options of converting a file.

    Attributes:
        opset: the opset to reach; None for the model's own.
        expand: operators to replace by their function bodies.
        ir_version: the IR version to write, as for `Conversion`.
        types: the types of values where nothing else tells, as for `convert`.
        dry_run: only plan; nothing is written.
        force: whether an existing file may be overwritten.
        in_place: whether the output may be the input.
        make_folders: whether folders that the output needs are made.
        check: whether each distinct site is run, before and after.
        strict: whether each of them must be checked, and nothing is written otherwise.
        verify: whether the whole models are compared, too.
        comparing: how they are compared.
        limits: what running a whole model may take.
        placement: where weights go.
    """

    opset: int | None = None
    expand: tuple[str, ...] = ()
    ir_version: Wanted = "auto"
    types: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False
    force: bool = False
    in_place: bool = False
    make_folders: bool = False
    check: bool = True
    strict: bool = False
    verify: bool = False
    comparing: Comparing = field(default_factory=Comparing)
    limits: Limits = field(default_factory=current)
    placement: Placement = field(default_factory=Placement)


@dataclass(frozen=True)
class Converted:
    """The result of converting one file.

    Attributes:
        source: the path it was read from; ``-`` for standard input.
        target: the path of the output; ``-`` for standard output.
        plan: the changes; after a dry run also the blockers.
        sites: what running each distinct site found; None if nothing was run.
        verified: the comparison of the whole models; None if it was not requested.
        data: the external data that was written.
        false_shapes: what the model stated of shapes that is not so, and is mended.
    """

    source: str
    target: str
    plan: Plan
    sites: SiteReport | None = None
    verified: VerifyReport | None = None
    data: SavedData = field(default_factory=SavedData)
    false_shapes: tuple[FalseShape, ...] = ()


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

    Raises:
        UsageError: the options make no sense here, or the output may not be written.
        InputError: inputs or dimensions to compare with do not fit the model.
        InvalidModelError: the model cannot be read, or contradicts itself.
        ConversionError: it cannot be converted; nothing was written.
        CheckError: a replacement does not compute the same; nothing was written.
        UncheckedError: a replacement could not be checked, with `strict`; nothing was written.
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
    comparison = _comparison(document, source, options, progress)
    conversion = _conversion(document, opset, options)
    plan = conversion.plan()
    if options.dry_run:
        return Converted(source, path, plan)
    if plan.blockers:
        raise ConversionError(
            f"{source} cannot be converted to opset {opset}; nothing was written:", plan.blockers
        )
    sites = check_conversion(conversion, strict=options.strict) if options.check else None
    checked = Converted(source, path, plan, sites)
    return _write(checked, document, conversion, options, stdout, comparison, copying)


def check_options(options: Options) -> None:
    """Look the options over that make sense for all models or for none.

    Raises:
        UsageError: no such opset, no function body for an operator, nothing to do, or options of
            comparing without that.
    """
    moves = options.placement.inline or options.placement.threshold is not None
    numbered = isinstance(options.ir_version, int)
    if options.opset is None and not options.expand and not numbered and not moves:
        raise UsageError("say which opset to reach: --opset N")
    if options.strict and not options.check:
        raise UsageError("say either --strict or --no-check")
    newest = schemas.newest_opset()
    if options.opset is not None and not 1 <= options.opset <= newest:
        raise UsageError(
            f"there is no opset {options.opset}; the installed onnx knows 1 to {newest}"
        )
    if not options.verify and options.comparing != Comparing():
        raise UsageError(
            "-i, --inputs, --dim, --trials, --seed, --rtol and --atol say how to compare the whole "
            "models; say --verify too"
        )
    for op_type in options.expand:
        body(op_type)
    for text in options.types.values():
        parse_type(text)


def _own_opset(document: Document) -> int:
    own = default_opset(document.model)
    if own is None:
        raise UsageError("the model imports no default domain; say which opset: --opset N")
    return own


def _conversion(document: Document, opset: int, options: Options) -> Conversion:
    if options.check and not options.dry_run:
        prepare_checks(document.model, opset)
    with stating(document.model, options.types, document.base_dir) as types:
        return Conversion(
            document.model,
            opset,
            expand=options.expand,
            target_ir_version=options.ir_version,
            base_dir=document.base_dir,
            types=types,
        )


def _output_path(source: str, target: str | None, opset: int, *, in_place: bool) -> str:
    if target is not None:
        return target
    if in_place:
        return source
    if source == STREAM:
        return STREAM
    path = Path(source)
    if not path.is_file():
        raise UsageError(f"{source} is no regular file; say where to write: -o FILE")
    return str(path.with_name(f"{path.stem}.opset{opset}{path.suffix}"))


def _check_output(source: str, path: str, options: Options, stdout: IO[bytes] | None) -> None:
    """Refuse an output, or a file beside it, that may not be written.

    Raises:
        UsageError: what is in the way.
    """
    _check_path(source, path, options, stdout)
    check_placement(path, options.placement, force=options.force)


def _check_path(source: str, path: str, options: Options, stdout: IO[bytes] | None) -> None:
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
        folder = os.path.dirname(os.path.abspath(path))
        if not (os.path.isdir(folder) or options.make_folders):
            raise UsageError(f"there is no folder {os.path.dirname(path)}")
        return
    if not os.path.isfile(path):
        raise UsageError(f"{path} is no regular file; for standard output say -o -")
    if source != STREAM and os.path.exists(source) and os.path.samefile(source, path):
        if not options.in_place:
            raise UsageError(f"{path} is the input; to overwrite it say --in-place")
    elif not options.force:
        raise UsageError(f"{path} exists; to overwrite it say --force")


def _comparison(
    document: Document, source: str, options: Options, progress: Progress | None
) -> _Comparison | None:
    """Return the comparison of the whole models, real data read; None where none is asked for.

    Raises:
        InputError: real data cannot be read, or does not fit the model.
    """
    if not options.verify:
        return None
    from onnxreduce_cli.verification import read_inputs

    how = options.comparing
    real = how.pairs or how.inputs is not None
    inputs = read_inputs(document.model, how.pairs, how.inputs) if real else None
    return _Comparison(document, source, how, inputs, progress)


def _write(
    checked: Converted,
    document: Document,
    conversion: Conversion,
    options: Options,
    stdout: IO[bytes] | None,
    comparison: _Comparison | None,
    copying: Progress | None,
) -> Converted:
    """Apply a conversion that was checked, compare the whole models if asked to, and write.

    Raises:
        InvalidModelError: the model's external data cannot be brought along.
        VerificationError: the whole models are not equal, or nothing could tell.
        OSError: the output cannot be written.
    """
    path = checked.target
    if options.make_folders and path != STREAM:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with limited(options.limits):
        data = save(
            document,
            conversion,
            path,
            options.placement,
            force=options.force,
            stdout=stdout,
            verify=comparison,
            progress=copying,
        )
    verified = None if comparison is None else comparison.report
    return replace(checked, verified=verified, data=data, false_shapes=conversion.false_shapes)


@dataclass
class _Comparison:
    """Compares a model as it was read with the one that was written.

    Attributes:
        document: the model as it was read.
        source: its path; ``-`` for standard input.
        options: how to compare them.
        inputs: real data; None to draw all inputs.
        progress: called with the steps of comparing that are done, those in all, and the current.
        report: what was found; None before.
    """

    document: Document
    source: str
    options: Comparing
    inputs: list[dict[str, Any]] | None
    progress: Progress | None
    report: VerifyReport | None = None

    def __call__(self, written: str) -> None:
        """Compare with the model at a path.

        Raises:
            VerificationError: they are not equal, or nothing could tell.
            InputError: the inputs or dimensions given do not fit the model.
        """
        from onnxreduce_cli.verification import Tolerance, VerificationError, verify

        with ExitStack() as stack:
            source = label = self.source
            if source == STREAM:
                label = "standard input"
                file = stack.enter_context(NamedTemporaryFile(suffix=".onnx"))
                write([self.document.source], file)
                source = file.name
            self.report = verify(
                source,
                written,
                inputs=self.inputs,
                dims=self.options.dims,
                trials=self.options.trials,
                seed=self.options.seed,
                tolerance=Tolerance(self.options.rtol, self.options.atol),
                progress=self.progress,
                labels=(label, "the converted model"),
            )
        if self.report.exit_code:
            raise VerificationError(self.report)
