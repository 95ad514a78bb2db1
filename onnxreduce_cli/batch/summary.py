"""What became of many models, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from onnxreduce_cli.batch.run import Outcome

#: Longer details are cut in the table; notes have them whole.
_WIDEST = 160

#: Longer names stand out rather than move all that follows.
_COLUMN = 60


def summary_text(outcomes: Sequence[Outcome]) -> str:
    """A row for each model, and how many came to what."""
    rows = [("MODEL", "RESULT", "")]
    rows += [(_plain(item.source), item.state, _detail(item)) for item in outcomes]
    widths = [min(max(len(row[column]) for row in rows), _COLUMN) for column in (0, 1)]
    lines = [
        f"{name:<{widths[0]}}  {state:<{widths[1]}}  {detail}".rstrip()
        for name, state, detail in rows
    ]
    count = len(outcomes)
    states = Counter(item.state for item in outcomes)
    told = ", ".join(f"{number} {state}" for state, number in states.items())
    return "\n".join([*lines, f"{count} model{'s' * (count != 1)}: {told}"])


def _detail(outcome: Outcome) -> str:
    detail = _plain(outcome.detail)
    return detail if len(detail) <= _WIDEST else f"{detail[: _WIDEST - 3]}..."


def _plain(text: str) -> str:
    """One line, whatever characters a file's name has."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
