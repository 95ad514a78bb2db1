"""What the runs of a verification say of the models, as a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from onnxreduce_cli.verification.compare import Errors, Tolerance
from onnxreduce_cli.verification.data import write_inputs
from onnxreduce_cli.verification.divergence import first_divergence
from onnxreduce_cli.verification.outcomes import Judgement, Ran, Side, judge
from onnxreduce_cli.verification.randomness import random_outputs
from onnxreduce_cli.verification.results import (
    Comparison,
    Disagreement,
    Divergence,
    VerifyReport,
)
from onnxreduce_cli.verification.runtime import EXECUTORS
from onnxreduce_cli.verification.trials import Trials


@dataclass
class Verdict:
    """Compares what has run.

    Attributes:
        ran: the runs.
        tolerance: the allowed difference of values.
    """

    ran: Trials
    tolerance: Tolerance

    @property
    def _between(self) -> Tolerance:
        return self.tolerance.between_executors()

    def report(self, save_failure: str | None) -> VerifyReport:
        """Compare everything that ran."""
        sources = self.ran.sources
        pair = Side.CANDIDATE in sources
        random = set().union(*(random_outputs(source) for source in self.ran.sources.values()))
        names = [name for name in self.ran.sources[Side.REFERENCE].outputs if name not in random]
        total = _Comparisons()
        verdicts: list[bool | None] = []
        failing: tuple[int, str, Judgement] | None = None
        deviating: dict[Side, tuple[int, str]] = {}
        excused = False
        for number in range(len(self.ran.feeds)):
            found = {key: runs[number] for key, runs in self.ran.outcomes.items()}
            seen: list[bool | None] = []
            for name in names:
                judgement = judge(found, name, self.tolerance, self._between)
                total.add(name, judgement)
                agree = (
                    judgement.agree if pair else _agree(judgement.deviations.get(Side.REFERENCE))
                )
                seen.append(agree)
                excused |= judgement.excused
                if agree is False and failing is None:
                    failing = (number, name, judgement)
                for side, errors in judgement.deviations.items():
                    if not errors.agree:
                        deviating.setdefault(side, (number, name))
            verdicts += seen
            if all(item is None for item in seen):
                self.ran.trials[number] = replace(
                    self.ran.trials[number], void=self.ran.why_void(number)
                )
        known = [item for item in verdicts if item is not None]
        equivalent = None if not known else all(known)
        labels = {side: source.label for side, source in self.ran.sources.items()}
        return VerifyReport(
            labels[Side.REFERENCE],
            labels.get(Side.CANDIDATE),
            (),
            tuple(self.ran.runs()),
            tuple(self.ran.trials),
            total.summary(labels),
            self._divergence(failing) if pair and failing is not None else None,
            tuple(self._disagreement(side, *where, total) for side, where in deviating.items()),
            tuple(self._remarks(random, excused)),
            equivalent,
            self._save(failing, save_failure),
        )

    def _save(self, failing: tuple[int, str, Judgement] | None, folder: str | None) -> str | None:
        """Keep the first inputs that differ, if there are any and a folder for them."""
        if failing is None or folder is None:
            return None
        write_inputs(folder, self.ran.feeds[failing[0]], self.ran.sources[Side.REFERENCE].skeleton)
        return str(folder)

    def _remarks(self, random: set[str], excused: bool) -> Iterator[str]:
        ran = {(run.model, run.executor): run for run in self.ran.runs()}
        for executor in self.ran.executors if Side.CANDIDATE in self.ran.sources else ():
            first, second = (ran[source.label, executor] for source in self.ran.sources.values())
            if first.trials and not second.trials:
                yield f"{executor} runs the first model, but not the second: {second.reason}"
        for name in sorted(random):
            yield f"output {name!r} is random: it was not compared"
        if excused:
            yield (
                "ONNX Runtime finds a difference where the NumPy executor finds none and the two "
                "differ on one model: it is ONNX Runtime's deviation, not counted against the "
                "models"
            )

    def _divergence(self, failing: tuple[int, str, Judgement]) -> Divergence | None:
        number, name, judgement = failing
        differ = [e for e, errors in judgement.pairs.items() if not errors.agree]
        executors = judgement.cross[:2] if judgement.cross else (differ[-1], differ[-1])
        first, second = (
            (self.ran.sources[side], executor)
            for side, executor in zip(Side, executors, strict=True)
        )
        tolerance = self.tolerance if executors[0] == executors[1] else self._between
        return first_divergence(first, second, name, self.ran.feeds[number], tolerance)

    def _disagreement(
        self, side: Side, number: int, name: str, total: _Comparisons
    ) -> Disagreement:
        source = self.ran.sources[side]
        where = first_divergence(
            (source, EXECUTORS[0]),
            (source, EXECUTORS[1]),
            name,
            self.ran.feeds[number],
            self._between,
        )
        errors = total.errors(name, (side, EXECUTORS[0]), (side, EXECUTORS[1]))
        return Disagreement(source.label, name, errors, where)


def _agree(errors: Errors | None) -> bool | None:
    return None if errors is None else errors.agree


class _Comparisons:
    """The errors of each output between pairs of runs, added up over trials."""

    def __init__(self) -> None:
        self._errors: dict[tuple[str, Ran, Ran], tuple[int, Errors]] = {}

    def add(self, name: str, judgement: Judgement) -> None:
        for executor, errors in judgement.pairs.items():
            self._add(name, (Side.REFERENCE, executor), (Side.CANDIDATE, executor), errors)
        if judgement.cross is not None:
            first, second, errors = judgement.cross
            self._add(name, (Side.REFERENCE, first), (Side.CANDIDATE, second), errors)
        for side, errors in judgement.deviations.items():
            self._add(name, (side, EXECUTORS[0]), (side, EXECUTORS[1]), errors)

    def _add(self, name: str, first: Ran, second: Ran, errors: Errors) -> None:
        count, total = self._errors.get((name, first, second), (0, Errors()))
        self._errors[name, first, second] = (count + 1, total + errors)

    def errors(self, name: str, first: Ran, second: Ran) -> Errors:
        """The errors of an output between two runs, over all trials."""
        return self._errors[name, first, second][1]

    def summary(self, labels: Mapping[Side, str]) -> tuple[Comparison, ...]:
        """One comparison for each output and pair, outputs in order."""
        return tuple(
            Comparison(name, (labels[x[0]], x[1]), (labels[y[0]], y[1]), count, errors)
            for (name, x, y), (count, errors) in self._errors.items()
        )
