"""The verdict on two models, or on two executors, from runs on the same inputs."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from time import perf_counter
from typing import Any

from onnxreduce_cli.model.graph.values import narrows
from onnxreduce_cli.text import listed
from onnxreduce_cli.verification.compare.outcomes import RunKey, Side
from onnxreduce_cli.verification.compare.values import Errors, compare_values
from onnxreduce_cli.verification.inputs.files import write_inputs
from onnxreduce_cli.verification.inputs.profiles import ORDINARY
from onnxreduce_cli.verification.running.runtime import EXECUTORS
from onnxreduce_cli.verification.running.source import ModelSource
from onnxreduce_cli.verification.whole import indices
from onnxreduce_cli.verification.whole.coverage import Coverage, coverage
from onnxreduce_cli.verification.whole.divergence import first_divergence
from onnxreduce_cli.verification.whole.naming import executor_name, judged_by
from onnxreduce_cli.verification.whole.overflow import (
    Overflow,
    advice_on,
    merged,
    overflows,
    said_of,
)
from onnxreduce_cli.verification.whole.results import (
    Comparison,
    Disagreement,
    Divergence,
    Trial,
    VerifyReport,
)
from onnxreduce_cli.verification.whole.rounding import Rounding
from onnxreduce_cli.verification.whole.trials import Trials
from onnxreduce_cli.verification.whole.unseen import fixed_branches, idle_weights

#: The explanations, as reports give them.
_NEAR_EQUAL, _ROUNDING = "near-equal values", "rounding"

#: In bytes: of a file with more in it no difference is explained.
_LARGE = 1 << 30

#: A trial, a value that differs in it, and the two runs that do.
_Difference = tuple[int, str, RunKey, RunKey]


class Verdict:
    """Compares the outputs of runs.

    Attributes:
        ran: the runs.
    """

    def __init__(self, ran: Trials) -> None:
        """Find what explains differences."""
        self.ran = ran
        self._pair = Side.CANDIDATE in ran.sources
        self._names = ran.names
        self._explanations = _Explanations(ran)
        self._judged = {
            (number, name): judgement
            for number, run in enumerate(ran.runs)
            for name, judgement in run.judgements.items()
        }
        self._explained = dict(self._explain())
        self._agreed = {where: self._agree(*where) for where in self._judged}
        self._overflows = dict(self._find_overflows())
        self._leave_out_overflows()

    @property
    def _reference(self) -> ModelSource:
        return self.ran.sources[Side.REFERENCE]

    def _explain(self) -> Iterator[tuple[_Difference, str]]:
        """Yield explanations of differences; of two runs, up to the first without one."""
        unexplained: set[tuple[RunKey, RunKey]] = set()
        for (number, name), judgement in self._judged.items():
            for first, second, errors in judgement.compared():
                if errors.agree or (first, second) in unexplained:
                    continue
                explanation = self._explanations.explain(number, name, first, second)
                if explanation:
                    yield (number, name, first, second), explanation
                else:
                    unexplained.add((first, second))

    def _agree(self, number: int, name: str) -> bool | None:
        """Return whether models agree on an output, or executors on one model; None if unknown."""
        judgement = self._judged[number, name]
        if self._pair and judgement.agree is not False:
            return judgement.agree
        found = [
            errors.agree or (number, name, first, second) in self._explained
            for first, second, errors in judgement.compared()
            if (first[0] is not second[0]) == self._pair and first[0] is Side.REFERENCE
        ]
        return all(found) if found else None

    def _find_overflows(self) -> Iterator[tuple[int, list[Overflow]]]:
        """Yield the trials in which models differ and values overflow, with these values."""
        if not self.ran.changed or self.ran.is_large:
            return
        for number in dict.fromkeys(n for (n, _), agree in self._agreed.items() if agree is False):
            wrong = self._failing(number)
            assert wrong is not None
            if found := self._overflows_of(number, *wrong[2:]):
                yield number, found

    def _hidden_overflows(self) -> list[Overflow]:
        """Return the values that overflow, though the models agree, on given or ordinary inputs.

        ONNX Runtime computes much of float16 in float on a CPU; what a model is converted for may
        not. One set of inputs of either kind is looked at.
        """
        if self.ran.is_large or not any(narrows(*pair) for pair in self.ran.changed.items()):
            return []
        first: dict[str, int] = {}
        for (number, _), agree in self._agreed.items():
            if agree:
                first.setdefault(self.ran.runs[number].values, number)
        numbers = [first[values] for values in ("given", ORDINARY) if values in first]
        return merged(
            item for n in numbers for item in self._overflows_of(n, *self._runs_compared(n))
        )

    def _overflows_of(self, number: int, *runs: RunKey) -> list[Overflow]:
        """Return the values that overflow in a trial, as two runs compute them."""
        sides = [(self.ran.sources[side], executor) for side, executor in runs]
        return overflows(sides, self.ran.runs[number].feeds, self.ran.changed)

    def _leave_out_overflows(self) -> None:
        """Leave out trials on drawn inputs in which values overflow, if there are others.

        No data that was given shows that the model meets such values.
        """
        drawn = {n for n in self._overflows if self.ran.runs[n].values != "given"}
        rest = {number for (number, _), agree in self._agreed.items() if agree} - drawn
        if drawn and rest:
            self._judged = {k: item for k, item in self._judged.items() if k[0] not in drawn}
            self._explained = {k: item for k, item in self._explained.items() if k[0] not in drawn}
            self._agreed = {k: item for k, item in self._agreed.items() if k[0] not in drawn}
        else:
            drawn = set()
        self._left_out = drawn

    def report(self, save_failure: str | None, *, idle: bool = True) -> VerifyReport:
        """Return the report.

        Args:
            save_failure: a folder for the first inputs that differ; None to keep none.
            idle: whether to look for weights on which no output depends.
        """
        known = [agree for agree in self._agreed.values() if agree is not None]
        equivalent = None if not known else all(known)
        failing = self._failing()
        covered = self._coverage() if equivalent else Coverage()
        weights = self._idle_weights() if idle and equivalent and not covered.void else []
        if covered.differing is not None:
            name, number = covered.differing
            equivalent, failing = False, (number, name, *self._runs_compared())
        labels = {side: source.label for side, source in self.ran.sources.items()}
        comparisons = tuple(self._comparisons(labels))
        runs = tuple(self.ran.executor_runs())
        return VerifyReport(
            labels[Side.REFERENCE],
            labels.get(Side.CANDIDATE),
            (),
            runs,
            tuple(self._trials()),
            comparisons,
            self._divergence(failing)
            if failing is not None and self._has_divergence(failing)
            else None,
            tuple(self._disagreements(comparisons)),
            tuple(self._remarks()),
            equivalent,
            judged_by(comparisons, runs, self._pair, equivalent) if known else "",
            (
                *self._of_overflows(),
                *self._warnings(covered),
                *(self._unseen(weights) if equivalent else ()),
            ),
            self._save(failing, save_failure),
            seed=self.ran.seed,
            tolerances=self.ran.tolerance.by_dtype(),
            seconds=perf_counter() - self.ran.begun,
        )

    def _trials(self) -> Iterator[Trial]:
        """Yield the sets of inputs, with a reason where no outputs could be compared."""
        for trial in self.ran.trials():
            if trial.number in self._left_out:
                yield replace(trial, void=said_of(self._overflows[trial.number]))
                continue
            void = all(self._agreed[trial.number, name] is None for name in self._names)
            yield replace(trial, void=self.ran.why_void(trial.number)) if void else trial

    def _of_overflows(self) -> Iterator[str]:
        """Yield warnings of values that overflow, and what to type."""
        inputs = defaultdict[bool | None, list[int]](list)
        for number in self._overflows:
            given = self.ran.runs[number].values == "given"
            inputs[None if given else number in self._left_out].append(number)
        for left_out, numbers in inputs.items():
            kinds = ", ".join(dict.fromkeys(self.ran.runs[number].values for number in numbers))
            where = "inputs given" if left_out is None else f"drawn inputs ({kinds})"
            found = merged(item for number in numbers for item in self._overflows[number])
            yield (
                f"on {where}{', which do not count,' if left_out else ''} {said_of(found)}; to "
                f"keep them as they are: {advice_on(found)}"
            )
        if hidden := self._hidden_overflows():
            yield (
                f"{said_of(hidden)}, where ONNX Runtime may compute in a wider dtype; to keep them "
                f"as they are: {advice_on(hidden)}"
            )

    def _failing(self, only: int | None = None) -> _Difference | None:
        """Return where the verdict fails first, in any trial or one; None if it does not."""
        for (number, name), agree in self._agreed.items():
            if agree is False and only in (None, number):
                wrong = [
                    (number, name, first, second)
                    for first, second, errors in self._judged[number, name].compared()
                    if not errors.agree and (number, name, first, second) not in self._explained
                ]
                # The NumPy executor comes after ONNX Runtime, and counts for more.
                return [item for item in wrong if (item[2][0] is not item[3][0]) == self._pair][-1]
        return None

    def _has_divergence(self, failing: _Difference) -> bool:
        """Return whether the report has a divergence beside those of disagreements."""
        return self._pair or failing[1] not in self._names

    def _runs_compared(self, only: int | None = None) -> tuple[RunKey, RunKey]:
        """Return the two runs whose inner values are compared, in any trial or one."""
        pairs = [
            (first, second)
            for (number, _), judgement in self._judged.items()
            for first, second, _ in judgement.compared()
            if only in (None, number) and (first[0] is not second[0]) == self._pair
        ]
        return pairs[0]

    def _coverage(self) -> Coverage:
        """Find outputs that prove nothing, and compare inner values in their place."""
        first, second = self._runs_compared()
        numbers = [
            number
            for number, run in enumerate(self.ran.runs)
            if number not in self._left_out
            and all(run.outcomes[key].values is not None for key in (first, second))
        ]
        results: dict[str, list[Any]] = {name: [] for name in self._names}
        for number in numbers:
            for name, value in (self.ran.runs[number].outcomes[first].values or {}).items():
                if name in results:
                    results[name].append(value)
        limit = self.ran.limit(first, second)

        def explains(place: int, name: str, values: Sequence[Any]) -> bool:
            rounding, sides = self._explanations.rounding, {first[0], second[0]}
            return rounding.explains(numbers[place], name, values, sides, limit)

        found = coverage(
            (self.ran.sources[first[0]], first[1]),
            (self.ran.sources[second[0]], second[1]),
            results,
            [self.ran.runs[number].feeds for number in numbers],
            limit,
            explains,
        )
        if found.differing is None:
            return found
        return replace(found, differing=(found.differing[0], numbers[found.differing[1]]))

    def _idle_weights(self) -> list[str]:
        """Return the weights on which no compared output depends in any trial."""
        if self.ran.is_large:
            return []
        (side, executor), _ = self._runs_compared()
        feeds = [
            run.feeds for run in self.ran.runs if run.outcomes[side, executor].values is not None
        ]
        return idle_weights(self.ran.sources[side], executor, feeds, self._names)

    def _unseen(self, weights: Sequence[str]) -> Iterator[str]:
        """Yield warnings of what no trial shows."""
        if weights:
            noun = "weight" if len(weights) == 1 else "weights"
            names = listed([repr(name) for name in weights])
            yield (
                f"no output depends on {noun} {names} in any trial: a difference there is not seen"
            )
        fixed = fixed_branches(self._reference) if self.ran.not_run else set()
        not_run = [f"{part} of {node!r}" for node, part in self.ran.not_run if node not in fixed]
        if not_run:
            yield f"no trial runs {listed(not_run)}: a difference there is not seen"
        differing = [
            name
            for run in self.ran.uncounted
            for name, judgement in run.judgements.items()
            if judgement.agree is False
        ]
        if differing:
            names = listed([repr(name) for name in dict.fromkeys(differing)])
            yield (
                f"where inputs hold NaN or infinities, the models differ in {names}: "
                "that counts with --special only"
            )

    def _comparisons(self, labels: Mapping[Side, str]) -> Iterator[Comparison]:
        """Yield the errors of each output between two runs, added up over trials, in order."""
        totals: dict[tuple[str, RunKey, RunKey], tuple[int, Errors]] = {}
        explanations: dict[tuple[str, RunKey, RunKey], list[str]] = {}
        for (number, name), judgement in self._judged.items():
            for first, second, errors in judgement.compared():
                key = (name, first, second)
                count, total = totals.get(key, (0, Errors()))
                totals[key] = (count + 1, total + errors)
                if not errors.agree:
                    explanations.setdefault(key, []).append(self._explained.get((number, *key), ""))
        for (name, first, second), (count, errors) in totals.items():
            explanation = explanations.get((name, first, second), [])
            explained = " and ".join(dict.fromkeys(explanation)) if all(explanation) else ""
            sides = ((labels[first[0]], first[1]), (labels[second[0]], second[1]))
            yield Comparison(name, *sides, count, errors, explained)

    def _disagreements(self, comparisons: Sequence[Comparison]) -> Iterator[Disagreement]:
        """Yield for each model the first output on which executors differ, if there is one."""
        reported: set[Side] = set()
        for (number, name), judgement in self._judged.items():
            for side, errors in judgement.deviations.items():
                where = (number, name, (side, EXECUTORS[0]), (side, EXECUTORS[1]))
                if errors.agree or where in self._explained or side in reported:
                    continue
                reported.add(side)
                label = self.ran.sources[side].label
                total = next(
                    found.errors
                    for found in comparisons
                    if found.output == name and found.first[0] == label == found.second[0]
                )
                yield Disagreement(label, name, total, self._divergence(where))

    def _divergence(self, where: _Difference) -> Divergence | None:
        number, name, *runs = where
        first, second = ((self.ran.sources[side], executor) for side, executor in runs)
        limit = self.ran.limit(*runs)
        return first_divergence(first, second, name, self.ran.runs[number].feeds, limit)

    def _save(self, failing: _Difference | None, folder: str | None) -> str | None:
        """Keep the first inputs that differ, if there are any and a folder for them."""
        if failing is None or folder is None:
            return None
        write_inputs(folder, self.ran.runs[failing[0]].feeds, self._reference.skeleton)
        return str(folder)

    def _remarks(self) -> Iterator[str]:
        if self.ran.unfit:
            yield self.ran.unfit
        ran = {(run.model, run.executor): run for run in self.ran.executor_runs()}
        for executor in self.ran.executors if self._pair else ():
            mine, other = (ran[source.label, executor] for source in self.ran.sources.values())
            if mine.trials and not other.trials:
                yield f"{executor} runs the first model, but not the second: {other.reason}"
        for name in sorted(self.ran.random):
            yield f"output {name!r} is random: it was not compared"
        if any(judgement.excused for judgement in self._judged.values()):
            yield (
                "ONNX Runtime finds a difference where the NumPy executor finds none and the two "
                "differ on one model: it is ONNX Runtime's deviation, not counted against the "
                "models"
            )
        reported: set[tuple[str, str]] = set()
        rounded: dict[tuple[RunKey, RunKey], dict[str, list[float]]] = {}
        for (number, name, *runs), explanation in self._explained.items():
            if (name, explanation) in reported:
                continue
            reported.add((name, explanation))
            if explanation == _ROUNDING:
                first, second = runs
                far = [self._distance(number, name, run) for run in runs]
                rounded.setdefault((first, second), {})[name] = far
                continue
            assert explanation == _NEAR_EQUAL
            yield (
                f"output {name!r} differs where nearly equal values are picked in another order: "
                "the values agree, and from the second's the first model picks as it does"
            )
        for (first, second), far_off in rounded.items():
            yield self._of_rounding(first, second, far_off)

    def _of_rounding(
        self, first: RunKey, second: RunKey, far_off: Mapping[str, list[float]]
    ) -> str:
        """Return the remark on outputs in which two runs differ by rounding."""
        names = listed([repr(name) for name in far_off])
        one, other = (f"{max(distances):.3g}" for distances in zip(*far_off.values(), strict=True))
        places = [executor_name(executor) for _, executor in (first, second)]
        if first[0] is not second[0]:
            labels = [self.ran.sources[side].label for side, _ in (first, second)]
            places = [f"{label} in {place}" for label, place in zip(labels, places, strict=True)]
        outputs = "output" if len(far_off) == 1 else "outputs"
        return (
            f"{' and '.join(places)} differ in {outputs} {names} by rounding alone, for which "
            f"neither model is at fault: they are {one} and {other} off what the first model gives "
            "in double precision"
        )

    def _distance(self, number: int, name: str, run: RunKey) -> float:
        value = (self.ran.runs[number].outcomes[run].values or {})[name]
        return self._explanations.rounding.distance(number, name, value)

    def _warnings(self, covered: Coverage) -> Iterator[str]:
        if not covered.void:
            return
        void = ", ".join(f"{name!r} was {why}" for name, why in covered.void.items())
        nodes = covered.nodes
        share = f"{covered.by_outputs} of {nodes} nodes ({covered.by_outputs / nodes:.0%})"
        text = f"output {void} in every trial, which proves nothing: the outputs cover {share}"
        if covered.differing is not None:
            yield f"{text}; inner values were compared, and {covered.differing[0]!r} differs"
        elif covered.by_all > covered.by_outputs:
            yield (
                f"{text}; inner values were compared too, and with them {covered.by_all} of "
                f"{nodes} ({covered.by_all / nodes:.0%}) are covered"
            )
        else:
            yield f"{text}, and no inner value that both models have covers more"


class _Explanations:
    """Explains differences by rounding, or by nearly equal values in another order.

    Attributes:
        rounding: the runs in double.
    """

    def __init__(self, ran: Trials) -> None:
        """Prepare for models that ran."""
        self._ran = ran
        self.rounding = Rounding(ran.sources, [run.feeds for run in ran.runs], ran.changed)
        self._picked: dict[tuple[int, RunKey, RunKey], set[str]] = {}

    def explain(self, number: int, name: str, first: RunKey, second: RunKey) -> str:
        """Return what explains that an output of two runs differs; empty if nothing does."""
        outcomes = [self._ran.runs[number].outcomes[ran].values for ran in (first, second)]
        if outcomes[0] is None or outcomes[1] is None or self._is_large:
            return ""
        if name in self._explained(number, first, second):
            return _NEAR_EQUAL
        values = [outcome[name] for outcome in outcomes if outcome is not None]
        return _ROUNDING if self._is_rounding(number, name, first, second, values) else ""

    @cached_property
    def _is_large(self) -> bool:
        """Return whether a model's file has too much in it to edit a copy in memory."""
        paths = [source.path for source in self._ran.sources.values() if source.path is not None]
        return any(os.path.getsize(path) > _LARGE for path in paths)

    def _is_rounding(
        self, number: int, name: str, first: RunKey, second: RunKey, values: Sequence[Any]
    ) -> bool:
        limit, sides = self._ran.limit(first, second), {first[0], second[0]}
        return self.rounding.explains(number, name, values, sides, limit)

    def _explained(self, number: int, first: RunKey, second: RunKey) -> set[str]:
        """Return the outputs of two runs that near-equal values explain."""
        key = (number, first, second)
        if key not in self._picked:
            values = self._ran.runs[number].outcomes[second].values or {}
            sources, limit = self._ran.sources, self._ran.limit(first, second)

            def near(name: str, mine: Any, other: Any) -> bool:
                return compare_values(mine, other, limit).agree or self._is_rounding(
                    number, name, first, second, (mine, other)
                )

            self._picked[key] = indices.explained_outputs(
                (sources[first[0]], first[1]),
                (sources[second[0]], second[1]),
                {name: values[name] for name in self._ran.names},
                self._ran.runs[number].feeds,
                near,
            )
        return self._picked[key]
