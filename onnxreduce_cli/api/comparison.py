"""Comparing a whole model as it was read with the one that it became."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from onnxreduce_cli.api.options import Comparing, Options
from onnxreduce_cli.model.files import STREAM, Document, temporary
from onnxreduce_cli.model.progress import Progress
from onnxreduce_cli.verification import (
    Tolerance,
    VerificationError,
    VerifyReport,
    read_inputs,
    verify,
)
from onnxreduce_cli.verification.isolated import let_go
from onnxreduce_cli.worker.process import end_current


@dataclass(slots=True)
class Comparison:
    """Compares a model as it was read with the one that was written.

    Attributes:
        document: the model as it was read.
        source: its path; ``-`` for standard input.
        options: how to compare them.
        inputs: real data; None to draw all inputs.
        progress: called with the steps of comparing that are done, those in all, and the current.
        casting: whether the converted model may take and give other dtypes.
        report: what was found; None before.
    """

    document: Document
    source: str
    options: Comparing
    inputs: list[dict[str, Any]] | None
    progress: Progress | None
    casting: bool
    report: VerifyReport | None = None

    def __call__(self, written: str) -> None:
        """Compare with the model at a path.

        Raises:
            VerificationError: they are not equal, or nothing could tell.
            InputError: the inputs or dimensions given do not fit the model.
        """
        with ExitStack() as stack:
            source = label = self.source
            if source == STREAM:
                label = "standard input"
                source = stack.enter_context(temporary([self.document.source]))
            # What fails keeps the models that it was about, and their files, open.
            stack.push(lambda kind, *_: None if kind is None else end_current())
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
                casting=self.casting,
            )
            let_go()
        if self.report.exit_code:
            raise VerificationError(self.report)


def comparison_of(
    document: Document, source: str, options: Options, progress: Progress | None
) -> Comparison:
    """Return the comparison of the whole models, real data read.

    Raises:
        InputError: real data cannot be read, or does not fit the model.
    """
    how = options.comparing
    real = how.pairs or how.inputs is not None
    inputs = read_inputs(document.model, how.pairs, how.inputs) if real else None
    casting = bool(options.preparation.dtypes)
    return Comparison(document, source, how, inputs, progress, casting)
