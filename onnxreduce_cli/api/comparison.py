"""Comparing a whole model as it was read with the one that it became."""

from __future__ import annotations

from contextlib import ExitStack

from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.model.files import STREAM, Document, temporary
from onnxreduce_cli.model.progress import Progress
from onnxreduce_cli.verification.compare.values import Tolerance
from onnxreduce_cli.verification.inputs.files import read_inputs
from onnxreduce_cli.verification.running.isolated import close_unused_models
from onnxreduce_cli.verification.whole.equivalence import verify
from onnxreduce_cli.verification.whole.results import VerificationError, VerifyReport
from onnxreduce_cli.worker.process import end_current


class Comparison:
    """Compares a model as it was read with the one that was written.

    Attributes:
        report: what was found; None before.
    """

    def __init__(
        self, document: Document, source: str, options: Options, progress: Progress | None
    ) -> None:
        """Read the real data that is given.

        Args:
            document: the model as it was read.
            source: its path; ``-`` for standard input.
            options: how to compare the models; with other dtypes the converted model may take and
                give others, too.
            progress: called with the steps of comparing that are done, those in all, and the
                current.

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
            VerificationError: they are not equal, or nothing could tell.
            InputError: the inputs or dimensions given do not fit the model.
        """
        options = self._options
        with ExitStack() as stack:
            source = label = self._source
            if source == STREAM:
                label = "standard input"
                source = stack.enter_context(temporary([self._document.source]))
            # What fails keeps the models that it was about, and their files, open.
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
                casting=bool(options.dtypes),
            )
            close_unused_models()
        if self.report.exit_code:
            raise VerificationError(self.report)
