"""Comparison of a whole model before and after its conversion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from onnxreduce_cli.engine.catalogue import Pass
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.model.file.document import STREAM, Document, temporary
from onnxreduce_cli.model.file.progress import Progress
from onnxreduce_cli.verification.compare.values import Tolerance
from onnxreduce_cli.verification.inputs.files import read_inputs
from onnxreduce_cli.verification.running.isolated import close_unused_models
from onnxreduce_cli.verification.running.source import ModelSource
from onnxreduce_cli.verification.whole.equivalence import verify
from onnxreduce_cli.verification.whole.passes import PassedChanges, WholeCheck, check_passes
from onnxreduce_cli.verification.whole.results import VerificationError, VerifyReport
from onnxreduce_cli.worker.process import end_current


@contextmanager
def readable(document: Document, source: str) -> Iterator[tuple[str, str]]:
    """Yield the path of a model as it was read, and its name in messages.

    Args:
        document: the model.
        source: its path; ``-`` for standard input, which a temporary file stands for.
    """
    if source != STREAM:
        yield source, source
        return
    with temporary([document.source]) as path:
        yield path, "standard input"


class PassChecker:
    """Checks the whole model that passes of a conversion changed, then calls a verifier.

    Attributes:
        report: the result; None before it.
    """

    def __init__(
        self,
        document: Document,
        source: str,
        options: Options,
        passes: Sequence[Pass],
        verifier: ConversionVerifier | None,
    ) -> None:
        """Prepare.

        Args:
            document: the model as it was read.
            source: its path; ``-`` for standard input.
            options: the options of the conversion.
            passes: the passes that changed the model.
            verifier: compares the whole models, if that is requested.
        """
        self.report: WholeCheck | None = None
        self._document, self._source, self._options = document, source, options
        self._passes, self._verifier = passes, verifier

    def __call__(self, written: str) -> None:
        """Check the model at a path.

        Raises:
            CheckError: it is invalid, does not load, or does not compute the same.
            UncheckedError: it could not be compared, with ``strict``.
            VerificationError, InputError: what the verifier raises.
        """
        options = self._options
        with ExitStack() as stack:

            def opened() -> ModelSource:
                path, label = stack.enter_context(readable(self._document, self._source))
                return ModelSource(path, label, called=label)

            self.report = check_passes(
                opened,
                ModelSource(written, "", called="the converted model", generated=True),
                PassedChanges.of(self._passes, options),
                compare=self._verifier is None,
                strict=options.strict,
            )
        if self._verifier is not None:
            self._verifier(written)


class ConversionVerifier:
    """Compares a model as it was read with the one that was written.

    Attributes:
        report: the result of the comparison; None before it.
    """

    def __init__(
        self, document: Document, source: str, options: Options, progress: Progress | None
    ) -> None:
        """Read the real data that the options name.

        Args:
            document: the model as it was read.
            source: its path; ``-`` for standard input.
            options: how to compare the models; if dtypes change, those of inputs and outputs may
                differ.
            progress: called with the number of steps done, the number of all, and the current step.

        Raises:
            InputError: real data cannot be read, or does not fit the model.
        """
        self.report: VerifyReport | None = None
        self._document, self._source = document, source
        self._options, self._progress = options, progress
        real = options.pairs or options.inputs is not None
        self._inputs = read_inputs(document.model, options.pairs, options.inputs) if real else None

    def __call__(self, written: str) -> None:
        """Compare with the model at a path.

        Raises:
            VerificationError: they are not equivalent, or no executor could run them.
            InputError: the given inputs or dimensions do not fit the model.
        """
        options = self._options
        with ExitStack() as stack:
            source, label = stack.enter_context(readable(self._document, self._source))
            # After a failure the worker still holds the models, and their files are open.
            stack.push(lambda kind, *_: None if kind is None else end_current())
            self.report = verify(
                source,
                written,
                inputs=self._inputs,
                dims=options.dims,
                trials=options.trials,
                seed=options.seed,
                tolerance=Tolerance(options.rtol, options.atol),
                progress=self._progress,
                labels=(label, "the converted model"),
                changed=options.dtypes,
                recast=options.io_dtypes,
                ranges=options.assume_ranges,
            )
            close_unused_models()
        if self.report.exit_code:
            raise VerificationError(self.report)
