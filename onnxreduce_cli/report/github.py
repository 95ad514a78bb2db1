"""A report as annotations, which GitHub shows beside the run of a workflow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from onnxreduce_cli.report.junit import JUnitCase, cases
from onnxreduce_cli.text import count, joined, printable, shortened

#: How many lines of a message are kept: GitHub shows some thousand characters.
_LINES = 20


def annotation_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield workflow commands: errors for what failed, warnings for what was not checked.

    Args:
        report: a report, as plain data.
    """
    for case in cases(report):
        if case.failure:
            yield _annotation("error", case, case.failure)
        elif case.skipped:
            yield _annotation("warning", case, f"not checked: {case.skipped}")
    for model in report.get("models", ()):
        # What was not checked already has its annotations.
        for line in model["warnings"]:
            kind, _, text = line.partition(": ")
            if kind == "warning" and not text.startswith("not checked"):
                yield _annotation(
                    "warning", JUnitCase(model["source"], "model", model["source"]), text
                )


def _annotation(level: str, case: JUnitCase, message: str) -> str:
    lines = message.split("\n")
    if len(lines) > _LINES:
        lines[_LINES:] = [f"and {count(len(lines) - _LINES, 'line')} more"]
    title = f"title={_property(shortened(f'onnxreduce: {case.kind} {case.name}'))}"
    place = title if case.kind == "command" else f"file={_property(case.suite)},{title}"
    return f"::{level} {place}::{_data(joined(lines))}"


def _data(text: str) -> str:
    """Escape line ends and percent signs of a message."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escape a property's value, in which colons and commas have a meaning too."""
    return _data(printable(text)).replace(":", "%3A").replace(",", "%2C")
