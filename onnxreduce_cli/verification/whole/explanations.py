"""Why two runs may differ although neither is wrong."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from onnxreduce_cli.verification.compare.outcomes import RunKey
from onnxreduce_cli.verification.compare.values import compare
from onnxreduce_cli.verification.whole import indices
from onnxreduce_cli.verification.whole.rounding import Rounding
from onnxreduce_cli.verification.whole.trials import Trials

#: The explanations, as reports give them.
NEAR_EQUAL, ROUNDING = "near-equal values", "rounding"

#: In bytes: of a file with more in it no difference is explained.
_LARGE = 1 << 30


class Explanations:
    """Explains differences, each kind of them once for a trial.

    Attributes:
        rounding: the runs in double.
    """

    def __init__(self, ran: Trials) -> None:
        """Prepare for models that ran."""
        self._ran = ran
        self.rounding = Rounding(ran.sources, [run.feeds for run in ran.runs])
        self._picked: dict[tuple[int, RunKey, RunKey], set[str]] = {}

    def explain(self, number: int, name: str, first: RunKey, second: RunKey) -> str:
        """Return what explains that an output of two runs differs; empty if nothing does."""
        outcomes = [self._ran.runs[number].outcomes[ran].values for ran in (first, second)]
        if outcomes[0] is None or outcomes[1] is None or self._is_large:
            return ""
        if name in self._explained(number, first, second):
            return NEAR_EQUAL
        values = [outcome[name] for outcome in outcomes if outcome is not None]
        return ROUNDING if self._is_rounding(number, name, first, second, values) else ""

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
        """The outputs of two runs that near-equal values explain."""
        key = (number, first, second)
        if key not in self._picked:
            values = self._ran.runs[number].outcomes[second].values or {}
            sources, limit = self._ran.sources, self._ran.limit(first, second)

            def near(name: str, mine: Any, other: Any) -> bool:
                return compare(mine, other, limit).agree or self._is_rounding(
                    number, name, first, second, (mine, other)
                )

            self._picked[key] = indices.explained(
                (sources[first[0]], first[1]),
                (sources[second[0]], second[1]),
                {name: values[name] for name in self._ran.names},
                self._ran.runs[number].feeds,
                near,
            )
        return self._picked[key]
