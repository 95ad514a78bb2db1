"""Why two runs may differ although neither is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from onnxreduce_cli.verification import indices
from onnxreduce_cli.verification.compare import Tolerance
from onnxreduce_cli.verification.outcomes import Ran
from onnxreduce_cli.verification.rounding import Rounding
from onnxreduce_cli.verification.trials import Trials

#: The explanations, as reports give them.
NEAR_EQUAL, ROUNDING = "near-equal values", "rounding"


class Explanations:
    """Explains differences, each kind of them once for a trial.

    Attributes:
        rounding: the runs in double.
    """

    def __init__(self, ran: Trials, names: Sequence[str], tolerance: Tolerance) -> None:
        """Prepare for the outputs `names` of models that ran."""
        self._ran = ran
        self._names = names
        self._tolerance = tolerance
        self.rounding = Rounding(ran.sources, ran.feeds)
        self._picked: dict[tuple[int, Ran, Ran], set[str]] = {}

    def explain(self, number: int, name: str, first: Ran, second: Ran) -> str:
        """Return what explains that an output of two runs differs; empty if nothing does."""
        outcomes = [self._ran.outcomes[ran][number].values for ran in (first, second)]
        if outcomes[0] is None or outcomes[1] is None:
            return ""
        if name in self._explained(number, first, second):
            return NEAR_EQUAL
        values = [outcome[name] for outcome in outcomes if outcome is not None]
        sides = {first[0], second[0]}
        limit = self._limit(first, second)
        return ROUNDING if self.rounding.explains(number, name, values, sides, limit) else ""

    def _limit(self, first: Ran, second: Ran) -> Tolerance:
        return self._tolerance if first[1] == second[1] else self._tolerance.between_executors()

    def _explained(self, number: int, first: Ran, second: Ran) -> set[str]:
        """The outputs of two runs that near-equal values explain."""
        key = (number, first, second)
        if key not in self._picked:
            values = self._ran.outcomes[second][number].values or {}
            sources = self._ran.sources
            self._picked[key] = indices.explained(
                (sources[first[0]], first[1]),
                (sources[second[0]], second[1]),
                {name: values[name] for name in self._names},
                self._ran.feeds[number],
                self._limit(first, second),
            )
        return self._picked[key]
