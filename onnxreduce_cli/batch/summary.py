"""The results of many models, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from onnxreduce_cli.batch.run import Outcome
from onnxreduce_cli.text import joined, printable

#: Longer details are cut in the table; notes have them whole.
_WIDEST = 160

#: Longer names stand out rather than move all that follows.
_COLUMN = 60


def summary_text(outcomes: Sequence[Outcome]) -> str:
    """Return a table with a line for each model, and the number of models by result."""
    cells = [("MODEL", "RESULT", "")]
    cells += [(printable(item.source), item.state, _detail(item)) for item in outcomes]
    widths = [min(max(len(line[column]) for line in cells), _COLUMN) for column in (0, 1)]
    lines = [
        f"{name:<{widths[0]}}  {state:<{widths[1]}}  {detail}".rstrip()
        for name, state, detail in cells
    ]
    count = len(outcomes)
    states = Counter(item.state for item in outcomes)
    counts = ", ".join(f"{number} {state}" for state, number in states.items())
    return joined([*lines, f"{count} model{'s' * (count != 1)}: {counts}"])


def _detail(outcome: Outcome) -> str:
    detail = printable(outcome.detail)
    return detail if len(detail) <= _WIDEST else f"{detail[: _WIDEST - 3]}..."
