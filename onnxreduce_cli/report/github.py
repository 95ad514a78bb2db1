"""A report as annotations and as a summary, which GitHub shows at the run of a workflow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from onnxreduce_cli.report.failures import reasons
from onnxreduce_cli.report.junit import JUnitCase, cases
from onnxreduce_cli.text import count, joined, printable, shortened

#: How many lines of a message are kept: GitHub shows some thousand characters.
_LINES = 20

#: How many rows a table of the summary has at most, and how many characters a cell: GitHub takes a
#: megabyte.
_ROWS, _LONGEST = 500, 300


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


def summary(report: Mapping[str, Any]) -> str:
    """Return a report as Markdown: each model that was converted, or each case that failed.

    Args:
        report: a report, as plain data.
    """
    found = list(cases(report))
    failed = sum(bool(case.failure) for case in found)
    skipped = sum(bool(case.skipped) for case in found)
    head = f"onnxreduce {report['command']}: {count(failed, 'failure')}"
    lines = [f"### {head}, {skipped:,} not checked, of {count(len(found), 'case')}", ""]
    if report["command"] == "convert" and report["problem"] is None:
        rows = [_row(model) for model in _failed_first(report["models"])]
        lines += _markdown(("model", "result", "verdict, or what is wrong"), rows)
    else:
        judged = [(case, case.failure or case.skipped) for case in found]
        rows = [[case.suite, f"{case.kind} {case.name}", why] for case, why in judged if why]
        lines += _markdown(("model", "what", "why"), rows) if rows else []
    return "\n".join([*lines, ""])


def _failed_first(models: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(models, key=lambda model: model["exit_code"] == 0)


def _row(model: Mapping[str, Any]) -> list[str]:
    why, problem = model["verdict"], model["problem"]
    if problem is not None:
        why = reasons(problem["message"].split("\n"), blocked=bool(problem["blockers"]))[0]
        if problem["blockers"]:
            item, others = problem["blockers"][0], len(problem["blockers"]) - 1
            why = f"{item['op_type']} node {item['node']}: {item['reason']}"
            why += f" (and {count(others, 'other node')})" if others else ""
    return [model["source"], model["state"], why]


def _markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table, in which no text of a model means anything."""
    lines = [" | ".join(heads), " | ".join("---" for _ in heads)]
    lines += [" | ".join(map(_cell, row)) for row in rows[:_ROWS]]
    found = [f"| {line} |" for line in lines]
    left = len(rows) - _ROWS
    return [*found, "", f"and {left:,} more, in the other reports"] if left > 0 else found


def _cell(text: str) -> str:
    """Return a text in one line with what has a meaning in Markdown and HTML escaped."""
    line = shortened(printable(text.split("\n")[0]), _LONGEST)
    return re.sub(r"[^\w\s.,;/()=+-]", lambda sign: f"&#{ord(sign[0])};", line)


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
