"""The results of many models, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from onnxreduce_cli.batch.run import ModelResult
from onnxreduce_cli.report.table import table
from onnxreduce_cli.text import count


def summary_text(outcomes: Sequence[ModelResult]) -> str:
    """Return a table with a line for each model, and the number of models by result."""
    rows = [("MODEL", "RESULT", "")]
    rows += [(item.source, item.state, item.detail) for item in outcomes]
    states = Counter(item.state for item in outcomes)
    counts = ", ".join(f"{number} {state}" for state, number in states.items())
    return f"{table(rows)}\n{count(len(outcomes), 'model')}: {counts or 'nothing to do'}"
